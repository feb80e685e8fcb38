"""What a log that outlives its process promises besides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ledger.errors import SequenceConflictError
from ledger.store import chain
from ledger.store.log import Answer, AnySequence, AtSequence, Draft, Idempotency, Log, NewLibrary


def draft(number: int) -> Draft:
    return Draft("test.happened", 1, str(number), "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"%d" % number))


def test_reopening_finds_everything(opener: Callable[[], Log]):
    """Records, head, answers and blobs are there after a close, and the log goes on."""
    sha256 = hashlib.sha256(b"text").hexdigest()
    log = opener()
    head = log.append(
        "lib", [draft(1)], expected=NewLibrary(), idempotency=Idempotency("k", b"d", b"a"), blobs={sha256: b"text"}
    )
    rows = list(log.read("lib"))
    log.close()
    again = opener()
    assert again.head("lib") == head
    assert list(again.read("lib")) == rows
    assert again.answer("lib", "k") == Answer(b"d", 1, 1, b"a")
    assert again.blob(sha256) == b"text"
    assert again.append("lib", [draft(2)], expected=AtSequence(1)).sequence == 2


def test_two_logs_on_one_database_see_each_other(opener: Callable[[], Log]):
    """What one appended, the other reads at once, and neither can append where the other already has."""
    one, two = opener(), opener()
    one.append("lib", [draft(1)], expected=NewLibrary())
    assert two.head("lib") == one.head("lib")
    two.append("lib", [draft(2)], expected=AtSequence(1))
    with pytest.raises(SequenceConflictError):
        one.append("lib", [draft(3)], expected=AtSequence(1))
    assert [row.sequence for row in one.read("lib")] == [1, 2]


def test_two_logs_racing_leave_no_gap(opener: Callable[[], Log]):
    """Each is written by two threads; the chain holds from the first record to the last."""
    logs = [opener(), opener()]
    logs[0].append("lib", [draft(0)], expected=NewLibrary())

    def write(log: Log) -> None:
        for _ in range(20):
            log.append("lib", [draft(1), draft(2)], expected=AnySequence())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, logs * 2))
    assert chain.audit(logs[1], "lib").events == 161


def test_many_opened_at_once_on_a_new_database(opener: Callable[[], Log]):
    """Six openers race to make the tables; all of them work afterwards."""
    with ThreadPoolExecutor(6) as pool:
        logs = list(pool.map(lambda _: opener(), range(6)))
    logs[0].append("lib", [draft(1)], expected=NewLibrary())
    assert {log.head("lib").sequence for log in logs} == {1}
