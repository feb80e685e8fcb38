"""Following by sequence: no event is skipped, doubled or out of order, whoever writes and whatever fails meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest

from ledger.errors import SequenceConflictError, StoreUnavailableError
from ledger.store.log import AnySequence, AtSequence, Draft, Log, NewLibrary

WRITERS = 16
EACH = 12


def draft(text: str, payload: object = None) -> Draft:
    raw = msgspec.Raw(msgspec.json.encode(text)) if payload is None else payload
    return Draft("test.happened", 1, text, "2026-01-02T03:04:05Z", "t", None, None, raw)  # type: ignore[arg-type]


class Follower(threading.Thread):
    """Reads behind the last sequence that it saw, again and again, woken by the bell or after a while."""

    def __init__(self, log: Log, poll: float) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.stop = threading.Event()
        self.woken = threading.Event()
        self._log = log
        self._poll = poll
        self.end = log.bell.listen("lib", self.woken.set)

    def run(self) -> None:
        while True:
            last = self.stop.is_set()
            self.woken.clear()
            found = [row.sequence for row in self._log.read("lib", after=self.seen[-1] if self.seen else 0)]
            self.seen.extend(found)
            if last:
                self.end()
                return
            self.woken.wait(self._poll)


def write(log: Log, number: int) -> int:
    """Appends of one, two or three events, some of which are refused or stall before they are sent; how many stood."""
    rng = random.Random(number)
    stood = 0
    for index in range(EACH):
        names = [f"{number}-{index}-{part}" for part in range(rng.randint(1, 3))]
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0, 0.02))
        try:
            if rng.random() < 0.3:
                log.append("lib", [draft(name) for name in names], expected=AtSequence(log.head("lib").sequence))
            elif rng.random() < 0.2:
                log.append("lib", [*map(draft, names), draft("bad", object())], expected=AnySequence())
            else:
                log.append("lib", [draft(name) for name in names], expected=AnySequence())
        except (SequenceConflictError, TypeError):
            continue
        stood += len(names)
    return stood


def test_a_follower_misses_nothing_of_sixteen_writers(opener: Callable[[], Log]):
    """Three logs, as three services would be, with stalls, lost races and refused batches; two readers of a fourth."""
    logs = [opener() for _ in range(3)]
    logs[0].append("lib", [draft("first")], expected=NewLibrary())
    reading = opener()
    followers = [Follower(reading, 0.005), Follower(reading, 60.0 if reading is logs[0] else 0.05)]
    for follower in followers:
        follower.start()
    with ThreadPoolExecutor(WRITERS) as pool:
        stood = sum(pool.map(lambda number: write(logs[number % 3], number), range(WRITERS)))
    for follower in followers:
        follower.stop.set()
        follower.woken.set()
        follower.join()
        assert follower.seen == list(range(1, stood + 2))


def _opened(opener: Callable[[], Log], url: str) -> tuple[Log, Log]:
    if not url.startswith("postgresql"):
        pytest.skip("word between processes is PostgreSQL's; a SQLite file has one writer and is looked at again")
    return opener(), opener()


def _listening(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sagebook-listen'")
        return int((found.fetchone() or (0,))[0])


def test_another_process_is_woken_by_the_database(opener: Callable[[], Log], durable_url: str):
    """An append through one log rings the bell of another at once, without polling."""
    writing, reading = _opened(opener, durable_url)
    writing.append("lib", [draft("1")], expected=NewLibrary())
    rung = threading.Event()
    end = reading.bell.listen("lib", rung.set)
    while not _listening(durable_url):
        time.sleep(0.01)
    time.sleep(0.1)
    rung.clear()
    writing.append("lib", [draft("2")], expected=AnySequence())
    assert rung.wait(3.0)
    end()


def test_killing_the_listening_connection_loses_nothing(opener: Callable[[], Log], durable_url: str):
    """It is cut again and again while 60 events are written; the follower, which polls once a minute, has them all."""
    writing, reading = _opened(opener, durable_url)
    writing.append("lib", [draft("0")], expected=NewLibrary())
    follower = Follower(reading, 60.0)
    follower.start()
    with psycopg.connect(durable_url, autocommit=True) as admin:
        for number in range(60):
            writing.append("lib", [draft(str(number))], expected=AnySequence())
            if number % 15 == 7:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sagebook-listen'"
                )
    until = time.monotonic() + 10
    while len(follower.seen) < 61 and time.monotonic() < until:
        time.sleep(0.02)
    assert follower.seen == list(range(1, 62))
    follower.stop.set()
    follower.woken.set()
    follower.join()


def test_a_cut_writer_connection_is_made_again(opener: Callable[[], Log], durable_url: str):
    """The server ends every connection between two appends; the next append is sent again on a new one."""
    writing, _ = _opened(opener, durable_url)
    writing.append("lib", [draft("0")], expected=NewLibrary())
    with psycopg.connect(durable_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()"
        )
    try:
        head = writing.append("lib", [draft("1")], expected=AtSequence(1))
    except StoreUnavailableError:  # pragma: no cover - only where the new connection is refused, too
        pytest.fail("a cut connection was not made again")
    assert head == writing.head("lib")
    assert head.sequence == 2
