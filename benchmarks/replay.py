"""Reading a long log: verified typed replay, opening with and without a snapshot, the peer, proofs, memory.

python -m benchmarks.replay [--quick]      quick: 10^5 events instead of 10^6 for proofs and memory
"""

from __future__ import annotations

import gc
import hashlib
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from benchmarks.append import Peer, drafts, rate
from benchmarks.history import EXPERIENCES, fill
from ledger.folding import KIND, Folds
from ledger.opened import Opened
from ledger.proofs import Proofs
from ledger.store import chain, merkle
from ledger.store.checkpoint import LogKey
from ledger.store.log import AnySequence, Log, NewLibrary
from ledger.store.shelf import SEALS
from ledger.store.sql import open_log
from ledger.store.walk import Walker

OPENED = 100_000
ROUNDS = 9


def seconds_of(call: Callable[[], object]) -> float:
    """How long one call takes; what it gives is let go of afterwards."""
    gc.collect()
    start = time.perf_counter()
    kept = call()
    taken = time.perf_counter() - start
    del kept
    return taken


def replay(log: Log, count: int) -> None:
    """Read every record, check it, decode the event: as an opening does."""
    if sum(len(some) for some in Walker(log).events("lib", after=0, until=count)) != count:
        raise AssertionError("events are missing")


class _Flat(msgspec.Struct):
    """A record's envelope, its payload left as it is."""

    library: str
    sequence: int
    type: str
    schema: int
    id: str
    time: str
    actor: str
    task: str | None
    stage: str | None
    payload: msgspec.Raw


def bare(path: Path) -> None:
    """Read, check and decode as a script would: one row after another, one flat type, no store and no event types."""
    last, sha256, decode = bytes(32), hashlib.sha256, msgspec.json.Decoder(_Flat).decode
    cursor = sqlite3.connect(path).execute("SELECT record, hash FROM events ORDER BY library, sequence")
    while rows := cursor.fetchmany(2000):
        for record, hash_ in rows:
            last = sha256(last + record).digest()
            if last != hash_:
                raise AssertionError("the chain does not hold")
            decode(record)
    cursor.connection.close()


def reading(folder: Path) -> None:
    """Replay and opening at 10^5 events, in turns with the peer."""
    log = open_log(f"sqlite:///{folder}/read.db")
    fill(log, "lib", OPENED)
    whole, snapped = Folds(log, every=2**62), Folds(log)
    peer = Peer("sqlite", str(folder / "peer.db"))
    raw = sqlite3.connect(folder / "read.db")
    rows: dict[str, list[float]] = {
        name: [] for name in ("driver", "bare", "chain", "replay", "open", "snapshot", "verify", "peer")
    }
    snapped.catch_up(Opened("lib"))
    if log.shelf.snapshot_sequences("lib", KIND) != [OPENED]:
        raise AssertionError("no snapshot was taken")
    for _ in range(ROUNDS):
        rows["driver"].append(seconds_of(lambda: raw.execute("SELECT record, hash FROM events").fetchall()))
        rows["bare"].append(seconds_of(lambda: bare(folder / "read.db")))
        log.shelf.drop_snapshots("lib", SEALS)
        # Checks by the chain, and seals.
        rows["chain"].append(seconds_of(lambda: replay(log, OPENED)))
        rows["replay"].append(seconds_of(lambda: replay(log, OPENED)))
        rows["open"].append(seconds_of(lambda: whole.as_of("lib", OPENED)))
        rows["snapshot"].append(seconds_of(lambda: snapped.catch_up(Opened("lib"))))
        rows["verify"].append(seconds_of(lambda: chain.audit(log, "lib")))
        rebuilt = peer.ask("rebuild", OPENED)
        if rebuilt is not None:
            rows["peer"].append(rebuilt)
    middle = {name: statistics.median(values) for name, values in rows.items() if values}
    texts = {
        "driver": "the driver alone fetches records and hashes",
        "bare": "floor: a bare loop over the driver checks the chain and decodes the envelope alone",
        "chain": "verified typed replay for the first time: read, check each record by the chain, decode, seal",
        "replay": "verified typed replay: read, check each block by its seal, decode",
        "verify": "`sagebook verify`'s walk of the chain, with every record's place",
        "open": "open a library without a snapshot: the last, and fold the state",
        "snapshot": "open it with a snapshot",
        "peer": "eventsourcing rebuilds one aggregate of as many events",
    }
    print(f"\n{OPENED:,} events, medians of {ROUNDS} rounds in turns, SQLite")
    for name, text in texts.items():
        if name in middle:
            print(f"{middle[name]:>9.3f} s {OPENED / middle[name]:>12,.0f} events/s  {text}")
    raw.close()
    peer.close()
    log.close()


def chain_cost(folder: Path) -> None:
    """What chain and tree add to a durable append."""
    log = open_log(f"sqlite:///{folder}/cost.db")
    (draft,) = drafts(1)
    log.append("lib", [draft], expected=NewLibrary())
    append = 1 / rate(lambda: log.append("lib", [draft], expected=AnySequence()), 1, 1.0)
    record, last = next(log.read("lib")).record, bytes(32)
    number = 50_000
    start = time.perf_counter()
    for _ in range(number):
        last = chain.link(last, record)
    linked = (time.perf_counter() - start) / number
    hashes = [hashlib.sha256(b"%d" % n).digest() for n in range(number)]
    tree = merkle.Tree(lambda _after, _until: [])
    grown = seconds_of(lambda: tree.extend(hashes)) / number
    print(
        f"\nchain {linked * 1e6:.2f} µs and tree {grown * 1e6:.2f} µs an event: "
        f"{(linked + grown) / append:.2%} of a durable append of {append * 1e6:,.0f} µs"
    )
    log.close()


def proofs(folder: Path, count: int) -> None:
    """Time and size of proofs from a log of that many events."""
    log = open_log(f"sqlite:///{folder}/proofs.db")
    fill(log, "lib", count)
    made = Proofs(log, LogKey.fresh)
    first = seconds_of(lambda: made.checkpoint("lib"))
    again = Proofs(log, LogKey.fresh)
    warm = seconds_of(lambda: again.inclusion("lib", 1))
    places = [1 + n * 7919 % count for n in range(400)]
    inclusion, consistency, size = [], [], 0
    for place in places:
        start = time.perf_counter()
        found = again.inclusion("lib", place)
        inclusion.append(time.perf_counter() - start)
        start = time.perf_counter()
        _, path = again.consistency("lib", place)
        consistency.append(time.perf_counter() - start)
        size = max(size, 32 * len(path), 32 * len(found.path))
    print(f"\n{count:,} events: proofs of at most {size:,} bytes")
    for name, taken in (("inclusion", inclusion), ("consistency", consistency)):
        last = statistics.quantiles(taken, n=100)[98]
        print(f"{statistics.median(taken) * 1e3:>9.2f} ms, p99 {last * 1e3:.2f} ms  {name} proof")
    print(
        f"{first:>9.2f} s  the first checkpoint of all; {warm:.3f} s the first proof after a start, with the kept tree"
    )
    log.close()


def memory(folder: Path, count: int) -> None:
    """What a service holds of a library of that many events."""
    path = folder / f"memory-{count}.db"
    log = open_log(f"sqlite:///{path}")
    fill(log, "lib", count)
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    state = Folds(log, every=2**62).as_of("lib", count)
    gc.collect()
    held = process.memory_info().rss - before
    print(
        f"{count:>10,} events: {held / count:,.0f} bytes of memory an event, {held / EXPERIENCES:,.0f} an experience "
        f"({len(state.experiences)} experiences, {len(state.tasks):,} tasks), {path.stat().st_size // count} on disk"
    )
    log.close()


def main() -> None:
    """Print the figures."""
    where = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, {where}")
    large = 100_000 if "--quick" in sys.argv else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reading(folder)
        chain_cost(folder)
        proofs(folder, large)
        print()
        for count in {100_000, large}:
            memory(folder, count)


if __name__ == "__main__":
    main()
