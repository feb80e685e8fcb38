"""When to try again and how long to wait: plain values, no clock and no sleeping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits of `first`, `first * factor`, … seconds, none longer than `ceiling`, until they sum up to `patience`."""

    first: float = 0.25
    factor: float = 2.0
    ceiling: float = 5.0
    patience: float = 60.0

    def waits(self) -> Iterator[float]:
        """The waits in order; the last one is cut so that the sum is exactly `patience`."""
        wait, waited = self.first, 0.0
        while waited < self.patience:
            step = min(wait, self.ceiling, self.patience - waited)
            yield step
            waited += step
            wait *= self.factor


@dataclass(slots=True)
class Retries:
    """How many more calls to a model may come to nothing in a task, so that a bad endpoint can not eat the run."""

    allowed: int
    used: int = 0

    def take(self) -> bool:
        """Use one, if there is one."""
        if self.used >= self.allowed:
            return False
        self.used += 1
        return True

    def wait(self, retry_after: float | None, backoff: Backoff) -> float:
        """Return the seconds before the next try: what the endpoint asks for, up to the ceiling, or our own."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), backoff.ceiling)
        return min(backoff.first * backoff.factor ** max(self.used - 1, 0), backoff.ceiling)
