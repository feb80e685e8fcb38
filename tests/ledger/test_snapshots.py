"""Snapshots are a cache: with them, without them and with damaged ones every state is the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.history import draft_of, events
from ledger.domain import events as ev
from ledger.domain.state import State, evolve, initial
from ledger.errors import LogCorruptError
from ledger.folding import KEPT, KIND, Folds
from ledger.opened import Opened
from ledger.store.log import AnySequence, Block, NewLibrary
from ledger.store.shelf import Snapshot
from ledger.store.sql import SqlLog, open_log

COUNT = 900
EVERY = 100


def history() -> list[ev.Event]:
    made = list(events(COUNT))
    conflict = ev.ConflictRecorded(conflict="c", first="experience-0001", second="experience-0002", reason="either")
    return [*made[:400], conflict, *made[400:-1]]


HISTORY = history()


def folded(until: int = COUNT) -> State:
    state = initial()
    for event in HISTORY[:until]:
        evolve(state, event)
    return state


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqlLog]:
    made = open_log(f"sqlite:///{tmp_path}/ledger.db")
    assert isinstance(made, SqlLog)
    made.append("lib", [draft_of(event, n) for n, event in enumerate(HISTORY)], expected=NewLibrary())
    yield made
    made.close()


def opened(log: SqlLog) -> Opened:
    made = Opened("lib")
    Folds(log, every=EVERY).catch_up(made)
    return made


def spoil(tmp_path: Path, statement: str, *values: object) -> None:
    raw = sqlite3.connect(tmp_path / "ledger.db")
    assert raw.execute(statement, values).rowcount > 0
    raw.commit()
    raw.close()


def test_a_library_opens_from_its_snapshot_and_what_came_after(log: SqlLog, monkeypatch: pytest.MonkeyPatch):
    """The state equals the fold from the first event, to the last field; only the 5 new events are read."""
    assert opened(log).state == folded()
    assert log.shelf.snapshot_sequences("lib", KIND) == [COUNT]
    log.append("lib", [draft_of(event, n) for n, event in enumerate(HISTORY[1:6])], expected=AnySequence())
    read = []
    blocks = log.blocks

    def reading(library: str, *, after: int, until: int) -> Iterator[Block]:
        read.append(after)
        return blocks(library, after=after, until=until)

    monkeypatch.setattr(log, "blocks", reading)
    again = opened(log).state
    assert read == [COUNT]
    expected = folded()
    for event in HISTORY[1:6]:
        evolve(expected, event)
    assert again == expected
    assert again.conflicts_of["experience-0001"][0] is again.conflicts["c"]


@pytest.mark.parametrize("at", [0, 1, 99, 100, 250, 401, 899, 900])
def test_a_state_as_of_any_sequence_is_the_fold_up_to_it(log: SqlLog, at: int):
    """Also where snapshots stand before, at and behind it."""
    folds = Folds(log, every=EVERY)
    for sequence in (100, 300, 900):
        made = Opened("lib")
        made.state = folds.as_of("lib", sequence)
        folds.keep(made)
    assert log.shelf.snapshot_sequences("lib", KIND) == [100, 300, 900]
    assert folds.as_of("lib", at) == folded(at)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshots SET data = substr(data, 1, 40) || zeroblob(8) || substr(data, 49)",
        "UPDATE snapshots SET hash = zeroblob(32)",
        "UPDATE snapshots SET sequence = sequence - 1",
        "UPDATE snapshots SET data = 'text'",
        "DELETE FROM snapshots",
    ],
)
def test_a_snapshot_that_disagrees_is_dropped(log: SqlLog, tmp_path: Path, statement: str):
    """Damaged, of another history, in another place, or gone: the log is folded again and a good one is kept."""
    opened(log)
    spoil(tmp_path, statement)
    assert opened(log).state == folded()
    kept = log.shelf.snapshot("lib", KIND, until=COUNT)
    assert kept is not None
    assert kept.hash == log.head("lib").hash


def test_a_snapshot_of_other_code_is_dropped(log: SqlLog):
    """What folded it may have folded otherwise: its mark is not this code's. One without any sense is dropped, too."""
    opened(log)
    kept = log.shelf.snapshot("lib", KIND, until=COUNT)
    assert kept is not None
    for data in (bytes(32) + kept.data[32:], kept.data[:32] + b"\xc1", b""):
        log.shelf.put_snapshot("lib", KIND, Snapshot(kept.sequence, kept.hash, data))
        assert opened(log).state == folded()
        assert log.shelf.snapshot("lib", KIND, until=COUNT) == kept


def test_few_snapshots_are_kept_the_newest_among_them(log: SqlLog):
    """After one at each 50 of 900 events twelve are left, the first far apart and the last close together."""
    folds = Folds(log, every=50)
    made = Opened("lib")
    for sequence in range(50, COUNT + 1, 50):
        made.state = folds.as_of("lib", sequence)
        folds.keep(made)
    kept = log.shelf.snapshot_sequences("lib", KIND)
    assert len(kept) == KEPT
    assert kept[-3:] == [800, 850, 900]


def test_a_changed_record_stops_an_opening(log: SqlLog, tmp_path: Path):
    """Its place is named; nothing is made of the rest."""
    spoil(tmp_path, "UPDATE events SET record = replace(record, 'threads', 'treads') WHERE sequence = 321")
    spoil(tmp_path, "UPDATE events SET record = replace(record, 'Pattern', 'Patern') WHERE sequence = 123")
    with pytest.raises(LogCorruptError, match="sequence 123"):
        opened(log)
    spoil(tmp_path, "DELETE FROM events WHERE sequence >= 100")
    with pytest.raises(LogCorruptError, match=r"sequence 100: missing: the head is at 900"):
        opened(log)


def test_beside_a_service_a_reader_keeps_none(log: SqlLog, tmp_path: Path):
    """It may not write; it opens all the same."""
    other = open_log(f"sqlite:///{tmp_path}/ledger.db")
    other.hold("http://127.0.0.1:1")
    assert opened(log).state == folded()
    assert log.shelf.snapshot_sequences("lib", KIND) == []
    other.close()
