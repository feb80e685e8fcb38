"""What the work cost: model tokens and seconds, compile, device and upkeep, by whatever it is grouped by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ledger.domain import events as ev
from ledger.domain.state import State

Group = Literal["library", "operator", "task", "stage", "round", "model"]
GROUPS: tuple[Group, ...] = ("library", "operator", "task", "stage", "round", "model")

NOBODY = "-"
"""The group of what belongs to none, e.g. what was spent outside of any stage, or by no model."""


@dataclass(slots=True)
class Total:
    """Sums of one group. Seconds by kind: model, compile, device, upkeep."""

    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("model", "compile", "device", "upkeep"), 0.0)
    )
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    """Some of the tokens were counted here because the provider reported none."""

    def add(self, cost: ev.CostIncurred) -> None:
        """Take one cost in."""
        self.seconds[cost.kind] += cost.seconds
        self.input_tokens += cost.input_tokens
        self.output_tokens += cost.output_tokens
        self.estimated = self.estimated or cost.estimated


def totals(state: State, events: Iterable[ev.Event], by: Group) -> dict[str, Total]:
    """Costs of a library in groups, in the order in which the groups first cost something."""
    found: dict[str, Total] = {}
    for event in events:
        if isinstance(event, ev.CostIncurred):
            found.setdefault(_key(state, event, by), Total()).add(event)
    return found


def _key(state: State, cost: ev.CostIncurred, by: Group) -> str:
    stage = state.stages.get(cost.stage) if cost.stage else None
    task = cost.task or (stage.task if stage else None)
    keys = {
        "library": "library",
        "operator": stage.operator if stage else state.tasks[task].operator if task in state.tasks else NOBODY,
        "task": task or NOBODY,
        "stage": cost.stage or NOBODY,
        "round": f"{cost.stage or '-'}#{cost.round}" if cost.round is not None else f"{cost.stage or '-'}#-",
        "model": cost.model or NOBODY,
    }
    return keys[by]


@dataclass(slots=True)
class Upkeep:
    """What a rule cost and brought. Context is tokens times the stages that it was presented in."""

    experience: str
    distilled_seconds: float = 0.0
    distilled_tokens: int = 0
    context_tokens: int = 0
    presented: int = 0
    used: int = 0
    credit: float = 0.0
    """Sum of the feedback in stages in which it was used as a resident rule."""


def upkeep(state: State, events: Iterable[ev.Event]) -> dict[str, Upkeep]:
    """By rule: what its upkeep cost against what it brought."""
    found: dict[str, Upkeep] = {}
    tokens: dict[str, int] = {}

    def of(name: str) -> Upkeep:
        return found.setdefault(name, Upkeep(name))

    for event in events:
        match event:
            case ev.RuleDistilled():
                tokens[event.experience] = event.tokens
                of(event.experience)
            case ev.CostIncurred(kind="upkeep", experience=str(name)):
                item = of(name)
                item.distilled_seconds += event.seconds
                item.distilled_tokens += event.input_tokens + event.output_tokens
            case ev.RulesPresented():
                for name in event.rules:
                    item = of(name)
                    item.presented += 1
                    item.context_tokens += tokens.get(name, 0)
            case ev.ValueUpdated(adopted=True):
                stage = state.stages[event.stage]
                if event.experience in stage.rules and not stage.invalid:
                    item = of(event.experience)
                    item.used += 1
                    item.credit += event.feedback
            case _:
                pass
    return found
