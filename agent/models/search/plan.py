"""What a round starts from, and what it decides."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agent.models.search import space
from agent.models.search.dimensions import Traits
from agent.models.search.ir import Program
from agent.models.search.recommend import Recommendation, difference, made, written
from agent.models.search.space import Choices
from agent.port import Attempt, Context, Decision, Diagnosis


@dataclass(frozen=True, slots=True)
class Situation:
    """One round: the operator as understood, what memory recommends, and what chance there is."""

    context: Context
    program: Program
    traits: Traits
    advice: tuple[Recommendation, ...]
    draft: Choices
    rng: random.Random
    patience: int

    def choices_of(self, attempt: Attempt) -> Choices:
        """The choices that an attempt was composed from."""
        return space.settle(self.traits, space.parse(attempt.source))

    def judged(self, choices: Choices) -> Attempt | None:
        """The attempt that had just these choices, if any."""
        return next((a for a in self.context.history if self.choices_of(a) == choices), None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of a round: the choices to compose, or None when there is nothing more to try."""

    choices: Choices | None
    change: str
    hypothesis: str
    decisions: tuple[Decision, ...] = ()
    diagnosis: Diagnosis | None = None
    parent: str | None = None


def adoptions(situation: Situation, base: Choices, target: Choices, purpose: str) -> tuple[Decision, ...]:
    """A decision for each experience whose change is the change from base to target."""
    number = situation.context.round
    return tuple(
        Decision(item.id, adopted=True, reason=f"made in round {number}: {item.words}, {purpose}")
        for item in situation.advice
        if made(item, base, target)
    )


def reasons(changes: dict[str, str]) -> str:
    """Why these decisions matter, from the vocabulary."""
    return "; ".join(f"{name} = {value}: {space.BY_NAME[name].reason}" for name, value in changes.items())


def told(base: Choices, target: Choices) -> str:
    """The change from base to target as it is recorded."""
    return written(difference(base, target)) or "no choice differs"
