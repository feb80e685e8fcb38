"""How the benchmarks time: repeated calls, every sample kept, no mean without its spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of the table. Times are of one call, in milliseconds on a monotonic clock."""

    name: str
    what: str
    samples_ms: tuple[float, ...]
    items: int = 1
    """How many things (events, candidates) one call handles."""

    @property
    def median_ms(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples_ms)

    @property
    def p95_ms(self) -> float:
        """The sample that 95 % do not exceed (nearest rank)."""
        ordered = sorted(self.samples_ms)
        return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)]

    @property
    def items_per_second(self) -> float:
        """Throughput at the median."""
        return self.items / (self.median_ms / 1000)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the samples with what is read off them."""
        return asdict(self) | {
            "median_ms": self.median_ms,
            "p95_ms": self.p95_ms,
            "items_per_second": self.items_per_second,
        }


def timed(
    name: str, what: str, call: Callable[[int], object], *, times: int, warm_up: int = 3, items: int = 1
) -> Measurement:
    """Call with 0, 1, 2 … and keep the time of each call after the warm-up."""
    for index in range(warm_up):
        call(index)
    samples = []
    for index in range(warm_up, warm_up + times):
        began = time.perf_counter_ns()
        call(index)
        samples.append((time.perf_counter_ns() - began) / 1e6)
    return Measurement(name, what, tuple(samples), items)
