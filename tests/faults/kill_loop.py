"""kill -9 of the ledger at random moments, again and again: python -m tests.faults.kill_loop [KILLS] [SEED] [AFTER].

One process loads the program once and forks the ledgers, so that a kill costs little. Each ledger serves four threads that
record experiences with idempotency keys, and says on a pipe what it acknowledged. What was on its way when it was killed
is sent again, with the same key, by the next. After each kill everything acknowledged must be there, once, where the
answer said; every 25 kills, and at the end of a file, the chain holds and each name is there exactly once.

A file is killed 200 times, then a new one begins, so that a kill costs the same however many there were. The moments drawn
for the n-th file follow from SEED and n alone: AFTER, a multiple of 200, leaves the kills before it out, so a run that was
stopped goes on where it said that it was.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

THREADS = 4
A_FILE = 200
"""Kills."""


def _serve(path: Path, pipe: int, again: list[str], start: int) -> None:
    """Record experiences until killed: first those that are sent again, then new ones."""
    from ledger import wire
    from ledger.commands import experiences, libraries
    from ledger.service import Call, Ledger
    from ledger.store.sql import open_log

    numbers = itertools.count()
    log = open_log(f"sqlite:///{path}")
    log.hold("here")
    ledger = Ledger(log, now=lambda: "2026-01-02T03:04:05Z", new_id=lambda: f"{os.getpid()}-{next(numbers)}")
    if "lib" not in ledger.libraries():
        libraries.create(ledger, Call("t"), wire.NewLibrary(library="lib"))
    names = itertools.chain(again, (f"e{n}" for n in itertools.count(start)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                name = next(names)
            os.write(pipe, f"sent {name}\n".encode())
            new = wire.NewExperience(experience=name, title=name, body=f"body {name}", stages=("correctness",))
            answer = experiences.record(ledger, Call("t", f"key-{name}", name.encode()), "lib", new)
            if isinstance(answer, bytes):
                answer = wire.Experience.model_validate_json(answer)
            os.write(pipe, f"done {name} {answer.recorded}\n".encode())

    for _ in range(THREADS):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait()


def _round(path: Path, again: list[str], start: int, pause: float) -> bytes:
    """Fork a ledger, let it work for a while after its first answer, kill it; what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _serve(path, writing, again, start)
        finally:
            os._exit(1)
    os.close(writing)
    said = b""
    while b"done" not in said and select.select([reading], [], [], 30.0)[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        said += part
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    while part := os.read(reading, 65536):
        said += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("the ledger ended by itself")
    # A last line that was cut off was not said.
    return said[: said.rfind(b"\n") + 1]


def run(kills: int, seed: str, folder: Path) -> Counter[str]:
    """Kill one new file's ledger that often; counts of what was seen.

    Raises AssertionError where something was lost, doubled or torn.
    """
    from ledger.store import chain, codec
    from ledger.store.sql import open_log

    rng = random.Random(seed)
    path = folder / "ledger.db"
    acknowledged: dict[str, int] = {}
    pending: list[str] = []
    repeated = start = 0
    for number in range(kills):
        said = _round(path, pending, start, rng.uniform(0.0, 0.04)).decode().splitlines()
        sent = [line.split()[1] for line in said if line.startswith("sent")]
        done = {line.split()[1]: int(line.split()[2]) for line in said if line.startswith("done")}
        acknowledged |= done
        start = max([start, *(int(name[1:]) + 1 for name in sent)])
        pending = [name for name in dict.fromkeys([*pending, *sent]) if name not in acknowledged]
        repeated += len(pending)
        log = open_log(f"sqlite:///{path}")
        for name, sequence in done.items():
            (row,) = log.read("lib", after=sequence - 1, until=sequence)
            if f'"experience":"{name}"'.encode() not in row.record:
                raise AssertionError(
                    f"kill {number}, seed {seed}: {name} was acknowledged at {sequence} and is not there"
                )
        if number % 25 == 24 or number == kills - 1:
            verdict = chain.audit(log, "lib")
            if not verdict.ok:
                raise AssertionError(f"kill {number}, seed {seed}: {verdict.reason}")
            times = Counter(codec.payload(row.record).get("experience") for row in log.read("lib", after=1))
            doubled = [name for name, count in times.items() if count > 1]
            if doubled or any(name not in times for name in acknowledged):
                raise AssertionError(f"kill {number}, seed {seed}: doubled {doubled} or lost")
        log.close()
    return Counter({"kills": kills, "acknowledged": len(acknowledged), "sent again": repeated})


def files(kills: int, seed: str, after: int) -> Iterator[Counter[str]]:
    """Run one file after the other; what was seen of each."""
    for first in range(after, kills, A_FILE):
        with tempfile.TemporaryDirectory() as name:
            yield run(min(A_FILE, kills - first), f"{seed}/{first // A_FILE}", Path(name))


def main() -> None:
    """As a script."""
    kills, seed, after = (*sys.argv[1:], *("200", "1", "0")[len(sys.argv) - 1 :])
    if int(after) % A_FILE:
        raise SystemExit(f"AFTER is {after}, which is no multiple of {A_FILE}: a file's kills belong together")
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # Loaded here, so that each fork has it.
    from ledger.commands import experiences, libraries  # noqa: F401
    from ledger.retrieval import lexical  # noqa: F401
    from ledger.store import sql  # noqa: F401

    began = time.monotonic()
    found = Counter[str]()
    for seen in files(int(kills), seed, int(after)):
        found += seen
        done, took = int(after) + found["kills"], time.monotonic() - began
        sys.stderr.write(f"{done} of {kills} kills, {took:.0f} s; to go on: {kills} {seed} {done}\n")
    told = {**found, "lost": 0, "doubled": 0}
    print(f"seed {seed}: {told}, {time.monotonic() - began:.0f} s")  # noqa: T201 - a script's result


if __name__ == "__main__":
    main()
