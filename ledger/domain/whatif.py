"""What keeps an experience out of the resident set, by how much, and the least change that would let it in."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from ledger.domain import consolidation
from ledger.domain.state import Experience, State

_NOTHING = 1e-300
"""Below it a number times another may come out as 0."""


@dataclass(frozen=True, slots=True)
class Above:
    """A rule that out-ranks the experience and takes budget."""

    experience: str
    priority: float
    tokens: int
    margin: float
    """Its priority less the experience's."""


@dataclass(frozen=True, slots=True)
class Opposed:
    """A conflict that keeps the experience out."""

    conflict: str
    rival: str
    reason: str
    settled: bool
    """True: the experience is the loser, and stays out while the rival lives. False: the rival ranks above it."""


@dataclass(frozen=True, slots=True)
class Least:
    """The least change of one number, the others as they are; None where it needs none or no value of it would do."""

    value: float | None
    """Any value above this, and no other."""
    frequency: float | None
    """Any frequency above this, and no other."""
    tokens: int | None
    """A rule of at most so many tokens."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why not, in numbers. Empty fields hinder nothing."""

    retired: bool = False
    no_residents: bool = False
    value_short: float | None = None
    """How far the value is below 0, which it must exceed; 0.0 where it is exactly 0."""
    adoptions_missing: int = 0
    operators_missing: int = 0
    rule_missing: bool = False
    conflicts: tuple[Opposed, ...] = ()
    above: tuple[Above, ...] = ()
    """Where its tokens do not fit: the rules that take the budget before its turn."""
    rank: int | None = None
    """Where it stands or would stand, the gate passed, among `candidates`; None without a rule text."""
    candidates: int = 0
    fits: bool = False
    """At that rank its tokens fit and no conflict keeps it out: nothing is needed but what the gate asks for."""
    least: Least | None = None


def hindrance(state: State, experience: Experience) -> Hindrance:
    """What stands between an experience and residence. For a resident every field is empty."""
    policy = state.policy
    if experience.resident:
        return Hindrance()
    if experience.retired or policy.consolidation == "none":
        # Nothing that a number could change stands in the way.
        return Hindrance(retired=experience.retired, no_residents=not experience.retired)
    gated = policy.consolidation == "utility"
    standing = consolidation.standing_of(state, experience)
    field = _Field(state, experience)
    fits = bool(experience.tokens) and field.admits(field.priority, experience.tokens or 1)
    return Hindrance(
        value_short=abs(standing.value) if gated and standing.value <= 0.0 else None,
        adoptions_missing=max(policy.min_adoptions - standing.adoptions, 0) if gated else 0,
        operators_missing=max(policy.min_operators - standing.operators, 0) if gated else 0,
        rule_missing=experience.rule is None,
        conflicts=field.opposed(),
        above=field.above(),
        rank=field.place(field.priority, experience.tokens) + 1 if experience.tokens else None,
        candidates=len(field.others) + 1,
        fits=fits,
        least=None if fits else _least(field, standing, gated=gated),
    )


class _Field:
    """The other candidates in order, and what is taken when the turn comes to an experience among them."""

    def __init__(self, state: State, experience: Experience) -> None:
        self.policy = state.policy
        self.name = experience.id
        self.tokens = experience.tokens
        self.others = consolidation.others(state, experience.id)
        self.keys = [(negative, tokens, name) for negative, tokens, name, *_ in self.others]
        self.used = [0]
        for place in self.others:
            self.used.append(self.used[-1] + (place[1] if place[5] else 0))
        if self.policy.consolidation == "random":
            self.priority = consolidation.drawn(self.policy, experience.id)
        else:
            standing = consolidation.standing_of(state, experience)
            self.priority = max(standing.value, 0.0) * standing.frequency / (experience.tokens or 1)
        places = {place[2]: index for index, place in enumerate(self.others) if place[5]}
        conflicts = state.conflicts_of.get(experience.id, [])
        self.lost = [c for c in conflicts if c.loser == self.name and not state.experiences[c.rival(self.name)].retired]
        self.open = [(places[c.rival(self.name)], c) for c in conflicts if c.open and c.rival(self.name) in places]

    def place(self, priority: float, tokens: int) -> int:
        """How many stand above a rule of this priority and length."""
        return bisect_left(self.keys, (-priority, tokens, self.name))

    def admits(self, priority: float, tokens: int) -> bool:
        """Whether a consolidation would admit it so, the gate passed."""
        if self.lost or priority <= 0.0:
            return False
        at = self.place(priority, tokens)
        return self.used[at] + tokens <= self.policy.budget_tokens and all(at <= rival for rival, _ in self.open)

    def opposed(self) -> tuple[Opposed, ...]:
        """Settled conflicts that it lost to a living rival, and open ones with a rival that is admitted before it."""
        at = self.place(self.priority, self.tokens or 1)
        found = [(c, True) for c in self.lost] + [(c, False) for rival, c in self.open if rival < at]
        return tuple(Opposed(c.id, c.rival(self.name), c.reason, settled) for c, settled in found)

    def above(self) -> tuple[Above, ...]:
        """The rules that leave it no room."""
        if not self.tokens:
            return ()
        at = self.place(self.priority, self.tokens)
        if self.used[at] + self.tokens <= self.policy.budget_tokens:
            return ()
        return tuple(
            Above(place[2], -place[0], place[1], -place[0] - self.priority) for place in self.others[:at] if place[5]
        )


def _least(field: _Field, standing: consolidation.Standing, *, gated: bool) -> Least:
    tokens = field.tokens
    value = frequency = None
    if gated and tokens:
        # Written as the ranking computes it, so that the last digit is the same.
        value = _greatest_failing(
            lambda v: field.admits(v * standing.frequency / tokens, tokens), field.policy.value_bounds[1]
        )
        if standing.value > 0.0:
            frequency = _greatest_failing(lambda f: field.admits(standing.value * f / tokens, tokens), 1.0)
    return Least(value, frequency, _most_tokens(field, standing, gated=gated))


def _greatest_failing(does: Callable[[float], bool], most: float) -> float | None:
    """The greatest number that does not do, where all above it up to `most` do; None where `most` does not do either.

    Floats above 0 are in the order of their bits, so bisection over these finds it to the last digit.
    """
    if not does(most):
        return None
    low, high = 0, _bits(most)
    while high - low > 1:
        middle = (low + high) // 2
        if does(_float(middle)):
            high = middle
        else:
            low = middle
    found = _float(low)
    return found if found > _NOTHING else 0.0


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _most_tokens(field: _Field, standing: consolidation.Standing, *, gated: bool) -> int | None:
    """The longest rule that would be admitted: a shorter one ranks no lower and needs less room."""
    worth = max(standing.value, 0.0) * standing.frequency

    def does(length: int) -> bool:
        return field.admits(worth / length if gated else field.priority, length)

    if not does(1):
        return None
    low, high = 1, max(field.tokens or field.policy.budget_tokens, 1)
    while low < high:
        middle = (low + high + 1) // 2
        if does(middle):
            low = middle
        else:
            high = middle - 1
    return low
