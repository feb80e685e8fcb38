"""Callers of one library decide one after the other and are made durable together."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger import errors, wire
from ledger.commands import experiences, libraries
from ledger.service import Call, Ledger
from ledger.store import chain
from ledger.store.committer import Append
from ledger.store.sql import SqlLog, open_log


class Gate:
    """Lets transactions through while it is open, and counts them."""

    def __init__(self, log: SqlLog) -> None:
        self.open = threading.Event()
        self.open.set()
        self.sizes: list[int] = []
        self._transact = log.writer._transact
        log.writer._transact = self.pass_through  # type: ignore[method-assign]

    def pass_through(self, items: list[Append]) -> None:
        self.open.wait()
        self.sizes.append(len(items))
        self._transact(items)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def log(file: Path) -> SqlLog:
    opened = open_log(f"sqlite:///{file}")
    assert isinstance(opened, SqlLog)
    return opened


@pytest.fixture
def ledger(log: SqlLog) -> Iterator[Ledger]:
    numbers = itertools.count()
    made = Ledger(log, now=lambda: "2026-01-02T03:04:05Z", new_id=lambda: f"id{next(numbers)}")
    libraries.create(made, Call("t"), wire.NewLibrary(library="lib"))
    yield made
    made.close()


def record(ledger: Ledger, name: str, key: str | None = None) -> wire.Experience | bytes:
    new = wire.NewExperience(experience=name, title=f"title {name}", body=f"body {name}", stages=("correctness",))
    return experiences.record(ledger, Call("t", key, name.encode()), "lib", new)


def names(ledger: Ledger) -> list[str]:
    with ledger.reading("lib") as state:
        return list(state.experiences)


def test_sixteen_callers_of_one_library_share_commits(ledger: Ledger, log: SqlLog):
    """Each is answered with its own sequence, the chain is dense, and the transactions are far fewer than the calls."""
    gate = Gate(log)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: record(ledger, f"e{n}"), range(96)))
    assert sorted(a.recorded for a in answers if isinstance(a, wire.Experience)) == list(range(2, 98))
    assert len(gate.sizes) <= 48
    assert chain.audit(log, "lib").events == 97
    assert sorted(names(ledger)) == sorted(f"e{n}" for n in range(96))


def test_a_reader_waits_for_what_is_not_durable_yet(ledger: Ledger, log: SqlLog):
    """While a commit is held up, a state that shows its event is not handed out."""
    gate = Gate(log)
    gate.open.clear()
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(record, ledger, "a")
        while not ledger._opened["lib"].keys and ledger._opened["lib"].pending is None:
            pass
        reading = pool.submit(names, ledger)
        with pytest.raises(TimeoutError):
            reading.result(timeout=0.2)
        assert not writing.done()
        gate.open.set()
        assert reading.result(timeout=5) == ["a"]
        assert isinstance(writing.result(timeout=5), wire.Experience)


def _stand_in_line(ledger: Ledger, gate: Gate, pool: ThreadPoolExecutor, *calls: tuple[str, str | None]):
    """Send the calls one after the other while no transaction goes through."""
    gate.open.clear()
    waiting = []
    for name, key in calls:
        before = ledger._opened["lib"].pending
        waiting.append(pool.submit(record, ledger, name, key))
        while ledger._opened["lib"].pending is before and not waiting[-1].done():
            pass
    return waiting


def test_what_was_decided_on_an_append_that_failed_is_decided_again(ledger: Ledger, log: SqlLog, file: Path):
    """The database refuses the first event; its caller is told, and the one behind it takes its sequence."""
    raw = sqlite3.connect(file)
    raw.execute(
        'CREATE TRIGGER fault BEFORE INSERT ON events WHEN instr(CAST(NEW.record AS TEXT), \'"experience":"bad"\') '
        "BEGIN SELECT RAISE(ABORT, 'injected'); END"
    )
    raw.commit()
    raw.close()
    with ThreadPoolExecutor(2) as pool:
        gate = Gate(log)
        bad, good = _stand_in_line(ledger, gate, pool, ("bad", None), ("good", None))
        gate.open.set()
        with pytest.raises((errors.LogCorruptError, errors.StoreUnavailableError)):
            bad.result(timeout=5)
        answer = good.result(timeout=5)
    assert isinstance(answer, wire.Experience)
    assert answer.recorded == 2
    assert names(ledger) == ["good"]
    assert chain.audit(log, "lib").events == 2


def test_a_repeat_that_overtakes_the_commit_gets_the_first_answer(ledger: Ledger, log: SqlLog):
    """The same key twice, the first not durable yet: one event, one answer, sent twice."""
    with ThreadPoolExecutor(2) as pool:
        gate = Gate(log)
        gate.open.clear()
        first = pool.submit(record, ledger, "a", "key")
        while "key" not in ledger._opened["lib"].keys:
            pass
        second = pool.submit(record, ledger, "a", "key")
        gate.open.set()
        answer, again = first.result(timeout=5), second.result(timeout=5)
    assert isinstance(answer, wire.Experience)
    assert again == answer.model_dump_json(by_alias=True).encode()
    assert log.head("lib").sequence == 2


def test_a_refusal_is_told_once_its_reason_is_durable(ledger: Ledger, log: SqlLog):
    """An experience that stands in line refuses a second of its name, but only when it is stored."""
    with ThreadPoolExecutor(2) as pool:
        gate = Gate(log)
        gate.open.clear()
        first = pool.submit(record, ledger, "a")
        while ledger._opened["lib"].pending is None:
            pass
        second = pool.submit(record, ledger, "a")
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        gate.open.set()
        assert isinstance(first.result(timeout=5), wire.Experience)
        with pytest.raises(errors.ExperienceExistsError):
            second.result(timeout=5)
