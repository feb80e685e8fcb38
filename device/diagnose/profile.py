"""The `profile` tool: what a kernel spends its time on, each finding with the number behind it and what to try.

What the judge's clock and the system's books show is there on every machine and comes first; processor counters and
valgrind's counts sharpen it where they can be had, and what is missing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from device.diagnose import callgrind, clock, counters, runs
from device.diagnose.types import CaseProfile, Finding, Line, Profile, Source
from device.languages import cpp
from device.measure import alone
from device.operators.base import Operator
from device.types import Limits

Kind = Literal["bandwidth", "parallelism", "compute", "synchronisation"]

NEAR_BANDWIDTH = 0.5
"""From this share of the measured bandwidth on, the bytes themselves are what takes the time."""

COLD_FACTOR = 1.5
"""A call that takes so many times as long on cold caches waits for memory."""

TRAFFIC = 1.5
"""Bytes moved from memory, in units of what has to be."""

WORTH = 0.25
"""What is moved too much matters from this share of the bandwidth on."""

IDLE_SHARE = 0.25
"""Share of the threads' time in which they do not run, from which on it is worth a finding."""

SLEEPS = 4.0
"""Times a call that each thread sleeps, beyond those of an empty parallel region: every barrier costs one."""

SHORT = 20.0
"""A call of fewer empty calls than this is too short for threads to pay in any case."""

SCALAR = 0.5
"""Less of the floating-point arithmetic than this in vectors is worth a finding."""

NEAR_ARITHMETIC = 0.4
"""From this share of the measured rate of multiply-adds on, the operations themselves take the time."""

MANY_INSTRUCTIONS, SLOW = 8.0, 3.0
"""Instructions for each operation that is needed, and times the floor, from which on a call does too much else."""

BUSY = 0.2
"""Share of the time in which the threads were ready but had no core, from which on the machine was too busy to tell."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that takes the time of a case: a share of it, in words and numbers."""

    kind: Kind
    share: float
    """Of the call's time, a rough estimate that orders the findings."""
    words: str
    advice: str
    numbers: tuple[str, ...]
    """Names of the numbers behind it."""


def profile(
    source: str, operator: Operator, seed: int, limits: Limits, threads: int, masks: Sequence[Path] = ()
) -> tuple[Profile, tuple[Finding, ...]]:
    """Measure and count every timed case of an operator; say what takes the time."""
    build = cpp.build(source, limits, masks)
    made = runs.note(build)
    available, counter_source = counters.look()
    sources = [
        Source(
            "the judge's clock", have=True, detail="time, processor time, sleeps, cold and warm, one thread and all"
        ),
        counter_source,
        callgrind.look(),
    ]
    if not build.ok:
        return Profile(made, threads, tuple(sources), (), f"there is nothing to run: {build.summary}"), ()
    counted = runs.make(source, callgrind.variant(), limits, masks) if sources[2].have else None
    if counted is not None and not counted.ok:
        detail = f"the kernel does not build for {callgrind.level()}: {counted.summary}"
        sources[2] = Source("valgrind", have=True, detail=detail)
    cases: list[CaseProfile] = []
    findings: list[Finding] = []
    message = ""
    for case in (case for case in operator.cases if case.timed):
        try:
            with alone():
                numbers = clock.watch(build, operator, case, seed, limits, threads, available)
        except clock.Stopped as stopped:
            message = f"{case.name}: {stopped.message}"
            break
        lines: tuple[Line, ...] = ()
        if counted is not None and counted.ok:
            counts, more = callgrind.count(counted, operator, case, seed, limits, masks)
            numbers |= more
            lines = callgrind.top(counts, source)
            if counts.problem:
                sources[2] = Source("valgrind", have=True, detail=counts.problem)
        if numbers["waited_for_a_core"] > BUSY:
            share = f"{numbers['waited_for_a_core']:.0%}"
            message = f"{case.name}: threads waited for a core for {share} of the time; look again on a quieter machine"
        cases.append(CaseProfile(case.name, numbers, lines))
        findings += [_finding(case.name, reason, numbers, lines) for reason in reasons(numbers, threads)]
    return Profile(made, threads, tuple(sources), tuple(cases), message), tuple(findings)


def reasons(numbers: Mapping[str, float], threads: int) -> tuple[Reason, ...]:
    """Say what takes the time of a case, the largest share first; always at least one reason."""
    found = [reason for look in LOOKS if (reason := look(numbers, threads)) is not None]
    return tuple(sorted(found, key=lambda reason: -reason.share)) or (rest(numbers),)


def parallelism(numbers: Mapping[str, float], threads: int) -> Reason | None:
    """Threads do not run, without sleeping often: some part is done by one thread, or by some."""
    if threads < 2 or numbers["cold_ms"] < SHORT * numbers["empty_call_ms"] or _sleeps(numbers, threads):
        return None
    idle = 1 - numbers["thread_utilisation"] - min(0.5, numbers["waited_for_a_core"])
    if idle < IDLE_SHARE:
        return None
    used = (
        "one thread alone works"
        if numbers["threads_used"] < 2
        else "a part is done by one thread, or shares are uneven"
    )
    return Reason(
        "parallelism", idle,
        f"{numbers['thread_utilisation']:.0%} of {threads} threads' time is used ({used}); "
        f"{numbers['times_one_thread']:.2g} times as fast as one thread",
        "give each thread rows or tiles of its own (`#pragma omp parallel for`), dynamic shares where rows differ, and "
        "bring what comes before and after the loop into it",
        ("thread_utilisation", "times_one_thread", "threads_used"),
    )  # fmt: skip


def synchronisation(numbers: Mapping[str, float], threads: int) -> Reason | None:
    """Threads sleep often within a call, or cost more than they bring."""
    if threads < 2:
        return None
    if _sleeps(numbers, threads):
        idle = max(0.05, 1 - numbers["thread_utilisation"])
        return Reason(
            "synchronisation", idle,
            f"threads sleep {numbers['sleeps_a_call']:.0f} times a call and do not run for {idle:.0%} of the time: "
            "they wait for each other at barriers, critical sections or new parallel regions",
            "one parallel region around all loops, `nowait` where the next loop needs nothing of this one, sums of "
            "each thread's own instead of `critical`",
            ("sleeps_a_call", "thread_utilisation"),
        )  # fmt: skip
    short = numbers["cold_ms"] < SHORT * numbers["empty_call_ms"]
    if short and numbers["threads_used"] > 1 and numbers["times_one_thread"] < 1.0:
        return Reason(
            "synchronisation", min(1.0, numbers["empty_call_ms"] / numbers["cold_ms"]),
            f"with {threads} threads it takes {numbers['cold_ms']:.3g} ms, with one {numbers['one_thread_ms']:.3g} ms: "
            f"to start and join them costs {numbers['empty_call_ms']:.2g} ms",
            "start threads for large inputs alone: `#pragma omp parallel for if (n > …)`",
            ("times_one_thread", "one_thread_ms", "empty_call_ms"),
        )  # fmt: skip
    return None


def bandwidth(numbers: Mapping[str, float], threads: int) -> Reason | None:  # noqa: ARG001  (the form of a look)
    """The time goes into memory: all of its bandwidth, more bytes than needed, or waiting for it."""
    share, cold = numbers["bandwidth_share"], numbers["cold_ms"] / numbers["warm_ms"]
    traffic = numbers.get("bytes_from_memory", 0.0) / max(1.0, numbers["bytes_needed"])
    rate = f"{share:.0%} of {numbers['machine_gb_per_s']:.3g} GB/s"
    said = f"{numbers['bytes_needed'] / 1e6:.3g} MB have to be moved, at {rate}"
    if traffic > TRAFFIC and share * traffic > WORTH:
        return Reason(
            "bandwidth", min(1.0, share * traffic),
            f"{said}; {traffic:.2g} times as many come from memory",
            "work on tiles that stay in the cache, join passes over the same data, read along rows",
            ("bytes_needed", "bytes_from_memory", "bandwidth_share"),
        )  # fmt: skip
    if share >= NEAR_BANDWIDTH:
        return Reason(
            "bandwidth", min(1.0, share), f"{said}: this is what the time is spent on",
            "fewer bytes: fuse with what comes before or after, shorter formats; the time cannot fall much below "
            f"{numbers['floor_ms']:.3g} ms", ("bandwidth_share", "floor_ms", "bytes_needed"),
        )  # fmt: skip
    if cold > COLD_FACTOR:
        return Reason(
            "bandwidth", 1 - 1 / cold,
            f"{said}; on warm caches it takes {numbers['warm_ms']:.3g} ms, on cold ones {numbers['cold_ms']:.3g} ms: "
            "it waits for memory without using its bandwidth",
            "read in the order of memory and far ahead: longer runs along rows, more streams at once, prefetches",
            ("cold_ms", "warm_ms", "bandwidth_share"),
        )  # fmt: skip
    return None


def compute(numbers: Mapping[str, float], threads: int) -> Reason | None:  # noqa: ARG001  (the form of a look)
    """The time goes into instructions."""
    share = numbers["arithmetic_share"]
    rest_of_time = 1 - min(1.0, numbers["bandwidth_share"])
    if (vectors := numbers.get("vector_share")) is not None and vectors < SCALAR:
        return Reason(
            "compute", rest_of_time,
            f"only {vectors:.0%} of the floating-point arithmetic is in vectors, {_instructions(numbers)}",
            "let the compiler vectorise (contiguous inner loop, no early exit, no call, `// flags: -ffast-math` where "
            "reassociation is allowed), or write vectors of 8 or 16 floats",
            ("vector_share", "instructions_an_element"),
        )  # fmt: skip
    if numbers.get("share_in_libraries", 0.0) > 0.3:
        inside = numbers["share_in_libraries"]
        return Reason(
            "compute", rest_of_time * inside,
            f"{inside:.0%} of the instructions are in libraries (exp, erf, memcpy, malloc), {_instructions(numbers)}",
            "a polynomial over a whole vector in place of calls to libm; buffers allocated once a thread",
            ("share_in_libraries", "instructions_an_element"),
        )  # fmt: skip
    if share >= NEAR_ARITHMETIC:
        return Reason(
            "compute", share,
            f"{numbers['operations_needed'] / 1e6:.3g} M operations at {share:.0%} of "
            f"{numbers['machine_g_operations_per_s']:.3g} G/s: near what plain multiply-adds reach here",
            "fewer operations, or another algorithm", ("arithmetic_share", "operations_needed"),
        )  # fmt: skip
    an_operation = numbers.get("counted_instructions", 0.0) / max(1.0, numbers["operations_needed"])
    if (
        min(an_operation, numbers.get("instructions_an_element", 0.0)) > MANY_INSTRUCTIONS
        and numbers["cold_ms"] > SLOW * numbers["floor_ms"]
    ):
        return Reason(
            "compute", rest_of_time,
            f"{_instructions(numbers)}; {numbers['cold_ms'] / numbers['floor_ms']:.2g} times the floor of "
            f"{numbers['floor_ms']:.3g} ms",
            "keep values in registers over more of the work, take index arithmetic out of the inner loop, unroll",
            ("instructions_an_element", "cold_ms", "floor_ms"),
        )  # fmt: skip
    return None


def rest(numbers: Mapping[str, float]) -> Reason:
    """Nothing stands out: say how far from the floor it is."""
    times = numbers["cold_ms"] / numbers["floor_ms"]
    near = times < 2 or numbers["bandwidth_share"] > numbers["arithmetic_share"]
    return Reason(
        "bandwidth" if near else "compute", 0.0,
        f"nothing stands out: {numbers['cold_ms']:.3g} ms, {times:.2g} times the floor of {numbers['floor_ms']:.3g} ms",
        "what is left is in the order of the work: fewer passes, larger tiles, more independent sums",
        ("cold_ms", "floor_ms", "bandwidth_share", "arithmetic_share"),
    )  # fmt: skip


LOOKS: tuple[Callable[[Mapping[str, float], int], Reason | None], ...] = (
    parallelism, synchronisation, bandwidth, compute,
)  # fmt: skip


def _sleeps(numbers: Mapping[str, float], threads: int) -> bool:
    return numbers["sleeps_a_call"] > SLEEPS * threads


def _instructions(numbers: Mapping[str, float]) -> str:
    return f"{numbers.get('instructions_an_element', 0.0):.3g} instructions an element"


def _finding(case: str, reason: Reason, numbers: Mapping[str, float], lines: Sequence[Line]) -> Finding:
    behind = {name: numbers[name] for name in reason.numbers if name in numbers}
    hot = f"; most of them on line {lines[0].line}" if reason.kind == "compute" and lines else ""
    return Finding("profile", reason.kind, f"{reason.words}{hot}", case, reason.advice, behind)
