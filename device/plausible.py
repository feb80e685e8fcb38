"""Whether samples can be what they claim to be: the checks of a measurement, each a small function over the samples.

What a kernel's process says about its own time is only a claim. The judge has three things to hold against it: its own
clock and the operating system's books, the machine's measured rates, and what a second, independent run shows.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from device import arena as memory
from device import roofline, timing
from device.arena import Arena
from device.operators.base import Case, Operator, TensorSpec
from device.port import Backend
from device.types import Build, Called, CaseMeasurement, Check, Limits, Ratio

NOTHING = """#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *, int64_t, sb_tensor *, int64_t, const double *, int64_t) {
    volatile int done = 0;
    #pragma omp parallel
    if (done) done = 1;
    return 0;
}
"""
"""The judge's own kernel, which wakes its threads and does nothing: what the judge sees of its calls, beyond what they
claim, is the way there and back."""

NOTHING_CALLS, OTHER_WORK = 45, 4 << 20
CLAIMED_SHARE, CLAIMED_GRACE_NS = 0.8, 90_000
"""The mean of what is claimed is at least this share of what the judge saw without the way there and back, less 90 us.
That is what honest kernels need on a machine that is busy with other things."""

QUIET_SHARE = 3
"""Of all calls the third is compared during which worker and judge waited least for a core, by the system's books, less
the tenth of those that came back latest: in them, all that the judge saw was the call. A kernel that keeps threads
waiting to hide in that is held to its processor time."""

SETTLED_FACTOR, SETTLED_MS = 10.0, 5.0
"""Some call of the warm-up, the first not counted, takes at most ten times as long as the timed ones, and 5 ms."""

GREAT, AGAIN_SHARE = 10.0, 0.5
"""A speedup beyond `GREAT` counts when a second run, in a process of its own and on other numbers, shows at least this
share of it."""

ITSELF, ITSELF_TRIES = "torch agrees with itself", 4
"""Of runs in which nothing is wrong one in twenty leaves 1 out of its 95 % interval; so many in a row do not. That is
a fault of the machine and no candidate's: what is right stays right, and counts as not measured."""


@dataclass(slots=True)
class Samples:
    """What was taken of both sides of one case."""

    candidate_ms: list[float] = field(default_factory=list)
    reference_ms: list[float] = field(default_factory=list)
    twins_ms: list[tuple[float, float]] = field(default_factory=list)
    """Two legs of the reference in one turn, the first of them as in `reference_ms`."""
    called: list[Called] = field(default_factory=list)
    warm_up_ms: list[float] = field(default_factory=list)
    """The candidate's calls before the first sample."""


def overhead_ns(backend: Backend, limits: Limits, threads: int) -> float | None:
    """Return what the judge sees of a call that does nothing, in ns; None where the device has no such kernel."""
    if "cpp" not in backend.languages:
        return None
    build = backend.build(NOTHING, "cpp", limits)
    if not build.ok:
        return None
    slot = memory.lay_out(0, memory.PAGE, (TensorSpec((16,)),), (TensorSpec((16,)),))
    calls: list[Called] = []
    with (
        contextlib.closing(Arena(slot.end - memory.PAGE)) as shared,
        backend.open(build, shared, limits, threads) as session,
    ):
        if session.load() is not None:
            return None
        session.describe(memory.describe(slot, ()))
        other = np.empty(OTHER_WORK, dtype=np.uint8)
        for turn in range(NOTHING_CALLS):
            other.fill(turn)  # as between timed calls: the caches hold other things, and the threads sleep
            time.sleep(1e-4)
            called = session.call([0])
            if isinstance(called, Called):
                calls.append(called)
    quiet = _quiet(calls, threads)
    return statistics.fmean(least - claimed for least, claimed in quiet) if quiet else None


def _quiet(calls: Sequence[Called], threads: int) -> list[tuple[float, int]]:
    """Return the least time that the judge saw and the time that was claimed, of the calls that waited least."""
    quiet = sorted(calls, key=lambda call: call.waited_ns / call.seen_ns)[: len(calls) // QUIET_SHARE]
    pairs = sorted(((call.least_ns(threads), call.claimed_ns) for call in quiet), key=lambda pair: pair[0] - pair[1])
    return pairs[: max(1, len(pairs) * 9 // 10)]


def honest_clock(samples: Samples, threads: int, overhead: float | None) -> Check:
    """Hold the sum of what was claimed against the judge's clock and the system's books, call by call."""
    name = "clocks agree call by call"
    if overhead is None:
        return Check(name, ok=True, detail="not looked at on this device")
    kept = _quiet(samples.called, threads)
    least = statistics.fmean(pair[0] for pair in kept) - overhead
    claimed = statistics.fmean(pair[1] for pair in kept)
    detail = (
        f"{claimed / 1e6:.4f} ms claimed on average, at least {max(0.0, least) / 1e6:.4f} ms seen "
        f"in {len(kept)} calls (less {overhead / 1e3:.0f} us for the way there and back), "
        f"{sum(call.waited_ns for call in samples.called) / sum(call.seen_ns for call in samples.called):.0%} "
        "of all calls was waiting for a core"
    )
    return Check(name, claimed >= CLAIMED_SHARE * least - CLAIMED_GRACE_NS, detail)


def possible(operator: Operator, case: Case, samples: Samples, threads: int, *, cold: bool) -> Check:
    """Refuse a time in which this machine cannot move the case's bytes or do its operations."""
    quick = sorted(samples.candidate_ms)[len(samples.candidate_ms) // 4]
    bound = roofline.floor(operator, case, roofline.rates(threads), cold=cold)
    if quick < bound.ms:  # a busy machine may have shown its rates too low
        bound = roofline.floor(operator, case, roofline.rates(threads, again=True), cold=cold)
    detail = f"a quarter of the calls took at most {quick:.4f} ms, the floor is {bound.ms:.4f} ms ({bound.words})"
    return Check("possible on this machine", quick >= bound.ms, detail)


def settled_warm_up(samples: Samples) -> Check:
    """Refuse a kernel that is slow until it is timed; the first call may be, it fills tables and starts threads."""
    warm = min(samples.warm_up_ms[1:], default=0.0)
    timed = statistics.median(samples.candidate_ms)
    detail = f"the quickest call of the warm-up took {warm:.4f} ms, the median of timed calls {timed:.4f} ms"
    return Check("warm-up is like what is timed", warm <= SETTLED_FACTOR * timed + SETTLED_MS, detail)


def itself(samples: Samples) -> Ratio:
    """Torch against torch in the same turns: an A/A run, timed as the candidate is."""
    return timing.ratio([a for a, _ in samples.twins_ms], [b for _, b in samples.twins_ms])


def same_reference(samples: Samples) -> Check:
    """Hold torch against itself: where that does not come out as 1, no speedup that was measured beside it is one."""
    seen = itself(samples)
    detail = f"{seen.value:.4f} times, 95 % interval {seen.low:.4f} to {seen.high:.4f}, {seen.pairs} pairs"
    if seen.low <= 1.0 <= seen.high:
        return Check(ITSELF, ok=True, detail=detail)
    return Check(ITSELF, ok=False, detail=f"{detail}: the machine does not measure evenly")


def uneven(checks: Sequence[Check]) -> str | None:
    """Say why the samples behind these checks say nothing of the kernel; None where they do."""
    return next((check.detail for check in checks if check.name == ITSELF and not check.ok), None)


def refusal(checks: Sequence[Check]) -> Check | None:
    """Return the first check that did not hold and says something of the kernel."""
    return next((check for check in checks if not check.ok and check.name != ITSELF), None)


def same_artefact(build: Build, digest: str | None) -> Check:
    """Say whether what was measured is what was verified: the file's hash before, after, and in the report."""
    held = digest == build.artefact_sha256
    detail = f"sha256 {digest} in both" if held else f"verified {build.artefact_sha256}, measured {digest}"
    return Check("what is measured was verified", held, detail)


def great(cases: Sequence[CaseMeasurement]) -> bool:
    """Whether some case was so much faster than torch that one run is not enough to believe it."""
    return any(speedup(case) > GREAT for case in cases)


def seen_again(first: Sequence[CaseMeasurement], second: Sequence[CaseMeasurement]) -> Check:
    """Hold the great speedups of one run against those of a second, independent one."""
    pairs = [(a, speedup(a), speedup(b)) for a, b in zip(first, second, strict=False) if speedup(a) > GREAT]
    held = len(first) == len(second) and all(again >= AGAIN_SHARE * once for _, once, again in pairs)
    detail = ", ".join(f"{case.case}: {once:.3g} times, then {again:.3g} times" for case, once, again in pairs)
    return Check("a great speedup is seen twice", held, detail or "the second run measured nothing")


def speedup(case: CaseMeasurement) -> float:
    """Return how many times as fast as torch the candidate was."""
    return case.reference.mean_ms / case.candidate.mean_ms
