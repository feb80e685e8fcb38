"""Samples and what they say: mean, spread, noise; and the clocks that take them."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from device.types import CaseMeasurement, Ratio, Timing

if TYPE_CHECKING:
    from numpy.random import Generator

WARM_UP, TIMED, FLOOR = 5, 100, 20
CASE_SECONDS = 2.0
"""The timed calls of both sides, over all timed cases of an operator, take at most about this long: fewer than `TIMED`
samples are taken where they would take longer, at least `FLOOR`, and the report's `timed` says how many."""

_BLOCKS = 10
_TWO = tuple(itertools.permutations(("reference", "candidate")))
_THREE = tuple(itertools.permutations(("reference", "candidate", "twin")))


class Timer(Protocol):
    """Measures one call, in milliseconds of the device's own clock."""

    method: str

    def time(self, call: Callable[[], object]) -> float:
        """Run the call to its end and return how long it took."""


class Order:
    """Draws the order of the sides in each turn, in random complete blocks.

    In every second timed turn, in every one where few are planned, the reference has two legs: `twin` is the candidate
    of an A/A run. A leg is quicker or slower by its place, and by what the turn before it ended with. So all orders
    of the sides come equally often, and chance alone says which comes when (Fisher, The Design of Experiments, 1935):
    in an order that recurs, one side would always follow on the same others.
    """

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._left: dict[int, list[tuple[str, ...]]] = {2: [], 3: []}

    def legs(self, turn: int, timed: int) -> tuple[str, ...]:
        """Sides of a turn (from 0, the warm-up first), where `timed` turns are planned after the warm-up."""
        left = self._left[3 if turn >= WARM_UP and (timed <= 2 * FLOOR or turn % 2 == 0) else 2]
        if not left:
            orders = _THREE if left is self._left[3] else _TWO
            left += [orders[int(place)] for place in self._rng.permutation(len(orders))]
        return left.pop()


class MonotonicTimer:
    """For devices whose calls return when they are done."""

    method = "CLOCK_MONOTONIC"

    def time(self, call: Callable[[], object]) -> float:
        """Run the call and return its milliseconds on the monotonic clock."""
        begin = time.perf_counter_ns()
        call()
        return (time.perf_counter_ns() - begin) / 1e6


class EventTimer:
    """For devices that run behind the host: a pair of events around the call, read after the whole device is idle.

    `accelerator` is `torch.npu` or `torch.cuda`: it makes events and waits for all streams, so that work on another
    stream than the current one is inside the window too.
    """

    method = "device events"

    def __init__(self, accelerator: Any) -> None:
        self._accelerator = accelerator

    def time(self, call: Callable[[], object]) -> float:
        """Run the call and return its milliseconds: the events' time, or the host's where work ran outside of them."""
        begin = self._accelerator.Event(enable_timing=True)
        end = self._accelerator.Event(enable_timing=True)
        self._accelerator.synchronize()
        host = time.perf_counter_ns()
        begin.record()
        call()
        end.record()
        end.synchronize()
        between_events = time.perf_counter_ns() - host
        self._accelerator.synchronize()
        whole = time.perf_counter_ns() - host
        hidden_ms = (whole - between_events) / 1e6  # work on other streams that the events did not see
        elapsed = float(begin.elapsed_time(end))
        return elapsed + hidden_ms if hidden_ms > max(0.05, 0.5 * elapsed) else elapsed


def planned(per_sample_seconds: float, budget_seconds: float) -> int:
    """Return how many samples fit into the budget when one call of each side together takes that long."""
    return max(FLOOR, min(TIMED, int(budget_seconds / per_sample_seconds)))


def summarise(samples_ms: Sequence[float]) -> Timing:
    """Mean, median, minimum and sample standard deviation of at least two samples."""
    return Timing(
        samples_ms=tuple(samples_ms),
        mean_ms=statistics.fmean(samples_ms),
        median_ms=statistics.median(samples_ms),
        min_ms=min(samples_ms),
        std_ms=statistics.stdev(samples_ms),
    )


def noise(samples_ms: Sequence[float]) -> float:
    """Half-width of the 95 % interval of the mean, in milliseconds.

    The larger of two: from the samples as if they were independent, and from the means of ten consecutive blocks,
    which also sees a machine that drifts.
    """
    count = len(samples_ms)
    independent = student(count - 1) * statistics.stdev(samples_ms) / math.sqrt(count)
    size = count // _BLOCKS
    if size < 2:
        return independent
    means = [statistics.fmean(samples_ms[i * size : (i + 1) * size]) for i in range(_BLOCKS)]
    return max(independent, student(_BLOCKS - 1) * statistics.stdev(means) / math.sqrt(_BLOCKS))


def ratio(above_ms: Sequence[float], below_ms: Sequence[float]) -> Ratio:
    """Ratio of the means of two sides that were sampled in turns, with its 95 % interval; at least `FLOOR` pairs.

    The interval is symmetric in the logarithm, and its half-width the larger of two: from the pairs as if they were
    independent (delta method for a ratio of means), and from the ratios of ten consecutive blocks, which also sees
    what lasts for more than one turn. Both use Student's t, as the blocks are few.
    """
    count = len(above_ms)
    above, below = statistics.fmean(above_ms), statistics.fmean(below_ms)
    parts = [a / above - b / below for a, b in zip(above_ms, below_ms, strict=True)]
    half = student(count - 1) * statistics.stdev(parts) / math.sqrt(count)
    size = count // _BLOCKS
    if size >= 2:
        logs = [
            math.log(math.fsum(above_ms[i : i + size]) / math.fsum(below_ms[i : i + size]))
            for i in range(0, _BLOCKS * size, size)
        ]
        half = max(half, student(_BLOCKS - 1) * statistics.stdev(logs) / math.sqrt(_BLOCKS))
    value = above / below
    return Ratio(value, value * math.exp(-half), value * math.exp(half), count)


def combined(ratios: Sequence[Ratio]) -> Ratio:
    """Geometric mean of independent ratios; their half-widths, in the logarithm, add as squares."""
    value = geometric([item.value for item in ratios])
    half = math.sqrt(math.fsum(math.log(item.high / item.value) ** 2 for item in ratios)) / len(ratios)
    return Ratio(value, value * math.exp(-half), value * math.exp(half), min(item.pairs for item in ratios))


def student(freedom: int) -> float:
    """97.5 % quantile of Student's t for freedom >= 3, by expansion (Abramowitz and Stegun 26.7.5)."""
    x = 1.959963984540054
    f = float(freedom)
    first = (x**3 + x) / 4
    second = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    third = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    fourth = (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160
    return x + first / f + second / f**2 + third / f**3 + fourth / f**4


def geometric(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def combined_noise_ms(cases: Sequence[CaseMeasurement]) -> float:
    """Half-width of the 95 % interval of the geometric mean of the candidate's means, to first order."""
    relative = math.sqrt(sum((case.noise_ms / case.candidate.mean_ms) ** 2 for case in cases)) / len(cases)
    return geometric([case.candidate.mean_ms for case in cases]) * relative
