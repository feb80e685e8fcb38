"""The signed report: its text, the judge's key, and the check that anyone can make with the public key alone."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from device.errors import JudgeKeyUnreadable, ReportRejected

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = "sagebook.report/1"
DOMAIN = FORMAT.encode() + b"\n"
"""Signed bytes are these, then the report's UTF-8 text: a signature over anything else never fits a report."""


@dataclass(frozen=True)
class JudgeKey:
    """An Ed25519 key pair; the private half stays in the judge's process and its file."""

    private: Ed25519PrivateKey

    @cached_property
    def public(self) -> bytes:
        """The raw 32-byte public key."""
        return self.private.public_key().public_bytes_raw()

    def private_seed(self, seed: int) -> int:
        """Return the 63-bit seed that this judge draws from for a public one.

        Who knows the seed of an evaluation, but not the judge's key, can work out neither inputs nor hidden shapes.
        """
        text = b"sagebook.seed/1\n" + str(seed).encode()
        return int.from_bytes(hmac.digest(self.private.private_bytes_raw(), text, "sha256")[:8], "big") >> 1

    def __repr__(self) -> str:
        return f"JudgeKey(public={base64.b64encode(self.public).decode()})"


@dataclass(frozen=True)
class SignedReport:
    """The exact JSON text, its signature and the judge's public key, both in base64."""

    report: str
    signature: str
    judge_key: str

    @cached_property
    def data(self) -> dict[str, Any]:
        """The parsed report. Not-a-number and infinite values are the strings "NaN", "Infinity" and "-Infinity"."""
        parsed: dict[str, Any] = json.loads(self.report)
        return parsed

    def verify(self) -> None:
        """Raise ReportRejected unless the signature fits the text and the key; says nothing about whose key it is."""
        verify_report(self.report, self.signature, self.judge_key)


def verify_report(report: str, signature: str, judge_key: str) -> dict[str, Any]:
    """Check a report's signature and form, and return its data. Raises ReportRejected."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  (slow to import)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(judge_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), DOMAIN + report.encode())
        data = json.loads(report)
    except InvalidSignature as error:
        raise ReportRejected("the signature does not fit the text and the judge's key") from error
    except (binascii.Error, ValueError) as error:
        raise ReportRejected(f"malformed: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReportRejected(f"its format is not {FORMAT}")
    return data


def default_key_path() -> Path:
    """Return $SAGEBOOK_JUDGE_KEY, or judge.key in the user's data folder for sagebook."""
    chosen = os.environ.get("SAGEBOOK_JUDGE_KEY")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir("sagebook")) / "judge.key"


def load_judge_key(path: Path | None = None) -> JudgeKey:
    """Read the judge's private key (32 raw bytes in base64), or make one (mode 0600) where there is no file.

    Raises JudgeKeyUnreadable when the file holds something else or when others may read it.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    place = default_key_path() if path is None else path
    if not place.exists():
        _create(place, Ed25519PrivateKey.generate().private_bytes_raw())
    try:
        if place.stat().st_mode & 0o077:
            raise JudgeKeyUnreadable(place, "others may read it (chmod 600)")
        raw = base64.b64decode(place.read_text(encoding="ascii").strip(), validate=True)
        return JudgeKey(Ed25519PrivateKey.from_private_bytes(raw))
    except (OSError, ValueError) as error:
        raise JudgeKeyUnreadable(place, str(error)) from error


def _create(place: Path, raw: bytes) -> None:
    """Write a new key whole and never over another: of two judges that start at once, one wins and both use it."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = place.with_name(f"{place.name}.{os.getpid()}")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(base64.b64encode(raw) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, place)
        except FileExistsError:
            return
    finally:
        partial.unlink()


def sign(data: Mapping[str, Any], key: JudgeKey) -> SignedReport:
    """Write the report's text once and sign exactly that."""
    text = json.dumps(plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    signature = key.private.sign(DOMAIN + text.encode())
    return SignedReport(text, base64.b64encode(signature).decode(), base64.b64encode(key.public).decode())


def plain(value: Any) -> Any:
    """Turn a value into what JSON can say: tuples to lists, NaN and infinities to their names, lone surrogates away."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def fingerprint(environment: Mapping[str, str | None]) -> str:
    """SHA-256 of the environment's entries as canonical JSON: equal exactly where all entries are."""
    text = json.dumps(dict(environment), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
