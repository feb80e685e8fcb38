"""Durable appends at 1, 10 and 100 events a transaction: the store beside the raw sqlite3 driver, in turns in one run.

Both write the same tables with the same durability (WAL, synchronous=FULL, BEGIN IMMEDIATE) and the same record bytes.
`raw` inserts records and hashes that were made before the clock started and moves the head: the floor for this layout.
`raw + work` makes the records and the hash chain inside the clock, as any such log must, and reads the head first.
`store` is `ledger.store.sql.SqlLog.append`. Ratios are medians over rounds of events per second.

    python benchmarks/append.py [folder]
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ledger.store import chain
from ledger.store.log import ABSENT, AnySequence, Draft, Head, NewLibrary
from ledger.store.sql import open_log

SIZES = (1, 10, 100)
ROUNDS = 7
SECONDS = 0.25
_INSERT = "INSERT INTO events (library, sequence, type, record, hash) VALUES (?, ?, ?, ?, ?)"
_MOVE = "UPDATE libraries SET sequence = ?, hash = ? WHERE name = ?"


def drafts(count: int) -> list[Draft]:
    """Events of about 400 bytes, as a value update is."""
    payload = msgspec.json.encode(
        {"stage": "stage-000123", "experience": "double-buffer-the-loads", "n": 3, "alpha": 0.25, "feedback": 0.4}
        | {"old": 0.125, "new": 0.19375, "adopted": True}
    )
    draft = Draft(
        *("value.updated", 1, "0197f3d2-5c1e-7c55-9d0e-6d2f7c2f2a10", "2026-12-01T10:00:00.000000Z", "agent"),
        *("task-000042", "stage-000123", msgspec.Raw(payload)),
    )
    return [draft] * count


class Raw:
    """The driver alone."""

    def __init__(self, folder: Path) -> None:
        path = folder / "raw.db"
        log = open_log(f"sqlite:///{path}")
        head = log.append("bench", drafts(1), expected=NewLibrary())
        log.close()
        self.head = head
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")

    def write(self, rows: list[tuple[str, int, str, bytes, bytes]]) -> None:
        """Write rows that were made before."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(_INSERT, rows)
        self.connection.execute(_MOVE, (rows[-1][1], rows[-1][4], "bench"))
        self.connection.execute("COMMIT")
        self.head = Head(rows[-1][1], rows[-1][4])

    def rows(self, batch: list[Draft]) -> list[tuple[str, int, str, bytes, bytes]]:
        """Make the rows that come next."""
        return [("bench", r.sequence, r.type, r.record, r.hash) for r in chain.extend("bench", self.head, batch)]

    def write_with_work(self, batch: list[Draft]) -> None:
        """Read the head, make the rows and write them."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("SELECT sequence, hash FROM libraries WHERE name = ?", ("bench",)).fetchone()
        rows = self.rows(batch)
        self.connection.executemany(_INSERT, rows)
        self.connection.execute(_MOVE, (rows[-1][1], rows[-1][4], "bench"))
        self.connection.execute("COMMIT")
        self.head = Head(rows[-1][1], rows[-1][4])


def rate(step: Callable[[], None], events: int) -> float:
    """Events a second of `step`, which writes `events`."""
    done, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < SECONDS:
        step()
        done += events
    return done / elapsed


def rate_of_ready_rows(raw: Raw, batch: list[Draft]) -> float:
    """As `rate`, with the making of rows outside the clock."""
    done, spent = 0, 0.0
    while spent < SECONDS:
        rows = raw.rows(batch)
        start = time.perf_counter()
        raw.write(rows)
        spent += time.perf_counter() - start
        done += len(batch)
    return done / spent


def main() -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        folder = Path(name)
        log = open_log(f"sqlite:///{folder}/store.db")
        log.append("bench", drafts(1), expected=NewLibrary())
        raw = Raw(folder)
        size = len(chain.extend("bench", ABSENT, drafts(1))[0].record)
        print(f"events/s, {size} B records, SQLite {sqlite3.sqlite_version}, one writer, medians of {ROUNDS} rounds")
        print(" events/tx        raw  raw + work      store  store/raw  store/(raw + work)")
        for count in SIZES:
            batch = drafts(count)

            def work(batch: list[Draft] = batch) -> None:
                raw.write_with_work(batch)

            def store(batch: list[Draft] = batch) -> None:
                log.append("bench", batch, expected=AnySequence())

            results = [(rate_of_ready_rows(raw, batch), rate(work, count), rate(store, count)) for _ in range(ROUNDS)]
            floor, middle, ours = (statistics.median(column) for column in zip(*results, strict=True))
            to_raw = statistics.median(r[2] / r[0] for r in results)
            to_work = statistics.median(r[2] / r[1] for r in results)
            print(f"{count:>10} {floor:>10,.0f} {middle:>11,.0f} {ours:>10,.0f} {to_raw:>10.2f} {to_work:>19.2f}")
        raw.connection.close()
        log.close()


if __name__ == "__main__":
    main()
