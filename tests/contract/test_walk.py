"""Walks of a whole log: the same events in memory, SQLite and PostgreSQL; every record checked, once or by its seal."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from benchmarks.history import draft_of, events
from ledger.domain import events as ev
from ledger.errors import LogCorruptError
from ledger.store import chain, codec, redaction, walk
from ledger.store.log import BLOCK, AnySequence, Erasure, Log, NewLibrary
from ledger.store.shelf import SEALS, Snapshot
from ledger.store.sql import SqlLog, open_log
from ledger.store.walk import Walker
from tests.contract.conftest import Opener

COUNT = 6 * BLOCK + 123
EVENTS = list(events(COUNT))


@pytest.fixture(autouse=True)
def every_seal_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "SAVED", 1)


def fill(log: Log) -> Log:
    drafts = [draft_of(event, n) for n, event in enumerate(EVENTS)]
    log.append("lib", drafts[:1000], expected=NewLibrary())
    log.append("lib", drafts[1000:], expected=AnySequence())
    log.append("lib2", drafts[:700], expected=NewLibrary())
    return log


@pytest.fixture
def full(log: Log) -> Log:
    """A library of six blocks and some, beside another one."""
    return fill(log)


@pytest.fixture
def durable(opener: Opener) -> SqlLog:
    """The same, where others than this process could change it."""
    log = fill(opener())
    assert isinstance(log, SqlLog)
    return log


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each check by the chain hashed."""
    counts: list[int] = []
    run = chain.run

    def counted(previous: bytes, records: list[bytes]) -> bytes:
        counts.append(len(records))
        return run(previous, records)

    monkeypatch.setattr(chain, "run", counted)
    return counts


def walked(log: Log, after: int = 0, until: int = COUNT) -> list[Any]:
    return [event for some in Walker(log).events("lib", after=after, until=until) for event in some]


def spoil(log: SqlLog, statement: str, **values: object) -> None:
    with log.engine.begin() as connection:
        assert connection.execute(text(statement), values).rowcount > 0


def put_record(log: SqlLog, sequence: int, record: bytes) -> None:
    statement = "UPDATE events SET record = :record WHERE library = 'lib' AND sequence = :sequence"
    spoil(log, statement, record=record, sequence=sequence)


@pytest.mark.parametrize(
    ("after", "until"),
    [(0, COUNT), (0, 1), (1, 2), (499, 501), (500, 1000), (501, 2600), (BLOCK, BLOCK), (COUNT - 1, COUNT)],
)
def test_a_walk_gives_what_was_appended(full: Log, after: int, until: int):
    """From any sequence to any other; the same without seals, while they are made, and with them."""
    assert walked(full, after, until) == EVENTS[after:until]
    assert walked(full) == EVENTS
    assert walked(full, after, until) == EVENTS[after:until]


def test_a_block_is_checked_by_the_chain_once(full: Log, links: list[int]):
    """Then by its seal; what stands behind the last whole block by the chain each time. New blocks are sealed in turn."""
    walked(full)
    assert links == [BLOCK] * 6 + [123]
    links.clear()
    walked(full)
    assert links == [123]
    full.append("lib", [draft_of(event, n) for n, event in enumerate(EVENTS[1:401])], expected=AnySequence())
    links.clear()
    walked(full, until=COUNT + 400)
    assert links == [BLOCK, 23]
    links.clear()
    walked(full, until=COUNT + 400)
    assert links == [23]


def test_what_was_appended_is_sealed_without_a_walk(full: Log, links: list[int]):
    """Only the whole blocks asked for, and only those that hold; a walk then finds their seals."""
    Walker(full).seal("lib", after=1100, until=COUNT)
    assert links == [BLOCK] * 4
    links.clear()
    assert walked(full) == EVENTS
    assert links == [BLOCK, BLOCK, 123]


def test_a_bit_that_flips_in_a_sealed_record_is_found_and_named(durable: SqlLog):
    """60 single bits, in any record of any block: each walk stops at that record, having given only what stands before."""
    walked(durable)
    rng = random.Random(20261201)
    for _ in range(60):
        sequence = rng.randint(1, COUNT)
        (item,) = durable.read("lib", after=sequence - 1, until=sequence)
        damaged = bytearray(item.record)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        put_record(durable, sequence, bytes(damaged))
        given: list[int] = []
        with pytest.raises(LogCorruptError, match=rf"sequence {sequence}\b"):
            given.extend(len(some) for some in Walker(durable).events("lib", after=0, until=COUNT))
        assert sum(given) == (sequence - 1) // BLOCK * BLOCK
        put_record(durable, sequence, item.record)
    assert walked(durable) == EVENTS


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DELETE FROM events WHERE library = 'lib' AND sequence = 777", 777),
        ("DELETE FROM events WHERE library = 'lib' AND sequence > 2900", 2901),
        ("UPDATE events SET hash = record WHERE library = 'lib' AND sequence = 1000", 1000),
        ("UPDATE events SET sequence = 99999 WHERE library = 'lib' AND sequence = 1500", 1500),
        ("UPDATE events SET library = 'lib3' WHERE library = 'lib' AND sequence = 2", 2),
    ],
)
def test_rows_that_are_gone_or_moved_are_found(durable: SqlLog, statement: str, named: int):
    """Also where every block was sealed before."""
    walked(durable)
    spoil(durable, statement)
    with pytest.raises(LogCorruptError, match=rf"sequence {named}\b"):
        walked(durable)


def test_a_walk_from_behind_a_missing_record_names_it(durable: SqlLog):
    """What it would go on from is not there."""
    spoil(durable, "DELETE FROM events WHERE library = 'lib' AND sequence = 1200")
    with pytest.raises(LogCorruptError, match=r"sequence 1200\b"):
        walked(durable, after=1200)


def test_a_record_that_is_no_longer_bytes_is_named(tmp_path: Path):
    """SQLite keeps any type in any column: the piece can not be given, and is looked at record by record."""
    log = fill(open_log(f"sqlite:///{tmp_path}/ledger.db"))
    assert isinstance(log, SqlLog)
    walked(log)
    (item,) = log.read("lib", after=1233, until=1234)
    for value in ("'text'", "17", "hex(record) || char(10)"):
        spoil(log, f"UPDATE events SET record = {value} WHERE library = 'lib' AND sequence = 1234")  # noqa: S608
        with pytest.raises(LogCorruptError, match=r"sequence 1234\b"):
            walked(log)
        put_record(log, 1234, item.record)
    spoil(log, "UPDATE events SET hash = 'text' WHERE library = 'lib' AND sequence = 1500")
    with pytest.raises(LogCorruptError, match=r"sequence 1500\b"):
        walked(log)
    log.close()


@pytest.mark.parametrize("data", [b"", b"\x01" * 31, b"\x01" * 192, bytes(192), b"\x02" * 5000])
def test_seals_that_are_wrong_change_nothing(full: Log, links: list[int], data: bytes):
    """Cut, of something else, or too many: the chain decides, and right ones take their place."""
    kept = full.hashes("lib", after=BLOCK - 1, until=BLOCK)[0]
    full.shelf.put_snapshot("lib", SEALS, Snapshot(BLOCK, kept, data))
    assert walked(full) == EVENTS
    assert sum(links) == COUNT
    links.clear()
    assert walked(full) == EVENTS
    assert links == [123]


def test_a_redacted_record_holds_before_and_after_it_is_sealed_anew(full: Log, links: list[int]):
    """The erasure drops all seals; the record passes by the event that vouches for it, then by its block's new seal."""
    walked(full)
    (item,) = full.read("lib", after=9, until=10)
    record, _ = redaction.without(item.record, ["payload.title"])
    told = ev.RedactedRecord(sequence=10, fields=("payload.title",), digest=redaction.digest(record))
    redacted = ev.ExperienceRedacted(reason="r", records=(told,))
    name, schema, payload = codec.encode(redacted)
    draft = draft_of(EVENTS[1], 0)
    full.submit(
        "lib",
        [type(draft)(name, schema, "r", draft.time, "a", None, None, payload)],
        expected=AnySequence(),
        erase=Erasure(records={10: record}, texts=("Pattern 8",)),
    ).wait()
    assert full.shelf.snapshot_sequences("lib", SEALS) == []
    assert walked(full)[9].title == redaction.GONE
    links.clear()
    assert walked(full)[9].title == redaction.GONE
    assert links == [123]
    assert chain.audit(full, "lib").ok


def test_a_walk_that_is_given_up_leaves_no_thread(full: Log):
    """Nor a reader that waits for room, nor the short turns that threads take meanwhile; walks may lie in each other."""
    usual = sys.getswitchinterval()
    with contextlib.closing(Walker(full).events("lib", after=0, until=COUNT)) as some:
        assert next(some) == EVENTS[:BLOCK]
        assert walked(full) == EVENTS
        assert sys.getswitchinterval() < usual
    assert sys.getswitchinterval() == usual
    assert not [thread for thread in threading.enumerate() if thread.name == "walk"]
