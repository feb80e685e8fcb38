"""One task as it is being worked on: its history, its budget, and a candidate between proposal and verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from agent.budget import Budget
from agent.calls import Calls
from agent.port import Attempt, OperatorCard, StageKind, Verdict
from agent.progress import TaskResult
from ledger import wire


@dataclass
class Work:
    """One task being worked on. The history only grows."""

    card: OperatorCard
    task: wire.Task
    budget: Budget
    calls: Calls
    history: list[Attempt] = field(default_factory=list)
    query: str | None = None
    """What the model wants to search the memory for next."""
    scored: set[StageKind] = field(default_factory=set)
    """Stages that this run closed for good."""

    @property
    def measured(self) -> list[Attempt]:
        """Correct candidates with a latency, in order."""
        return [item for item in self.history if item.outcome == "correct" and item.latency_ms is not None]

    @property
    def best(self) -> Attempt | None:
        """The fastest correct candidate; the first one, unless another is faster by more than the noise of both."""
        measured = self.measured
        if not measured:
            return None
        first = measured[0]
        faster = [
            item for item in measured if _gain(first, item) > math.hypot(first.noise_ms or 0.0, item.noise_ms or 0.0)
        ]
        return min(faster, key=lambda item: item.latency_ms or 0.0, default=first)

    @property
    def improved(self) -> bool:
        """Whether a candidate is faster than the first correct one by more than the noise."""
        return bool(self.measured) and self.best is not self.measured[0]

    def result(self, reason: str, *, continued: bool = False) -> TaskResult:
        """Say how the task stands."""
        measured = self.measured
        best = self.best
        return TaskResult(
            task=self.task.task,
            operator=self.card.name,
            level=self.card.level,
            solved=bool(measured),
            rounds=self.budget.used,
            first_ms=measured[0].latency_ms if measured else None,
            best_ms=best.latency_ms if best else None,
            reference_ms=best.reference_ms if best else None,
            reason=reason,
            continued=continued,
        )


def _gain(first: Attempt, later: Attempt) -> float:
    return (first.latency_ms or 0.0) - (later.latency_ms or 0.0)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A candidate that the ledger holds and that is to be judged."""

    candidate: str
    round: int
    source: str
    change: str
    hypothesis: str
    parent: str | None

    def with_verdict(self, kind: StageKind, verdict: Verdict) -> Attempt:
        """Make the round's entry in the history."""
        return Attempt(
            round=self.round,
            stage=kind,
            candidate=self.candidate,
            source=self.source,
            change=self.change,
            hypothesis=self.hypothesis,
            outcome=verdict.outcome,
            summary=verdict.summary,
            evidence=verdict.evidence,
            latency_ms=verdict.latency_ms,
            reference_ms=verdict.reference_ms,
            noise_ms=verdict.noise_ms,
            parent=self.parent,
        )
