"""A redacted text is nowhere any more, and everything that can be computed or proved stays."""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import errors, wire, wire_proofs
from ledger.bootstrap import client_of, configure_logging
from ledger.client import LedgerClient
from ledger.folding import Folds
from ledger.service import Ledger
from ledger.settings import Settings
from ledger.store import move, redaction
from ledger.store.log import Log
from ledger.store.sql import open_log
from tests.ledger.test_proofs import KEY, VERIFIER

SECRET = "Ada Lovelace of Somewhere"  # noqa: S105 - a name that someone wants gone


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def log(url: str) -> Iterator[Log]:
    made = open_log(url)
    yield made
    made.close()


def ledger_on(log: Log) -> Ledger:
    made = Ledger(log, now=lambda: "2026-01-02T03:04:05Z", new_id=lambda: "id", key=lambda: KEY)
    made._folds = Folds(log, every=3)
    return made


@pytest.fixture
def ledger(log: Log) -> Ledger:
    return ledger_on(log)


@pytest.fixture
def client(ledger: Ledger) -> LedgerClient:
    made = client_of(ledger, actor="tester")
    made.create_library("lib")
    for name, title, body in (
        ("a", "tiles", "cut the rows into tiles"),
        ("b", f"By {SECRET}", f"{SECRET} said: unroll"),
        ("c", "threads", "one thread a row"),
    ):
        made.record_experience(
            "lib", wire.NewExperience(experience=name, title=title, body=body, stages=("correctness",))
        )
    made.amend_experience(
        "lib", "b", wire.AmendExperience(title=f"{SECRET} again", body=f"unroll, {SECRET}", reason="more")
    )
    made.distill_rule("lib", "b", wire.NewRule(text=f"Unroll ({SECRET})", tokens=9))
    return made


def everything(log: Log, url: str) -> str:
    """All that the store holds, as one text; a file byte for byte, with what lies beside it."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        files = [path, *path.parent.glob(path.name + "-*")]
        return "".join(file.read_bytes().decode("latin-1") for file in files)
    rows = [row.record.decode() for row in log.read("lib")]
    shelf = [str(log.shelf.snapshot("lib", "state", until=at)) for at in log.shelf.snapshot_sequences("lib", "state")]
    return "".join(rows + shelf)


def test_the_texts_of_an_experience_are_gone_and_its_numbers_stay(
    client: LedgerClient, ledger: Ledger, log: Log, url: str
):
    """From records, blobs, kept answers, snapshots, the index and the file itself; the chain and old checkpoints hold."""
    before = client.state("lib")
    checkpoint = client.checkpoint("lib").note
    old_proof = client.inclusion_proof("lib", 3)
    assert SECRET in everything(log, url)
    assert [hit[0] for hit in ledger.index("lib").search("unroll", 5)] == ["b"]
    done = client.redact("lib", wire_proofs.Redaction(reason="a person asked", experience="b"))
    assert (done.sequence, len(done.blobs), done.records) == (8, 3, [3, 5])
    assert SECRET not in everything(log, url)
    shown = client.experience("lib", "b")
    assert (shown.title, shown.body, shown.rule) == (redaction.GONE, None, None)
    assert client.state("lib").experiences == before.experiences
    with ledger.reading("lib"):
        assert ledger.index("lib").search("unroll", 5) == []
    for sha256 in done.blobs:
        with pytest.raises(errors.UnknownBlobError):
            client.blob("lib", sha256)
    assert SECRET not in json.dumps([event.model_dump() for event in client.events("lib")])
    assert client.verify("lib", checkpoints=[checkpoint]).ok
    # Hashes, and so the tree and its proofs, are what they were.
    assert client.inclusion_proof("lib", 3, size=7).path == old_proof.path
    check = runpy.run_path(str(VERIFIER))["check"]
    assert "redacted since" in list(check(client.prove("lib", 3, since=checkpoint), KEY.verifier("lib")))[-1]


def test_the_texts_are_gone_from_exports_backups_and_pages(client: LedgerClient, log: Log, url: str, tmp_path: Path):
    """What is handed out afterwards holds the numbers and a mark, and imports to the same state."""
    assert SECRET.encode() in client.export_trace("lib")
    client.redact("lib", wire_proofs.Redaction(reason="a person asked", experience="b"))
    trace = client.export_trace("lib")
    assert SECRET.encode() not in trace
    client.create_library("again")
    client.import_trace("again", trace.splitlines(keepends=True))
    assert client.state("again").experiences == client.state("lib").experiences
    for path in ("/libraries/lib", "/libraries/lib/experiences/b", "/v1/libraries/lib/experiences/b/why"):
        assert SECRET not in client._http.get(path).text
    assert SECRET not in json.dumps(client.prove("lib", 3))
    if url.startswith("sqlite"):
        copy = tmp_path / "copy.db"
        move.backup(url, copy)
        assert SECRET not in copy.read_bytes().decode("latin-1")


def test_no_text_ever_reaches_the_logs(log: Log, url: str, capfd: pytest.CaptureFixture[str]):
    """At the level that says most, through writes, reads, refusals and the redaction itself."""
    configure_logging(Settings.model_construct(log_level="debug", log_format="json"))
    with client_of(ledger_on(log), actor="tester") as made:
        made.create_library("lib")
        new = wire.NewExperience(experience="b", title=f"unroll by {SECRET}", body=SECRET, stages=("correctness",))
        made.record_experience("lib", new)
        with pytest.raises(errors.ExperienceExistsError):
            made.record_experience("lib", new)
        bad = made._http.post("/v1/libraries/lib/experiences/b/rule", json={"text": SECRET, "tokens": -1})
        assert bad.status_code == 422
        made.redact("lib", wire_proofs.Redaction(reason="a person asked", experience="b"))
    said = capfd.readouterr()
    assert '"library": "lib"' in said.err  # so something was said at all
    assert SECRET not in said.err + said.out


def test_another_service_lets_go_of_it_too(client: LedgerClient, log: Log):
    """One that has the library open folds it again when it sees the redaction; a new one opens without trouble."""
    other = ledger_on(log)
    with other.reading("lib") as state:
        assert SECRET in state.experiences["b"].title
    client.redact("lib", wire_proofs.Redaction(reason="a person asked", experience="b"))
    for ledger in (other, ledger_on(log)):
        with ledger.reading("lib") as state:
            assert state.experiences["b"].title == redaction.GONE
            assert state.sequence == 8
        assert ledger.as_of("lib", 4).experiences["b"].title == redaction.GONE


def test_a_repeat_of_the_request_is_not_answered_with_the_text(client: LedgerClient):
    """The key is known, what it stored is named, and the answer is gone."""
    new = wire.NewExperience(experience="d", title="d", body=f"from {SECRET}", stages=("correctness",))
    path = "/v1/libraries/lib/experiences"
    client._send("POST", path, body=new, key="key-d")
    client.redact("lib", wire_proofs.Redaction(reason="a person asked", experience="d"))
    with pytest.raises(errors.AnswerErasedError, match="sequences 8 to 8"):
        client._send("POST", path, body=new, key="key-d")


def test_one_blob_or_one_field_can_be_taken_out(client: LedgerClient, log: Log):
    """An actor's name in one record; a blob that a record names. What others refer to can not be taken out."""
    body = next(event for event in client.events("lib") if event.sequence == 2).payload["body"]
    records = [wire_proofs.RedactedFields(sequence=4, fields=["actor", "payload.source.name"])]
    with pytest.raises(errors.InvalidInputError, match=r"payload\.source\.name"):
        client.redact("lib", wire_proofs.Redaction(reason="r", records=records))
    records = [wire_proofs.RedactedFields(sequence=4, fields=["actor"])]
    done = client.redact("lib", wire_proofs.Redaction(reason="r", blobs=[body], records=records))
    assert (done.blobs, done.records) == ([body], [4])
    assert [event.actor for event in client.events("lib")][2:4] == ["tester", redaction.GONE]
    assert client.experience("lib", "a").body is None
    assert client.verify("lib").ok
    for fields in (["payload.experience"], ["sequence"], ["payload.body"], ["payload.nothing"], ["payload.stages"]):
        with pytest.raises(errors.InvalidInputError):
            client.redact(
                "lib",
                wire_proofs.Redaction(reason="r", records=[wire_proofs.RedactedFields(sequence=2, fields=fields)]),
            )
    with pytest.raises(errors.UnknownBlobError):
        client.redact("lib", wire_proofs.Redaction(reason="r", blobs=["0" * 64]))
    with pytest.raises(errors.InvalidInputError, match="name an experience"):
        client.redact("lib", wire_proofs.Redaction(reason="r"))
    # Twice in the same record: the second event vouches for what stands there now.
    records = [wire_proofs.RedactedFields(sequence=4, fields=["payload.title"])]
    client.redact("lib", wire_proofs.Redaction(reason="r", records=records))
    assert client.verify("lib").ok
    assert log.head("lib").sequence == 9


def test_a_change_that_only_looks_like_a_redaction_is_found(tmp_path: Path):
    """No event vouches for it, or it was changed after it was vouched for."""
    log = open_log(f"sqlite:///{tmp_path}/ledger.db")
    client = client_of(ledger_on(log), actor="tester")
    client.create_library("lib")
    new = wire.NewExperience(experience="a", title="title", body="body", stages=("correctness",))
    client.record_experience("lib", new)
    raw = sqlite3.connect(tmp_path / "ledger.db")

    def change(old: bytes, new: bytes) -> None:
        record: Any = raw.execute("SELECT record FROM events WHERE sequence = 2").fetchone()[0]
        assert old in record
        raw.execute("UPDATE events SET record = ? WHERE sequence = 2", (record.replace(old, new),))
        raw.commit()

    change(b',"payload":', b',"redacted":["payload.title"],"payload":')
    found = client.verify("lib")
    assert (found.ok, found.bad_sequence) == (False, 2)
    change(b',"redacted":["payload.title"],"payload":', b',"payload":')
    records = [wire_proofs.RedactedFields(sequence=2, fields=["payload.title"])]
    client.redact("lib", wire_proofs.Redaction(reason="r", records=records))
    assert client.verify("lib").ok
    change(b"[redacted]", b"[Redacted]")
    found = client.verify("lib")
    assert (found.ok, found.bad_sequence) == (False, 2)
    with pytest.raises(errors.LogCorruptError):
        ledger_on(log).as_of("lib", 3)
    raw.close()
    client.close()
