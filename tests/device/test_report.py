"""The judge's key and the signed report."""

from __future__ import annotations

import base64
import json
import math
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from device import JudgeKey, load_judge_key, verify_report
from device.errors import JudgeKeyUnreadable, ReportRejected
from device.report import fingerprint, sign

DATA = {"format": "sagebook.report/1", "outcome": "correct", "latency": 0.25}


def test_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    """The first use writes 32 bytes with mode 0600; the second reads the same key."""
    path = tmp_path / "deep" / "judge.key"
    first, second = load_judge_key(path), load_judge_key(path)
    assert first.public == second.public
    assert len(base64.b64decode(path.read_text())) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["judge.key"]


def test_key_path_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$SAGEBOOK_JUDGE_KEY names the file."""
    monkeypatch.setenv("SAGEBOOK_JUDGE_KEY", str(tmp_path / "mine"))
    load_judge_key()
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("content", ["", "not base64!", base64.b64encode(b"short").decode()])
def test_a_broken_key_file_is_named(tmp_path: Path, content: str) -> None:
    """What is no key is never replaced silently."""
    path = tmp_path / "judge.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(JudgeKeyUnreadable, match=r"judge\.key"):
        load_judge_key(path)
    assert path.read_text() == content


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A key that leaked signs for anyone."""
    path = tmp_path / "judge.key"
    load_judge_key(path)
    path.chmod(0o644)
    with pytest.raises(JudgeKeyUnreadable, match="chmod 600"):
        load_judge_key(path)


def test_signature_covers_the_domain_and_the_exact_text(key: JudgeKey) -> None:
    """Anyone can check it with the public key and the bytes alone."""
    report = sign(DATA, key)
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(report.judge_key))
    public.verify(base64.b64decode(report.signature), b"sagebook.report/1\n" + report.report.encode("utf-8"))
    assert report.data == DATA
    assert verify_report(report.report, report.signature, report.judge_key) == DATA


def test_tampering_is_found(key: JudgeKey) -> None:
    """One digit of a latency, another key, another signature, a damaged one: none verifies."""
    report = sign(DATA, key)
    other = JudgeKey(Ed25519PrivateKey.generate())
    forged = sign({**DATA, "latency": 0.01}, other)
    for bad in (
        replace(report, report=report.report.replace("0.25", "0.15")),
        replace(report, report=report.report + " "),
        replace(report, judge_key=forged.judge_key),
        replace(forged, judge_key=report.judge_key),
        replace(report, signature=report.signature[:-8] + "AAAAAAA="),
        replace(report, signature="%%%"),
        replace(report, judge_key="AAAA"),
    ):
        with pytest.raises(ReportRejected):
            bad.verify()


def test_a_signature_over_bare_text_is_no_report(key: JudgeKey) -> None:
    """Without the domain in front, a signature that the key made for something else would pass."""
    text = json.dumps(DATA)
    bare = base64.b64encode(key.private.sign(text.encode())).decode()
    with pytest.raises(ReportRejected, match="does not fit"):
        verify_report(text, bare, base64.b64encode(key.public).decode())


def test_another_format_is_rejected(key: JudgeKey) -> None:
    """A true signature over something that is no report of this format."""
    with pytest.raises(ReportRejected, match="format"):
        sign({"format": "other/1"}, key).verify()


def test_values_that_json_lacks_become_their_names(key: JudgeKey) -> None:
    """NaN and infinities are strings; a tuple is a list; a lone surrogate of a broken source does not stop the report."""
    data = sign({"format": "sagebook.report/1", "v": (math.nan, math.inf, -math.inf), "s": "a\ud800b"}, key).data
    assert data["v"] == ["NaN", "Infinity", "-Infinity"]
    assert data["s"] == "a?b"


def test_fingerprint_depends_on_every_entry() -> None:
    """Order does not matter, values do."""
    assert fingerprint({"a": "1", "b": None}) == fingerprint({"b": None, "a": "1"})
    assert fingerprint({"a": "1", "b": None}) != fingerprint({"a": "1", "b": "2"})
    assert len(fingerprint({})) == 64


def test_a_key_does_not_show_its_private_half(key: JudgeKey) -> None:
    """A log line with a key in it gives nothing away."""
    private = base64.b64encode(key.private.private_bytes_raw()).decode()
    assert private not in repr(key)
