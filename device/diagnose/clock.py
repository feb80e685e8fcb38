"""What the judge's own clock and the operating system's books say of a kernel: no instrument is needed for these.

The artefact is the one that is judged. It is called on fresh numbers, cold and warm, with all threads and with one; so
is the judge's empty kernel, whose figures are taken off.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from device import arena as memory
from device import oracle, plausible, roofline
from device.arena import Arena
from device.diagnose.counters import Counters
from device.languages import cpp
from device.operators.base import Case, Operator, TensorSpec
from device.sandbox import native
from device.types import Build, Called, Ended, Limits
from device.worker import Worker

WARM_UP, CALLS, SECONDS = 3, 30, 1.0
REST_SECONDS = 0.0005

PICKING = frozenset({"index", "creation"})
"""Families whose operators may leave a part of their inputs unread."""


@dataclass(slots=True)
class Stopped(Exception):  # noqa: N818  (a way out with what the kernel did, not an error)
    """The kernel did not return, or returned its own error."""

    message: str


@dataclass(slots=True)
class Course:
    """Some calls in a row, and what the books say of all of them together."""

    called: list[Called] = field(default_factory=list)
    sleeps: int = 0
    """How often a thread of the worker gave its core up by itself."""
    threads: int = 0
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def ms(self) -> float:
        """The median of what the calls took by the worker's clock."""
        return statistics.median(call.claimed_ns for call in self.called) / 1e6

    def each(self, total: float) -> float:
        """Spread a total over the calls."""
        return total / len(self.called)

    @property
    def used_ms(self) -> float:
        """Processor time of a call."""
        return statistics.median(call.used_ns for call in self.called) / 1e6


def watch(
    build: Build, operator: Operator, case: Case, seed: int, limits: Limits, threads: int, counters: Counters | None
) -> dict[str, float]:
    """Measure one timed case; the numbers that come out are named for what they are. Raises Stopped."""
    empty = cpp.build(plausible.NOTHING, limits)
    tiny = (TensorSpec((16,)),)
    base = _course(empty, Case("empty", tiny), tiny, seed, limits, threads, cold=True)
    outputs = operator.outputs(case)
    cold = _course(build, case, outputs, seed, limits, threads, cold=True, counters=counters)
    warm = _course(build, case, outputs, seed, limits, threads, cold=False)
    moved, done = roofline.work(operator, case)
    if operator.family not in PICKING:
        moved = sum(spec.elements * memory.element_bytes(spec.dtype) for spec in (*case.inputs, *outputs))
    rates = roofline.rates(threads)
    seconds = cold.ms / 1e3
    numbers = {
        "cold_ms": cold.ms,
        "warm_ms": warm.ms,
        "floor_ms": max(moved / rates.cold, done / rates.operations) * 1e3,
        "bytes_needed": float(moved),
        "operations_needed": float(done),
        "bandwidth_share": moved / seconds / rates.cold,
        "arithmetic_share": done / seconds / rates.operations,
        "machine_gb_per_s": rates.cold / 1e9,
        "machine_g_operations_per_s": rates.operations / 1e9,
        "sleeps_a_call": max(0.0, cold.each(cold.sleeps) - base.each(base.sleeps)),
        "waited_for_a_core": sum(call.waited_ns for call in cold.called) / sum(call.seen_ns for call in cold.called),
        "empty_call_ms": base.ms,
    }
    if threads > 1:
        alone = _course(build, case, outputs, seed, limits, 1, cold=True)
        busy = max(0.0, cold.used_ms - base.used_ms) / (cold.ms * threads)
        numbers |= {
            "one_thread_ms": alone.ms,
            "times_one_thread": alone.ms / cold.ms,
            "thread_utilisation": min(1.0, busy),
            "threads_used": float(cold.threads),
        }
    return numbers | {f"{name}_a_call": cold.each(count) for name, count in cold.counted.items()}


def _course(
    build: Build, case: Case, outputs: Sequence[TensorSpec], seed: int, limits: Limits, threads: int, *, cold: bool,
    counters: Counters | None = None,
) -> Course:  # fmt: skip
    """Call a kernel some times; cold: nothing of the slot is in a cache."""
    if build.artefact is None:
        raise Stopped(build.summary)
    slot = memory.lay_out(0, memory.PAGE, case.inputs, outputs)
    rng = oracle.seeded(seed, "profile", case.name)
    with contextlib.closing(Arena(slot.end - memory.PAGE)) as arena:
        arena.guard(slot)
        for place in slot.inputs:
            arena.flat(place)[...] = oracle.draw(place.spec, rng)
        with Worker(build.artefact, arena, limits, threads) as worker:
            if (ended := worker.load()) is not None:
                raise Stopped(ended.message)
            worker.describe(memory.describe(slot, tuple(case.attributes.values())))
            chill = _flush(int(arena.bytes.ctypes.data) + slot.begin, slot.end - slot.begin) if cold else _nothing
            with counters.of(worker.pid) if counters else contextlib.nullcontext(dict) as read:
                return _calls(worker, chill, read)


def _calls(worker: Worker, chill: Callable[[], None], read: Callable[[], dict[str, int]]) -> Course:
    course = Course()
    begin, before = time.monotonic(), 0
    counted: dict[str, int] = {}
    for turn in range(WARM_UP + CALLS):
        if turn == WARM_UP:
            before, counted = _sleeps(worker.pid), read()
        chill()
        time.sleep(REST_SECONDS)
        called = worker.call([0])
        if isinstance(called, Ended):
            raise Stopped(called.message)
        if called.code:
            raise Stopped(f"the kernel returned {called.code}, its own error")
        if turn >= WARM_UP:
            course.called.append(called)
            if time.monotonic() - begin > SECONDS and len(course.called) >= 3:
                break
    course.sleeps = _sleeps(worker.pid) - before
    course.threads = worker.threads()
    course.counted = {name: count - counted.get(name, 0) for name, count in read().items()}
    return course


def _sleeps(pid: int) -> int:
    """Count how often the process's threads gave their cores up by themselves: to wait for a futex, above all."""
    return sum(
        int(line.split()[1])
        for text in _status(pid)
        for line in text.splitlines()
        if line.startswith("voluntary_ctxt_switches:")
    )


def _status(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (names, not paths)
            yield Path(f"/proc/{pid}/task/{task}/status").read_text(encoding="ascii", errors="replace")


def _flush(address: int, size: int) -> Callable[[], None]:
    library = ctypes.CDLL(str(native().cache))
    flush = library.sagebook_make_cold
    flush.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    flush.restype = None
    return lambda: flush(address, size)


def _nothing() -> None:
    """Leave the caches as the last call left them."""
