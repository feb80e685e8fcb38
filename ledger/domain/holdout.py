"""Hold-out evidence: scores of stages with a resident rule in context beside those from which it was withheld."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.domain.state import State


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
    failure = state.policy.failure_score
    bounds = (min(failure, 0.0), max(failure, 1.0))
    for stage in state.stages.values():
        if stage.status != "scored" or stage.invalid or stage.score is None or not stage.drawn:
            continue
        for name in stage.rules:
            found.setdefault(name, Arms(name, bounds=bounds)).presented.append(stage.score)
        if stage.withheld is not None:
            found.setdefault(stage.withheld, Arms(stage.withheld, bounds=bounds)).withheld.append(stage.score)
    return found
