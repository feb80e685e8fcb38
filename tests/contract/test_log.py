"""What every log promises."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ledger.errors import (
    BlobMismatchError,
    IdempotencyConflictError,
    InvalidInputError,
    LibraryExistsError,
    SequenceConflictError,
    UnknownBlobError,
    UnknownLibraryError,
)
from ledger.store import chain
from ledger.store.log import ABSENT, Answer, AnySequence, AtSequence, Draft, Head, Idempotency, Log, NewLibrary


def draft(number: int = 0, kind: str = "test.happened") -> Draft:
    payload = msgspec.Raw(b'{"number":%d}' % number)
    return Draft(kind, 1, f"id-{number}", "2026-01-02T03:04:05Z", "tester", None, "s1", payload)


def numbers(log: Log, library: str = "lib", **range_: int) -> list[int]:
    return [msgspec.json.decode(row.record)["payload"]["number"] for row in log.read(library, **range_)]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- expectations ---------------------------------------------------------------------------------------------------


def test_the_first_append_opens_the_library(log: Log):
    """NewLibrary opens it; the head is the last record's sequence and hash."""
    head = log.append("lib", [draft(1), draft(2)], expected=NewLibrary())
    first, second = log.read("lib")
    assert head == Head(2, second.hash) == log.head("lib")
    assert first.hash == hashlib.sha256(bytes(32) + first.record).digest()
    assert second.hash == hashlib.sha256(first.hash + second.record).digest()


def test_a_record_is_canonical_json_with_its_place(log: Log):
    """Keys in their fixed order, no blanks, payload as it came."""
    log.append("lib", [draft(7)], expected=NewLibrary())
    (row,) = log.read("lib")
    assert (row.sequence, row.type) == (1, "test.happened")
    assert row.record == (
        b'{"library":"lib","sequence":1,"type":"test.happened","schema":1,"id":"id-7","time":"2026-01-02T03:04:05Z",'
        b'"actor":"tester","task":null,"stage":"s1","payload":{"number":7}}'
    )


def test_an_absent_library_has_the_zero_head_and_no_records(log: Log):
    """Sequence 0 and 32 zero bytes; reading it gives nothing."""
    assert log.head("lib") == ABSENT == Head(0, bytes(32))
    assert list(log.read("lib")) == []
    assert log.libraries() == ()


def test_sequence_zero_expects_no_library(log: Log):
    """AtSequence(0) opens a library, and loses where there is one."""
    log.append("lib", [draft()], expected=AtSequence(0))
    with pytest.raises(SequenceConflictError):
        log.append("lib", [draft()], expected=AtSequence(0))


def test_appending_where_expected(log: Log):
    """AtSequence holds only at the head."""
    log.append("lib", [draft(1), draft(2)], expected=NewLibrary())
    assert log.append("lib", [draft(3)], expected=AtSequence(2)).sequence == 3
    for wrong in (2, 4):
        with pytest.raises(SequenceConflictError) as caught:
            log.append("lib", [draft(9)], expected=AtSequence(wrong))
        assert caught.value.facts == {"library": "lib", "expected": wrong, "found": 3}
    assert numbers(log) == [1, 2, 3]


def test_any_sequence_appends_at_the_end(log: Log):
    """AnySequence takes the head as it is."""
    log.append("lib", [draft(1)], expected=NewLibrary())
    assert log.append("lib", [draft(2)], expected=AnySequence()).sequence == 2


def test_a_library_is_opened_once(log: Log):
    """NewLibrary is refused where there is one, whatever it holds."""
    log.append("lib", [draft()], expected=NewLibrary())
    with pytest.raises(LibraryExistsError):
        log.append("lib", [draft()], expected=NewLibrary())


@pytest.mark.parametrize("expected", [AnySequence(), AtSequence(3)])
def test_an_absent_library_can_not_be_continued(log: Log, expected: AnySequence | AtSequence):
    """Anything but an opening names the library that is missing, and leaves nothing behind."""
    with pytest.raises(UnknownLibraryError):
        log.append("lib", [draft()], expected=expected, blobs={sha(b"x"): b"x"})
    assert log.libraries() == ()
    assert not log.has_blob(sha(b"x"))


def test_an_empty_batch_moves_nothing_and_opens_nothing(log: Log):
    """It may still carry an answer or a blob."""
    with pytest.raises(InvalidInputError):
        log.append("lib", [], expected=NewLibrary())
    before = log.append("lib", [draft()], expected=NewLibrary())
    after = log.append("lib", [], expected=AnySequence(), idempotency=Idempotency("k", b"d", b"nothing to do"))
    assert after == before == log.head("lib")
    assert log.answer("lib", "k") == Answer(b"d", 2, 1, b"nothing to do")


def test_libraries_are_streams_of_their_own(log: Log):
    """Each has its sequence, chain and idempotency keys."""
    for name in ("b", "a", "ß/c"):
        log.append(name, [draft(1)], expected=NewLibrary(), idempotency=Idempotency("k", name.encode(), b""))
    log.append("a", [draft(2)], expected=AtSequence(1))
    assert log.libraries() == ("a", "b", "ß/c")
    assert (numbers(log, "a"), numbers(log, "b")) == ([1, 2], [1])
    assert all(chain.audit(log, name).ok for name in log.libraries())


# --- idempotency ----------------------------------------------------------------------------------------------------


def test_a_repeated_key_gets_the_first_answer(log: Log):
    """Nothing is stored twice, and the expectation that held then is not asked for again."""
    key = Idempotency("key", b"digest", b"first answer")
    assert log.append("lib", [draft(1), draft(2)], expected=NewLibrary(), idempotency=key) == log.head("lib")
    again = Idempotency("key", b"digest", b"second answer")
    kept = log.append("lib", [draft(1), draft(2)], expected=NewLibrary(), idempotency=again)
    assert kept == Answer(b"digest", 1, 2, b"first answer") == log.answer("lib", "key")
    assert numbers(log) == [1, 2]


def test_a_key_with_other_content_is_refused(log: Log):
    """The same key and another digest is an error, and nothing is stored."""
    log.append("lib", [draft(1)], expected=NewLibrary(), idempotency=Idempotency("key", b"one", b""))
    with pytest.raises(IdempotencyConflictError):
        log.append("lib", [draft(2)], expected=AnySequence(), idempotency=Idempotency("key", b"two", b""))
    assert numbers(log) == [1]


def test_a_refused_append_keeps_no_answer(log: Log):
    """A key is used up by what was stored, not by what was refused."""
    log.append("lib", [draft(1)], expected=NewLibrary())
    key = Idempotency("key", b"digest", b"")
    with pytest.raises(SequenceConflictError):
        log.append("lib", [draft(2)], expected=AtSequence(7), idempotency=key)
    assert log.answer("lib", "key") is None
    assert log.append("lib", [draft(2)], expected=AtSequence(1), idempotency=key) == log.head("lib")


def test_one_key_sent_by_many_at_once_is_stored_once(log: Log):
    """Eight threads send the same request: one stores it, the others get its answer."""
    log.append("lib", [draft(0)], expected=NewLibrary())
    start = threading.Barrier(8)

    def send(_: int) -> Head | Answer:
        start.wait()
        return log.append("lib", [draft(1)], expected=AnySequence(), idempotency=Idempotency("k", b"d", b"a"))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(send, range(8)))
    assert sum(isinstance(result, Head) for result in results) == 1
    assert [result for result in results if isinstance(result, Answer)] == [Answer(b"d", 2, 2, b"a")] * 7
    assert numbers(log) == [0, 1]


# --- atomic batches and blobs ---------------------------------------------------------------------------------------


def test_a_batch_that_breaks_in_the_middle_leaves_nothing(log: Log):
    """The third event can not be written: no event, blob, answer or head of its batch is there."""
    before = log.append("lib", [draft(1)], expected=NewLibrary())
    broken = msgspec.structs.replace(draft(4), payload=object())
    with pytest.raises(TypeError):
        log.append(
            "lib",
            [draft(2), draft(3), broken],
            expected=AnySequence(),
            idempotency=Idempotency("k", b"d", b"a"),
            blobs={sha(b"text"): b"text"},
        )
    assert log.head("lib") == before
    assert numbers(log) == [1]
    assert log.answer("lib", "k") is None
    assert not log.has_blob(sha(b"text"))
    assert log.append("lib", [draft(2)], expected=AtSequence(1)).sequence == 2


def test_blobs_are_stored_once_under_their_hash(log: Log):
    """With a batch or alone, again and again."""
    data = bytes(range(256)) * 300
    log.append("lib", [draft(1)], expected=NewLibrary(), blobs={sha(data): data, sha(b""): b""})
    log.append("lib", [draft(2)], expected=AnySequence(), blobs={sha(data): data})
    log.put_blob(sha(data), data)
    log.put_blob(sha(b"alone"), b"alone")
    assert [log.blob(sha(item)) for item in (data, b"", b"alone")] == [data, b"", b"alone"]
    assert log.has_blob(sha(data))


def test_content_under_a_wrong_hash_is_refused(log: Log):
    """Neither it nor the batch that carries it is stored."""
    with pytest.raises(BlobMismatchError):
        log.put_blob(sha(b"a"), b"b")
    with pytest.raises(BlobMismatchError):
        log.append("lib", [draft()], expected=NewLibrary(), blobs={sha(b"a"): b"b"})
    assert log.libraries() == ()
    with pytest.raises(UnknownBlobError):
        log.blob(sha(b"a"))


# --- reading --------------------------------------------------------------------------------------------------------


def test_reading_from_any_point(log: Log):
    """`after` is exclusive, `until` inclusive, `limit` a count; 2,500 records span three pages."""
    log.append("lib", [draft(n) for n in range(1, 2501)], expected=NewLibrary())
    assert numbers(log) == list(range(1, 2501))
    assert numbers(log, after=2498) == [2499, 2500]
    assert numbers(log, after=2500) == numbers(log, after=9999) == []
    assert numbers(log, after=997, until=1003) == [998, 999, 1000, 1001, 1002, 1003]
    assert numbers(log, until=0) == numbers(log, limit=0) == numbers(log, after=5, until=5) == []
    assert numbers(log, after=10, limit=3) == [11, 12, 13]
    assert numbers(log, limit=1001)[-1] == 1001
    assert numbers(log, after=-5, limit=2) == [1, 2]
    assert [row.sequence for row in log.read("lib", after=1999)] == list(range(2000, 2501))


def test_a_reader_in_the_middle_holds_no_writer_up(log: Log):
    """An open reader sees what is appended behind it before it reaches the end."""
    log.append("lib", [draft(n) for n in range(1, 1501)], expected=NewLibrary())
    reader = log.read("lib")
    assert next(reader).sequence == 1
    log.append("lib", [draft(1501)], expected=AtSequence(1500))
    assert [row.sequence for row in reader][-1] == 1501


# --- many at once ---------------------------------------------------------------------------------------------------


def test_racing_writers_leave_no_gap(log: Log):
    """Eight threads append 15 events each where they last saw the end, and retry when they lose."""
    log.append("lib", [draft(0)], expected=NewLibrary())
    start = threading.Barrier(8)
    lost = []

    def write(thread: int) -> None:
        start.wait()
        for index in range(15):
            while True:
                try:
                    log.append("lib", [draft(1 + thread * 15 + index)], expected=AtSequence(log.head("lib").sequence))
                    break
                except SequenceConflictError as error:
                    lost.append(error)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert [row.sequence for row in log.read("lib")] == list(range(1, 122))
    assert sorted(numbers(log)) == list(range(121))
    assert chain.audit(log, "lib").ok


def test_racing_openers_open_once(log: Log):
    """Of eight threads that open one library, one does and seven are told that it exists."""
    start = threading.Barrier(8)

    def create(thread: int) -> bool:
        start.wait()
        try:
            log.append("lib", [draft(thread)], expected=NewLibrary())
        except LibraryExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1
    assert log.head("lib").sequence == 1


def test_a_follower_sees_every_event_once_in_order(log: Log):
    """A reader that follows by sequence while four writers append skips nothing and repeats nothing."""
    log.append("lib", [draft(0)], expected=NewLibrary())
    seen: list[int] = []
    done = threading.Event()

    def follow() -> None:
        while True:
            last = done.is_set()
            seen.extend(row.sequence for row in log.read("lib", after=seen[-1] if seen else 0))
            if last:
                return

    follower = threading.Thread(target=follow)
    follower.start()

    def write(_: int) -> None:
        for _ in range(20):
            log.append("lib", [draft(1), draft(2)], expected=AnySequence())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    done.set()
    follower.join()
    assert seen == list(range(1, 162))


def test_auditing_while_writers_append_raises_no_false_alarm(log: Log):
    """Every audit of a growing library holds."""
    log.append("lib", [draft(0)], expected=NewLibrary())

    def write(_: int) -> None:
        for _ in range(30):
            log.append("lib", [draft(1)], expected=AnySequence())

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, n) for n in range(2)]
        verdicts = [chain.audit(log, "lib")]
        while not all(writer.done() for writer in writers):
            verdicts.append(chain.audit(log, "lib"))
    assert [verdict.reason for verdict in verdicts if not verdict.ok] == []
    assert chain.audit(log, "lib").events == 61
