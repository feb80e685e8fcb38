"""Settings of the agent: what a run is told once, as typed values. Nothing is read at import."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.retry import Backoff


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What one run of the loop is told."""

    library: str
    """The library that is read and written."""
    run: str
    """Name of the run; a task is called `<run>.<operator>`, so the same name continues what was interrupted."""
    budget: int = 30
    """Rounds a task, shared by its two stages."""
    seconds: float | None = None
    """Seconds a task after which an operator that is solved is optimized no further; None means no limit."""
    seed: int = 0
    """Seed of the model's choices and of the judge's inputs."""
    memory: bool = True
    """False: nothing is retrieved, presented or recorded as experience (the `refinement` way of working)."""
    model_retries: int = 6
    """Calls a task that may come to nothing (bad answers and transport errors together) before it gives up."""
    model_backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, ceiling=30.0))
    """Waits between calls to a model that did not come through."""
    rule_tokens: int = 120
    """Longest rule that is asked for when an experience is distilled."""
    extra: tuple[tuple[str, str], ...] = ()
    """Further settings that the task's record should show, e.g. the device and the judge's mode."""

    def task_of(self, operator: str) -> str:
        """Id of the task for one operator in this run."""
        return f"{self.run}.{operator}"

    def configuration(self) -> dict[str, str]:
        """What the task's record shows of these settings."""
        shown = {"run": self.run, "seed": str(self.seed), "memory": "on" if self.memory else "off"}
        if self.seconds is not None:
            shown["seconds"] = f"{self.seconds:g}"
        return shown | dict(self.extra)
