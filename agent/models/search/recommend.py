"""Reads what memory recommends: the `Change: name = value` lines of offers and residents, for a kernel's choices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.models.search import space
from agent.models.search.dimensions import Traits
from agent.models.search.space import Choices
from agent.port import Context

_LINE = re.compile(r"\bChange:\s*`?([a-z_]+)\s*=\s*([\w.+-]+)`?", re.IGNORECASE)

CORRECTNESS = frozenset(
    (
        "layout", "tail", "accumulator", "softmax_shift", "variance", "eps", "ties", "nan", "fast_math", "loop_order",
        "cdf", "tile_k",
    )
)  # fmt: skip
"""Decisions that can make a kernel wrong; the others are left for the optimization stage."""

MEANING = frozenset({"eps", "ties", "nan"})
"""Decisions about what is computed rather than how: settled once a kernel is correct."""

UNSOUND: Mapping[str, frozenset[str]] = {
    "tail": frozenset({"ignored"}),
    "softmax_shift": frozenset({"none"}),
    "variance": frozenset({"sum_of_squares"}),
    "cdf": frozenset({"erf"}),
    "layout": frozenset({"assume_contiguous"}),
}
"""Values that a correct kernel is not changed to for speed: they give up cases that it handles."""

_OPENERS: tuple[Choices, ...] = (
    {},
    {"layout": "fast_path"},
    {"simd": "vector"},
    {"layout": "fast_path", "simd": "vector"},
    {"tile": "64"},
    {"layout": "fast_path", "simd": "vector", "register_tile": "4x2"},
)
"""What a choice may need before it applies: dense rows, vectors, tiles."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """An experience as this model understands it."""

    id: str
    title: str
    changes: tuple[tuple[str, str], ...]
    worth: float
    resident: bool

    @property
    def words(self) -> str:
        """Its changes, written as a change is written."""
        return written(dict(self.changes))


def written(changes: Mapping[str, str]) -> str:
    """`name = value` of each change; what the ledger records and other readers parse."""
    return ", ".join(f"{name} = {value}" for name, value in changes.items())


def read(text: str) -> tuple[tuple[str, str], ...]:
    """The changes that a text names, whether this model knows them or not."""
    return tuple((name.lower(), value.rstrip(".").lower()) for name, value in _LINE.findall(text))


def recommendations(context: Context) -> tuple[Recommendation, ...]:
    """Residents by value, then offers by score; those without a change in the vocabulary have none in `changes`."""
    residents = [Recommendation(r.id, "", _known(r.rule), r.value, resident=True) for r in context.residents]
    offers = [Recommendation(o.id, o.title, _known(o.body), o.score, resident=False) for o in context.offers]
    residents.sort(key=lambda item: (-item.worth, item.id))
    offers.sort(key=lambda item: (-item.worth, item.id))
    return (*residents, *offers)


def _known(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((n, v) for n, v in read(text) if n in space.BY_NAME and v in space.BY_NAME[n].values)


def applied(traits: Traits, base: Choices, changes: Sequence[tuple[str, str]]) -> Choices | None:
    """The base with the changes made, and with what they need; None where one of them can not apply to this kernel."""
    wanted = dict(changes)
    for opener in _OPENERS:
        target = space.settle(traits, base | opener | wanted)
        if all(target.get(name) == value for name, value in wanted.items()):
            return target
    return None


def difference(base: Mapping[str, str], target: Mapping[str, str]) -> dict[str, str]:
    """The choices of `target` that `base` does not have; one that has just become open and is plain is no change."""
    return {n: value for n, value in target.items() if base.get(n, space.BY_NAME[n].values[0]) != value}


def made(recommendation: Recommendation, base: Mapping[str, str], target: Mapping[str, str]) -> bool:
    """Whether going from base to target made the change that the experience describes."""
    differs = difference(base, target)
    return any(differs.get(n) == v for n, v in recommendation.changes) and all(
        target.get(n) == v for n, v in recommendation.changes
    )


def moves(traits: Traits, base: Choices) -> Iterator[tuple[str, str]]:
    """Every single change that can be made for speed."""
    for dimension in space.dimensions(traits, base):
        if dimension.name in MEANING:
            continue
        for value in dimension.values:
            if value != base[dimension.name] and value not in UNSOUND.get(dimension.name, frozenset()):
                yield dimension.name, value
