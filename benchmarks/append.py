"""Durable appends beside the raw driver and the peer, on SQLite and PostgreSQL, in turns in one run; and many callers.

`raw` is the driver alone with the same tables, statements and durability: records and hashes were made before, one
transaction inserts them and moves the head. `store` is the store's public `append`. `peer` is eventsourcing's
`Application.save` (see `peers/sourced.py`). Cells are medians over rounds, ratios medians of each round's own ratio;
`sync` is how many bare 4 KiB write-and-sync calls a second the disk did beside them.

    python -m benchmarks.append [--quick]
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.history import draft_of, events
from benchmarks.serving import over_http
from ledger.store import chain, migrate
from ledger.store.engine import make_engine
from ledger.store.log import AnySequence, Draft, Head, Log, NewLibrary
from ledger.store.sql import open_log
from tests.postgres import NoPostgresError, running

SIZES = (1, 10, 100)
CALLERS = 32
_INSERT = "INSERT INTO events (library, sequence, type, record, hash) VALUES ({0}, {0}, {0}, {0}, {0})"
_MOVE = "UPDATE libraries SET sequence = {0}, hash = {0} WHERE name = {0}"
HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"


def drafts(count: int) -> list[Draft]:
    """Value updates, about 400 bytes each as stored."""
    found = [event for event in events(2_000) if type(event).__name__ == "ValueUpdated"]
    return [draft_of(found[n % len(found)], n) for n in range(count)]


class Raw:
    """The driver alone."""

    def __init__(self, url: str) -> None:
        log = open_log(url)
        self.head = log.append("raw", drafts(1), expected=NewLibrary())
        log.close()
        self.connection: Any
        if url.startswith("sqlite"):
            self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
            self.connection.execute("PRAGMA synchronous=FULL")
            self._begin, mark = "BEGIN IMMEDIATE", "?"
        else:
            import psycopg  # noqa: PLC0415 - where there is a server

            self.connection = psycopg.connect(url, autocommit=True)
            self._begin, mark = "BEGIN", "%s"
        self._insert, self._move = _INSERT.format(mark), _MOVE.format(mark)

    def rate(self, count: int, seconds: float) -> float:
        """Events a second, with the making of rows outside the clock."""
        batch, done, spent = drafts(count), 0, 0.0
        while spent < seconds:
            rows = [("raw", r.sequence, r.type, r.record, r.hash) for r in chain.extend("raw", self.head, batch)]
            start = time.perf_counter()
            cursor = self.connection.cursor()
            cursor.execute(self._begin)
            cursor.executemany(self._insert, rows)
            cursor.execute(self._move, (rows[-1][1], rows[-1][4], "raw"))
            cursor.execute("COMMIT")
            spent += time.perf_counter() - start
            self.head = Head(rows[-1][1], rows[-1][4])
            done += count
        return done / spent


class Peer:
    """The peer's process; None answers where it is not installed."""

    def __init__(self, *where: str) -> None:
        self.process = None
        if not PYTHON.exists():
            return
        command = [str(PYTHON), str(HERE / "peers" / "sourced.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        self.version = self._answer()
        self.ask(*where)

    def ask(self, *words: Any) -> Any:
        """One question, one answer."""
        if self.process is None or self.process.stdin is None:
            return None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        if self.process is None or self.process.stdout is None:
            return None
        line = self.process.stdout.readline()
        if not line:
            self.process = None
            return None
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def syncs(folder: Path, seconds: float) -> float:
    """How many writes of 4 KiB the disk makes last in a second."""
    file = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        os.pwrite(file, bytes(4096), done % 64 * 4096)
        os.fdatasync(file)
        done += 1
    os.close(file)
    return done / elapsed


def rate(step: Callable[[], object], count: int, seconds: float) -> float:
    """Events a second of `step`, which appends `count`."""
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        step()
        done += count
    return done / elapsed


def many(log: Log, callers: int, seconds: float) -> float:
    """Events a second of callers that append one event each, again and again."""
    (draft,) = drafts(1)
    start = time.perf_counter()

    def work(_: int) -> int:
        done = 0
        while time.perf_counter() - start < seconds:
            log.append("store", [draft], expected=AnySequence())
            done += 1
        return done

    with ThreadPoolExecutor(callers) as pool:
        return sum(pool.map(work, range(callers))) / (time.perf_counter() - start)


def databases(stack: ExitStack, folder: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, URL and the peer's words for each database there is."""
    yield "SQLite", f"sqlite:///{folder}/ours.db", ("sqlite", str(folder / "peer.db"))
    try:
        server = stack.enter_context(running())
    except NoPostgresError as error:
        print(f"PostgreSQL: skipped, {error}")
        return
    url, other = server.url(), server.url()
    engine = make_engine(url)
    migrate.upgrade(engine)
    engine.dispose()
    yield "PostgreSQL", url, ("postgres", "127.0.0.1", str(server.port), "sagebook", other.rsplit("/", 1)[1])


def _cell(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):>12,.0f}" if known else f"{'-':>12}"


def _ratio(above: list[float | None], below: list[float | None]) -> str:
    found = [a / b for a, b in zip(above, below, strict=True) if a is not None and b]
    return f"{statistics.median(found):>12.2f}" if found else f"{'-':>12}"


def measure(name: str, url: str, where: tuple[str, ...], folder: Path, rounds: int, seconds: float) -> None:
    """The tables of one database."""
    log, raw, peer = open_log(url), Raw(url), Peer(*where)
    log.append("store", drafts(1), expected=NewLibrary())
    print(f"\n{name}: events/s, one caller; peer: eventsourcing {getattr(peer, 'version', 'not installed')}")
    heads = ("raw", "store", "peer", "store/raw", "peer/raw", "store/peer", "sync/s")
    print(f"{'events/tx':>10}" + "".join(f"{head:>12}" for head in heads))
    for count in SIZES:
        batch = drafts(count)
        columns: list[list[float | None]] = [[], [], [], []]
        for _ in range(rounds):
            columns[0].append(raw.rate(count, seconds))
            columns[1].append(rate(partial(log.append, "store", batch, expected=AnySequence()), count, seconds))
            columns[2].append(peer.ask("append", count, seconds))
            columns[3].append(syncs(folder, seconds / 3))
        floor, ours, theirs, disk = columns
        ratios = _ratio(ours, floor) + _ratio(theirs, floor) + _ratio(ours, theirs)
        print(f"{count:>10}{_cell(floor)}{_cell(ours)}{_cell(theirs)}{ratios}{_cell(disk)}")
    concurrent(name, url, log, folder, rounds, seconds)
    raw.connection.close()
    peer.close()
    log.close()


def concurrent(name: str, url: str, log: Log, folder: Path, rounds: int, seconds: float) -> None:
    """Many callers against one, in the store and through HTTP."""
    one: list[float] = []
    many_: list[float] = []
    probe: list[float] = []
    http_one: list[float] = []
    http_many: list[float] = []
    for _ in range(rounds):
        one.append(many(log, 1, seconds))
        many_.append(many(log, CALLERS, seconds))
        probe.append(syncs(folder, seconds / 3))
    with over_http(url, folder) as serving:
        for _ in range(rounds):
            http_one.append(serving(1, 2 * seconds))
            http_many.append(serving(CALLERS, 2 * seconds))
    middle = statistics.median
    times = middle(a / b for a, b in zip(many_, one, strict=True))
    print(
        f"{name}: {CALLERS} callers of one event each {middle(many_):,.0f} events/s, one caller {middle(one):,.0f}: "
        f"{times:.1f} times (sync/s {middle(probe):,.0f})"
    )
    print(
        f"{name}: through HTTP, each recording an experience: {CALLERS} callers {middle(http_many):,.0f}/s, one "
        f"{middle(http_one):,.0f}/s; HTTP, client and decisions take {1 - middle(http_many) / middle(many_):.0%} of "
        f"the time of {CALLERS} callers"
    )


def main() -> None:
    """Print the tables."""
    rounds, seconds = (3, 0.4) if "--quick" in sys.argv else (7, 1.0)
    where = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, {where}, medians of {rounds} rounds")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        for database in databases(stack, Path(name)):
            measure(*database, Path(name), rounds, seconds)


if __name__ == "__main__":
    main()
