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


def arms(state: State) -> dict[str, Arms]:
    """By rule that was ever withheld or presented in a scored stage that still counts."""
    found: dict[str, Arms] = {}
    for stage in state.stages.values():
        if stage.status != "scored" or stage.invalid or stage.score is None or stage.basis == "reported":
            continue
        for name in stage.rules:
            found.setdefault(name, Arms(name)).presented.append(stage.score)
        if stage.withheld is not None:
            found.setdefault(stage.withheld, Arms(stage.withheld)).withheld.append(stage.score)
    return found
