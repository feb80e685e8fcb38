"""What keeps an experience out of the resident set, by how much, and the least change that would let it in."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.domain import consolidation
from ledger.domain.state import Experience, State


@dataclass(frozen=True, slots=True)
class Above:
    """A rule that out-ranks the experience and takes budget."""

    experience: str
    priority: float
    tokens: int
    margin: float
    """Its priority less the experience's."""


@dataclass(frozen=True, slots=True)
class Least:
    """The least change of one number, the others as they are; None where no value of it would do."""

    value: float | None
    """Any value above this."""
    frequency: float | None
    """Any frequency above this."""
    tokens: int | None
    """A rule of at most so many tokens."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why not, in numbers. Empty fields hinder nothing."""

    retired: bool
    no_residents: bool
    value_short: float | None
    """How far the value is below 0, which it must exceed; 0.0 where it is exactly 0."""
    adoptions_missing: int
    operators_missing: int
    rule_missing: bool
    against: str | None
    """The rule that it contradicts and that keeps it out."""
    above: tuple[Above, ...]
    least: Least | None


def hindrance(state: State, experience: Experience) -> Hindrance:
    """What stands between an experience and residence. For a resident every field is empty."""
    policy = state.policy
    if experience.resident:
        return Hindrance(False, False, None, 0, 0, False, None, (), None)
    gated = policy.consolidation == "utility"
    standing = consolidation.standing_of(state, experience)
    ranked = consolidation.rank(state, {})
    line = next((r for r in ranked if r.experience == experience.id), None)
    others = [r for r in ranked if r.experience != experience.id]
    priority = 0.0
    if experience.tokens:
        priority = max(standing.value, 0.0) * standing.frequency / experience.tokens
    above = tuple(
        Above(r.experience, r.priority, r.tokens, r.priority - priority)
        for r in others
        if r.resident and r.priority >= priority
    )
    if experience.retired or policy.consolidation == "none":
        # Nothing that a number could change stands in the way.
        return Hindrance(experience.retired, not experience.retired, None, 0, 0, False, None, (), None)
    live = gated and bool(experience.tokens)
    return Hindrance(
        retired=False,
        no_residents=False,
        value_short=abs(standing.value) if gated and standing.value <= 0.0 else None,
        adoptions_missing=max(policy.min_adoptions - standing.adoptions, 0) if gated else 0,
        operators_missing=max(policy.min_operators - standing.operators, 0) if gated else 0,
        rule_missing=experience.rule is None,
        against=line.against if line else None,
        above=above if experience.tokens and (line is None or not line.resident) else (),
        least=_least(state, experience, standing, [(r.priority, r.tokens) for r in others]) if live else None,
    )


def _cut(others: list[tuple[float, int]], tokens: int, budget: int) -> float | None:
    """The priority that a rule of this length must exceed to fit; None where it can not fit at any rank."""
    if tokens > budget:
        return None
    used = 0
    place = len(others)
    for index, (_, taken) in enumerate(others):
        if used + tokens > budget:
            place = index
            break
        if used + taken <= budget:
            used += taken
    else:
        if used + tokens <= budget:
            return 0.0
    # It fits before the rule that would leave it no room, so it must out-rank that one.
    return others[place - 1][0]


def _least(
    state: State, experience: Experience, standing: consolidation.Standing, others: list[tuple[float, int]]
) -> Least:
    budget = state.policy.budget_tokens
    tokens = experience.tokens or 1
    cut = _cut(others, tokens, budget)
    value = frequency = None
    if cut is not None:
        if standing.frequency > 0.0:
            value = cut * tokens / standing.frequency
            if value >= state.policy.value_bounds[1]:
                value = None
        if standing.value > 0.0:
            frequency = cut * tokens / standing.value
            if frequency >= 1.0:
                frequency = None
    return Least(value, frequency, _least_tokens(standing, others, tokens, budget))


def _least_tokens(
    standing: consolidation.Standing, others: list[tuple[float, int]], tokens: int, budget: int
) -> int | None:
    """The longest rule that would fit: a shorter one ranks higher and needs less room, so bisection finds it."""
    worth = max(standing.value, 0.0) * standing.frequency
    if worth <= 0.0:
        return None

    def fits(length: int) -> bool:
        cut = _cut(others, length, budget)
        return cut is not None and worth / length > cut

    if not fits(1):
        return None
    low, high = 1, tokens
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
