"""Run and compare: every problem of the suite in one fresh worker, then a repeat in another.

The judge fills inputs, guard zones and outputs before each call, and afterwards looks at all three itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from device import arena as memory
from device.arena import Arena, Array, Place, Slot
from device.cheats import level, settled, starts_pool
from device.compare import CLASSES, compare, histogram
from device.oracle import Problem, Suite, numbers
from device.port import Backend, Session
from device.types import Build, Check, Ended, Failure, Limits, Verification

POISONS = (0xFF, 0xFE)
"""What outputs hold before the first call and before the repeat: NaN, then numbers near -1.7e38. What a kernel leaves
unwritten is wrong under both, and differs between them."""

FILLS = (0x80, 0x01)
"""What the C library fills freed memory with in the two rounds; allocated memory gets the complement: 3.4e38 and
-1.7e38 as floats. Who reads what it never wrote finds that, not the zeros of a fresh page; so it is on the stack."""

MARGIN_SHARE = 0.25
"""The root mean square of the errors of one case, in units of what is allowed. Rounding leaves the largest of many
errors three to four times above it, and far below one: errors that fill the tolerance were made to fit it."""

MARGIN_ELEMENTS = 64
"""Cases of fewer elements have no such mean, and those whose bound was widened need all of it."""

REPEATS, OFTEN_ELEMENTS = 5, 1 << 15
"""How often a case as given is run again in the second process; cases of more elements once. A race may pass once."""

IDLE_SHARE = 0.05
IDLE_GRACE_NS = 3_000_000
IDLE_CALL_NS = 20_000
"""Processor time that a worker may use while it should be idle: a twentieth of what its calls took, 3 ms, and 20 us for
each call, in which its threads go to sleep. What an honest kernel uses there is near zero; a thread that works on
the next inputs before the clock starts uses as much as the work takes."""


@dataclass(slots=True)
class Idleness:
    """Watches that nothing runs on, and nobody stays, after a call has returned."""

    threads: int
    """How many threads the kernel may use within a call."""
    staying: int
    """How many may still be there after it (`staying`): the one that makes the calls, and a pool of OpenMP's."""
    after_call: int = 0
    busy_ns: int = 0
    idle_ns: int = 0
    most_threads: int = 0
    calls: int = 0

    def before(self, session: Session) -> None:
        """Note the processor time at the start of a call."""
        now = session.cpu_ns()
        if self.after_call:
            self.idle_ns += max(0, now - self.after_call)
        self.after_call = now

    def after(self, session: Session) -> None:
        """Note the processor time and the threads at the end of a call."""
        now = session.cpu_ns()
        self.busy_ns += max(0, now - self.after_call)
        self.after_call = now
        self.calls += 1
        self.most_threads = max(self.most_threads, session.threads())

    def left_behind(self) -> str | None:
        """Say that a thread outlived a call, if one did, asleep or not: it can do a later call's work unseen."""
        if self.most_threads <= self.staying or level(_IDLE) != "strict":
            return None
        pool = ", its pool of OpenMP threads among them" if self.staying > 1 else ""
        return (
            f"{_IDLE}: {self.most_threads} threads after a call where {self.staying} may stay{pool}: the kernel left a "
            "thread behind, and one outside of OpenMP must be joined before the call returns"
        )

    def check(self) -> Check:
        """Say whether work went on between the calls."""
        detail = (
            f"{self.idle_ns / 1e6:.1f} ms of processor time between calls, {self.busy_ns / 1e6:.1f} ms within; "
            f"at most {self.most_threads} threads after a call, {self.staying} may stay"
        )
        sleeping = IDLE_CALL_NS * self.calls
        quiet = self.idle_ns <= IDLE_SHARE * self.busy_ns + IDLE_GRACE_NS + sleeping
        return Check(_IDLE, quiet and self.most_threads <= self.staying, detail)


_IDLE = "nothing runs on after a call"


def staying(build: Build, threads: int) -> int:
    """Count the threads that may outlive a call: one, or OpenMP's pool where the artefact has parallel regions.

    Threads of the pool sleep between two calls and belong to the library that made them; all others must be gone.
    """
    return threads if build.artefact is not None and starts_pool(build.artefact) else 1


@dataclass(slots=True)
class Bench:
    """An arena with one worker at it, and what the judge remembers about its calls."""

    arena: Arena
    session: Session
    idleness: Idleness

    def place(self, slot: Slot, inputs: Sequence[Array], attributes: Sequence[float], poison: int) -> None:
        """Fill a slot for a call and make it known to the worker."""
        self.arena.guard(slot)
        for place, flat in zip(slot.inputs, inputs, strict=True):
            self.arena.flat(place)[...] = flat
        self.arena.poison(slot, poison)
        self.session.describe(memory.describe(slot, attributes))

    def intact(self, slot: Slot, inputs: Sequence[Array]) -> str | None:
        """Say what the call changed that it may not change: an input, or memory beside the tensors."""
        for number, (place, flat) in enumerate(zip(slot.inputs, inputs, strict=True)):
            now = self.arena.flat(place)
            if not memory.same_bytes(now, flat):
                at = int((now.view(np.uint8) != flat.view(np.uint8)).argmax()) // now.itemsize
                return f"changed input {number}, first at element {at} of its memory"
        return self.arena.trespass(slot)


def unwritten(arena: Arena, place: Place, poison: int) -> Array:
    """Mark the numbers of an output whose every byte is still the poison, as `numbers` puts them."""
    view = numbers(arena.view(place), place.spec.dtype, plain=False)
    raw = np.ascontiguousarray(view).view(np.uint8).reshape(*view.shape, view.itemsize)
    marks: Array = (raw == poison).all(axis=-1)
    return marks


def gap_written(arena: Arena, place: Place, poison: int) -> bool:
    """Whether memory between the elements of a strided output was written to."""
    if place.spec.contiguous:
        return False
    mask = np.full(place.spec.storage, fill_value=True)
    memory.strided(mask, place.spec)[...] = False
    gaps = arena.flat(place)[mask].view(np.uint8)
    return bool((gaps != poison).any())


def look(bench: Bench, slot: Slot, problem: Problem, poison: int) -> Failure | None:
    """Hold everything that one call left behind against what it should have left."""
    if broken := bench.intact(slot, problem.inputs):
        return Failure("wrong", problem.name, f"the kernel {broken}")
    for number, (place, expected) in enumerate(zip(slot.outputs, problem.expected, strict=True)):
        if gap_written(bench.arena, place, poison):
            return Failure("wrong", problem.name, f"the kernel wrote between the elements of strided output {number}")
        got = numbers(bench.arena.view(place), place.spec.dtype)
        result = compare(expected, got, None, number)
        if not result.ok:
            result = compare(expected, got, unwritten(bench.arena, place, poison), number)
            return Failure("wrong", problem.name, result.message, result)
    return None


@dataclass(slots=True)
class _Progress:
    """What the rounds of one verification have seen so far."""

    suite: Suite
    slots: list[Slot]
    limits: Limits
    threads: int
    staying: int
    begin: float
    passed: int = 0
    worst: float = 0.0
    fullest: float = 0.0
    """The largest root mean square of a case's errors."""
    errors: tuple[int, ...] = (0,) * len(CLASSES)
    kept: dict[str, list[bytes]] = field(default_factory=dict)
    """Output bytes of the first round, by problem, for the problems that are repeated."""
    checks: list[Check] = field(default_factory=list)


def verify(backend: Backend, build: Build, suite: Suite, limits: Limits, threads: int, *, repeat: bool) -> Verification:
    """Run all problems, cheap ones first, and stop at the first failure; byte-compare a repeat when asked to."""
    slots = [memory.lay_out(0, memory.PAGE, p.case.inputs, p.outputs) for p in suite.problems]
    progress = _Progress(suite, slots, limits, threads, staying(build, threads), time.monotonic())
    failure = _round(backend, build, progress, range(len(slots)), first=True)
    if failure is None and repeat:
        again = [i for i, p in enumerate(suite.problems) if p.name in progress.kept]
        quick = [i for i in again if suite.problems[i].elements <= OFTEN_ELEMENTS]
        failure = _round(backend, build, progress, [*again[::-1], *quick * (REPEATS - 1)], first=False)
    checks = (*progress.checks, *_what_was_covered(progress, repeat=repeat, failure=failure))
    seconds = time.monotonic() - progress.begin
    return Verification(len(suite.problems), progress.passed, seconds, checks, failure, progress.errors)


def _round(backend: Backend, build: Build, progress: _Progress, order: Sequence[int], *, first: bool) -> Failure | None:
    """Run the problems in that order in one fresh worker; return the first failure."""
    shared = Arena(max(slot.end for slot in progress.slots) - memory.PAGE)
    try:
        fill = FILLS[0 if first else 1]
        with backend.open(build, shared, progress.limits, progress.threads, fill=fill) as session:
            if first:
                progress.checks.append(Check("sandbox", ok=True, detail=", ".join(session.measures)))
            if (ended := session.load()) is not None:
                return Failure(ended.how, "loading", ended.message)
            bench = Bench(shared, session, Idleness(progress.threads, progress.staying))
            for i in order:
                if (failure := _solve(bench, progress, i, first=first)) is not None:
                    if bench.idleness.left_behind() is not None:
                        progress.checks.append(bench.idleness.check())
                    return failure
            idle = bench.idleness.check()
            if first or not idle.ok:
                progress.checks.append(idle)
            if not idle.ok:
                return Failure("refused", progress.suite.problems[order[-1]].name, f"{idle.name}: {idle.detail}")
            return None
    finally:
        shared.close()


def _solve(bench: Bench, progress: _Progress, i: int, *, first: bool) -> Failure | None:
    """Run one problem and keep what a later round needs, or hold it against what an earlier one kept."""
    problem, slot = progress.suite.problems[i], progress.slots[i]
    left = progress.limits.total_seconds - (time.monotonic() - progress.begin)
    failure = _attempt(bench, slot, problem, POISONS[0] if first else POISONS[1], left)
    if failure is not None:
        return failure
    if first:
        progress.passed += 1
        if (failure := _weigh(bench, slot, problem, progress)) is not None:
            return failure
        if problem.name.endswith("/given"):
            progress.kept[problem.name] = _bytes(bench, slot)
    elif _bytes(bench, slot) != progress.kept[problem.name]:
        return Failure("wrong", problem.name, "a repeat with the same inputs gave other bytes")
    return None


def _attempt(bench: Bench, slot: Slot, problem: Problem, poison: int, left: float) -> Failure | None:
    """Make one call and look at what it left."""
    if left <= 0:
        return Failure("hang", problem.name, "the evaluation's total time is used up")
    bench.place(slot, problem.inputs, problem.attributes, poison)
    bench.idleness.before(bench.session)
    called = bench.session.call([0])
    if isinstance(called, Ended):
        return Failure(called.how, problem.name, called.message)
    bench.idleness.after(bench.session)
    if (thread := bench.idleness.left_behind()) is not None:
        return Failure("refused", problem.name, thread)
    if called.code != 0:
        return Failure("error", problem.name, f"the kernel returned {called.code}, its own error")
    return look(bench, slot, problem, poison)


def _weigh(bench: Bench, slot: Slot, problem: Problem, progress: _Progress) -> Failure | None:
    """Sort the errors of one problem, all of them allowed, and refuse those that were made to fit what is allowed."""
    for place, expected in zip(slot.outputs, problem.expected, strict=True):
        shares = expected.shares(numbers(bench.arena.view(place), place.spec.dtype)).reshape(-1)
        if not shares.size or expected.tolerance is None:
            continue
        progress.worst = max(progress.worst, float(shares.max()))
        progress.errors = tuple(map(int.__add__, progress.errors, histogram(shares)))
        # One right rounding to a half format alone leaves 0.29 where all numbers lie at the foot of a power of two.
        coarse = place.spec.rounded or place.spec.dtype in {"float16", "bfloat16"}
        margin = expected.rule == "hardened" and expected.slack <= 1.0 and not coarse
        if shares.size < MARGIN_ELEMENTS or not margin:
            continue
        full = float(np.sqrt(np.mean(np.square(shares))))
        progress.fullest = max(progress.fullest, full)
        if full > MARGIN_SHARE and level(_MARGIN) == "strict":
            return Failure(
                "refused", problem.name, f"{_MARGIN}: errors fill the tolerance: their root mean square is {full:.2g} "
                f"of what is allowed, that of a rounding error is below {MARGIN_SHARE:g}",
            )  # fmt: skip
    return None


_MARGIN = "error margin"


def _bytes(bench: Bench, slot: Slot) -> list[bytes]:
    return [bench.arena.view(place).tobytes() for place in slot.outputs]


def _what_was_covered(progress: _Progress, *, repeat: bool, failure: Failure | None) -> list[Check]:
    suite = progress.suite
    evidence = sum(p.evidence for p in suite.problems)
    left_out = f"; left out where torch itself is far off: {', '.join(suite.left_out)}" if suite.left_out else ""
    lines = [
        Check(
            "zeros and constants would fail",
            evidence > 0,
            f"{evidence} of {len(suite.problems)} cases tell a right answer from a constant one{left_out}",
        ),
        Check("largest error", ok=failure is None, detail=f"{progress.worst:.3g} of what is allowed"),
        Check(_MARGIN, progress.fullest <= MARGIN_SHARE, _histogram(progress)),
    ]
    if repeat and failure is None:
        lines.append(Check("repeat is byte-identical", ok=True))
    return list(settled(lines))


def _histogram(progress: _Progress) -> str:
    begins = (0.0, *CLASSES[:-1])
    total = max(1, sum(progress.errors))
    classes = ", ".join(
        f"{count / total:.2%} in {begin:g}..{end:g}"
        for begin, end, count in zip(begins, CLASSES, progress.errors, strict=True)
        if end <= 1.0
    )
    return f"root mean square at most {progress.fullest:.2g} of what is allowed; of all errors {classes}"
