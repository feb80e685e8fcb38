"""One budget of rounds for both stages of a task, and where wanted an allowance of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.errors import RoundsSpent, StageOver, TimeSpent


@dataclass(slots=True)
class Budget:
    """Rounds of a task. `used` counts what the ledger holds, so rounds used before an interruption stay used."""

    rounds: int
    used: int = 0
    seconds: float | None = None
    """Allowance of this run for the task; None means no limit. Time before an interruption is not counted."""
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def left(self) -> int:
        """Rounds that remain."""
        return max(self.rounds - self.used, 0)

    def check(self, *, hurry: bool) -> None:
        """Raise RoundsSpent when no round remains, TimeSpent when `hurry` holds and the seconds are used up."""
        if self.left == 0:
            raise RoundsSpent(f"all {self.rounds} rounds are used")
        if hurry and self.seconds is not None and self.clock() - self.started >= self.seconds:
            raise TimeSpent(f"the allowance of {self.seconds:.0f} s for one operator is used after {self.used} rounds")

    def allows(self, *, hurry: bool) -> bool:
        """Tell whether `check` would let another round begin."""
        try:
            self.check(hurry=hurry)
        except StageOver:
            return False
        return True

    def take(self) -> None:
        """Use one round."""
        self.used += 1
