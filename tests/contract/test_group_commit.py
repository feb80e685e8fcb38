"""Appends that wait at the same time share a transaction, and nothing else."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from ledger.errors import IdempotencyConflictError, SequenceConflictError, UnknownLibraryError
from ledger.store import chain
from ledger.store.committer import Append, Committer
from ledger.store.log import Answer, AnySequence, AtSequence, Draft, Head, Idempotency, Log, NewLibrary
from ledger.store.sql import SqlLog


def draft(number: int = 0, payload: Any = None) -> Draft:
    raw = msgspec.Raw(b"%d" % number) if payload is None else payload
    return Draft("test.happened", 1, f"id-{number}", "2026-01-02T03:04:05Z", "tester", None, None, raw)


@pytest.fixture
def sql(opener: Callable[[], Log]) -> SqlLog:
    log = opener()
    assert isinstance(log, SqlLog)
    return log


def test_batches_in_line_are_committed_together(sql: SqlLog, monkeypatch: pytest.MonkeyPatch):
    """Six appends to three libraries, put in line before anyone waits, are one transaction, each with its own head."""
    transactions = []
    transact = sql.writer._transact
    monkeypatch.setattr(sql.writer, "_transact", lambda items: (transactions.append(len(items)), transact(items))[1])
    waiting = [sql.submit(name, [draft(1)], expected=NewLibrary()) for name in ("b", "a", "c")]
    waiting += [sql.submit(name, [draft(2), draft(3)], expected=AtSequence(1)) for name in ("a", "b", "c")]
    assert [item.wait().sequence if isinstance(item.wait(), Head) else None for item in waiting] == [1, 1, 1, 3, 3, 3]
    assert transactions == [6]
    assert [chain.audit(sql, name).events for name in ("a", "b", "c")] == [3, 3, 3]


def test_a_refusal_in_a_shared_transaction_is_its_callers_alone(sql: SqlLog):
    """A lost race, a reused key, an unknown library and an event that can not be written fail; their neighbours stand."""
    sql.append("lib", [draft(1)], expected=NewLibrary(), idempotency=Idempotency("k", b"d", b"a"))
    good = [sql.submit("lib", [draft(2)], expected=AtSequence(1))]
    lost = sql.submit("lib", [draft(9)], expected=AtSequence(1))
    reused = sql.submit("lib", [draft(9)], expected=AnySequence(), idempotency=Idempotency("k", b"other", b""))
    absent = sql.submit("none", [draft(9)], expected=AnySequence())
    broken = sql.submit("lib", [draft(8), draft(9, payload=object())], expected=AnySequence())
    repeat = sql.submit("lib", [draft(9)], expected=AnySequence(), idempotency=Idempotency("k", b"d", b""))
    good.append(sql.submit("lib", [draft(3)], expected=AtSequence(2)))
    for item, error in (
        (lost, SequenceConflictError), (reused, IdempotencyConflictError), (absent, UnknownLibraryError), (broken, TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            item.wait()
    assert repeat.wait() == Answer(b"d", 1, 1, b"a")
    assert [item.wait() for item in good] == [Head(2, list(sql.read("lib"))[1].hash), sql.head("lib")]
    assert [row.record.rsplit(b":", 1)[1] for row in sql.read("lib")] == [b"1}", b"2}", b"3}"]


def test_one_key_twice_in_a_transaction_is_stored_once(sql: SqlLog):
    """The second gets the first one's answer, although neither was committed when they were decided."""
    sql.append("lib", [draft(1)], expected=NewLibrary())
    both = [
        sql.submit("lib", [draft(2)], expected=AnySequence(), idempotency=Idempotency("k", b"d", b"first"))
        for _ in range(2)
    ]
    assert [item.wait() for item in both] == [sql.head("lib"), Answer(b"d", 2, 2, b"first")]
    assert sql.head("lib").sequence == 2


def test_what_the_database_refuses_in_one_append_fails_no_other(sql: SqlLog):
    """A NUL in a library's name is no text for PostgreSQL, and a lone surrogate none for SQLite: its neighbours stand."""
    bad = "\x00" if sql.engine.dialect.name == "postgresql" else "\ud800"
    waiting = [sql.submit(name, [draft(1)], expected=NewLibrary()) for name in ("a", bad, "b")]
    assert waiting[0].wait() == sql.head("a")
    with pytest.raises(Exception, match=r"failed|surrogate|NUL"):
        waiting[1].wait()
    assert waiting[2].wait() == sql.head("b")
    assert sql.libraries() == ("a", "b")


def test_many_callers_need_few_commits(sql: SqlLog, monkeypatch: pytest.MonkeyPatch):
    """16 threads append 10 events each to four libraries: dense chains, and far fewer transactions than appends."""
    commits = []
    commit = sql.writer.committer._commit
    monkeypatch.setattr(sql.writer.committer, "_commit", lambda items: (commits.append(len(items)), commit(items))[1])
    for number in range(4):
        sql.append(f"lib{number}", [draft(0)], expected=NewLibrary())
    commits.clear()
    start = threading.Barrier(16)

    def write(number: int) -> None:
        start.wait()
        for index in range(10):
            sql.append(f"lib{number % 4}", [draft(index)], expected=AnySequence())

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    assert sum(commits) == 160
    assert len(commits) <= 60
    assert [chain.audit(sql, f"lib{number}").events for number in range(4)] == [41] * 4


def test_an_interrupted_leader_leaves_nobody_waiting():
    """Who led is stopped in the middle: those behind it are told so, and the next one leads."""
    calls = []

    def commit(items: list[Append]) -> None:
        calls.append(len(items))
        if len(calls) == 1:
            raise KeyboardInterrupt
        for item in items:
            item.outcome = Head(1, b"")

    committer = Committer(commit)
    first, second = (Append(committer, "lib", [], AnySequence(), None, {}) for _ in range(2))
    committer.put(first)
    committer.put(second)
    with pytest.raises(KeyboardInterrupt):
        first.wait()
    with pytest.raises(Exception, match="KeyboardInterrupt"):
        second.wait()
    third = Append(committer, "lib", [], AnySequence(), None, {})
    committer.put(third)
    assert third.wait() == Head(1, b"")


def test_a_leader_that_is_interrupted_while_it_gathers_gives_up_the_lead(monkeypatch: pytest.MonkeyPatch):
    """Nothing of its batch was begun, and the next one that waits commits all of it."""
    batches: list[int] = []

    def commit(items: list[Append]) -> None:
        batches.append(len(items))
        for item in items:
            item.outcome = Head(1, b"")

    def interrupted() -> None:
        raise KeyboardInterrupt

    committer = Committer(commit)
    first, second = (Append(committer, "lib", [], AnySequence(), None, {}) for _ in range(2))
    committer.put(first)
    committer.put(second)
    with monkeypatch.context() as patch:
        patch.setattr(committer, "_gather", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.wait()
    assert second.wait() == first.wait() == Head(1, b"")
    assert batches == [2]


@pytest.mark.parametrize("stands_first", [True, False])
def test_who_is_interrupted_while_it_waits_holds_nobody_up(*, stands_first: bool):
    """The main thread stands in line, before another or after it, and is sent away by a signal; the other is answered."""
    begun, go_on = threading.Event(), threading.Event()

    def commit(items: list[Append]) -> None:
        if not begun.is_set():
            begun.set()
            go_on.wait()
        for item in items:
            item.outcome = Head(1, b"")

    def sent_away(*_: object) -> None:
        raise KeyboardInterrupt

    def in_line(item: Append) -> None:
        while not item.gates:
            time.sleep(0.001)

    committer = Committer(commit)
    leading, mine, other = (Append(committer, "lib", [], AnySequence(), None, {}) for _ in range(3))
    committer.put(leading)
    with ThreadPoolExecutor(2) as pool:
        led = pool.submit(leading.wait)
        begun.wait()
        for item in (mine, other) if stands_first else (other, mine):
            committer.put(item)
        answered = pool.submit(other.wait)
        in_line(other)
        before = signal.signal(signal.SIGALRM, sent_away)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                mine.wait()
        finally:
            signal.signal(signal.SIGALRM, before)
            go_on.set()
        assert led.result(10) == answered.result(10) == Head(1, b"")
    assert mine.gates == []
    assert mine.wait() == Head(1, b"")
