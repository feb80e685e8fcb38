"""Hold-out evidence: scores of stages with a resident rule in context beside those from which it was withheld."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.domain.state import Stage, State


@dataclass(slots=True)
class Arms:
    """Stage scores of one rule. The draw is by stage and seed, so the two differ by chance alone."""

    experience: str
    presented: list[float] = field(default_factory=list)
    withheld: list[float] = field(default_factory=list)
    bounds: tuple[float, float] = (0.0, 1.0)
    """Between which a stage score of the policy lies."""


def arms(state: State) -> dict[str, Arms]:
    """By rule that was withheld from or presented to a scored stage that counts and in which the draw was made.

    A stage that began while nothing was held out is in neither arm: it could not have been without the rule.
    """
    found: dict[str, Arms] = {}
    for stage, score in _drawn(state):
        for name in stage.rules:
            found.setdefault(name, Arms(name, bounds=_bounds(state))).presented.append(score)
        if stage.withheld is not None:
            found.setdefault(stage.withheld, Arms(stage.withheld, bounds=_bounds(state))).withheld.append(score)
    return found


def arms_of(state: State, name: str) -> Arms:
    """The two of one rule; both may be empty."""
    found = Arms(name, bounds=_bounds(state))
    for stage, score in _drawn(state):
        if stage.withheld == name:
            found.withheld.append(score)
        elif name in stage.rules:
            found.presented.append(score)
    return found


def _drawn(state: State) -> Iterator[tuple[Stage, float]]:
    for stage in state.stages.values():
        if stage.drawn and stage.status == "scored" and not stage.invalid and stage.score is not None:
            yield stage, stage.score


def _bounds(state: State) -> tuple[float, float]:
    failure = state.policy.failure_score
    return min(failure, 0.0), max(failure, 1.0)
