"""Every number of the memory arithmetic as one value, recorded in the library; it can be re-derived under another.

ATU is adoption-traced utility (how an experience gains and loses value), UGC utility-gated consolidation (which rules
are resident). Source: SAGE; where its text disagrees with itself the values below are those that its examples settle.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from ledger.errors import PolicyError

Credit = Literal["adopted_split", "uniform", "none"]
Consolidation = Literal["utility", "random", "none"]
Fusion = Literal["scores", "ranks"]


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of ATU and UGC. Defaults are the preset `sage`."""

    failure_score: float = -0.1
    """Stage score of a failed correctness stage or of an optimization without improvement."""
    non_adoption_feedback: float = -0.2
    """Feedback to an experience that was retrieved and not adopted."""
    value_bounds: tuple[float, float] = (-0.1, 1.0)
    """The value is held within these after each update."""
    alpha_min: float = 0.05
    """Least weight of new feedback: alpha = max(alpha_min, 1 / (1 + N))."""
    min_adoptions: int = 3
    """Gate: stages in which the experience was adopted."""
    min_operators: int = 3
    """Gate: distinct operators in whose stages it was adopted."""
    budget_tokens: int = 10_000
    """Capacity of the resident set, in tokens."""
    beta: float = 0.1
    """Weight of the newest stage in the moving average of a rule's frequency."""
    credit: Credit = "adopted_split"
    """How a stage score is shared: split over the adopted, whole to every offered one, or not at all."""
    consolidation: Consolidation = "utility"
    """How residents are chosen: by V * f / tokens, drawn with `resident_seed`, or not at all."""
    pool_size: int = 30
    """Candidates that relevance alone puts forward in a retrieval."""
    top_n: int = 8
    """Experiences offered of that pool after re-ranking by value."""
    value_weight: float = 0.5
    """Weight of V beside relevance (scaled to 1 for the best hit) in the re-ranking; relevance stays primary."""
    fusion: Fusion = "scores"
    """Where a dense ranking takes part: by weighted scores, each over its best, or by reciprocal ranks."""
    dense_weight: float = 0.6
    """`scores`: weight of the cosine; BM25 has the rest."""
    dense_on_names: float = 0.5
    """`scores`: share of `dense_weight` that is left for a query of nothing but names out of code."""
    rrf_k: int = 60
    """`ranks`: relevance = sum over the rankings of 1 / (rrf_k + rank)."""
    fusion_depth: int = 2
    """Each ranking is read to this many times `pool_size` before both are fused."""
    retrieval: bool = True
    """False: no experience is ever offered."""
    open_to_experiences: bool = True
    """False: no experience is taken once a task has started."""
    resident_seed: int = 0
    """Seed of the draw where consolidation is `random`."""
    holdout_rate: float = 0.0
    """Share of stages from which one resident rule is withheld, to measure what it brings."""
    holdout_seed: int = 0

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(type(self)):
            value = getattr(self, field.name)
            if not all(_storable(number) for number in (value if isinstance(value, tuple) else (value,))):
                raise PolicyError(
                    f"policy field {field.name!r} is {value!r}: it must be finite and within 64 bits", field=field.name
                )
        low, high = self.value_bounds
        checks = (
            ("value_bounds", low <= 0.0 <= high and low < high, "must hold 0, the value that everything starts with"),
            ("alpha_min", 0.0 < self.alpha_min <= 1.0, "must be above 0 and at most 1"),
            ("beta", 0.0 <= self.beta <= 1.0, "must be from 0 to 1"),
            ("min_adoptions", self.min_adoptions >= 0, "must not be negative"),
            ("min_operators", self.min_operators >= 0, "must not be negative"),
            ("budget_tokens", self.budget_tokens >= 0, "must not be negative"),
            ("pool_size", self.pool_size >= 1, "must be at least 1"),
            ("top_n", self.top_n >= 1, "must be at least 1"),
            ("dense_weight", 0.0 <= self.dense_weight <= 1.0, "must be from 0 to 1"),
            ("dense_on_names", 0.0 <= self.dense_on_names <= 1.0, "must be from 0 to 1"),
            ("rrf_k", self.rrf_k >= 0, "must not be negative"),
            ("fusion_depth", self.fusion_depth >= 1, "must be at least 1"),
            ("value_weight", self.value_weight >= 0.0, "must not be negative"),
            ("holdout_rate", 0.0 <= self.holdout_rate < 1.0, "must be from 0 to below 1"),
        )
        for name, holds, rule in checks:
            if not holds:
                raise PolicyError(f"policy field {name!r} is {getattr(self, name)!r}: it {rule}", field=name)

    def to_mapping(self) -> dict[str, Any]:
        """All fields as JSON-ready values."""
        return dict(msgspec.to_builtins(self))


def _storable(value: object) -> bool:
    """Whether a number reads back from the log as it was."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < 2**63


SAGE = Policy()

PRESETS: dict[str, Policy] = {
    "sage": SAGE,
    "paper": Policy(failure_score=-0.2, non_adoption_feedback=-0.2, value_bounds=(-0.2, 1.0)),
    "value-memory": Policy(credit="uniform", consolidation="none"),
    "static-rag": Policy(credit="none", consolidation="none", open_to_experiences=False),
    "refinement": Policy(credit="none", consolidation="none", retrieval=False, open_to_experiences=False),
    "no-consolidation": Policy(consolidation="none"),
    "random-resident": Policy(consolidation="random"),
    "uniform-credit": Policy(credit="uniform"),
}


def preset(name: str) -> Policy:
    """The preset of that name. Raises PolicyError with the names there are."""
    try:
        return PRESETS[name]
    except KeyError:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise PolicyError(
            f"there is no policy preset {name!r}; {hint}presets: {', '.join(PRESETS)}", preset=name
        ) from None


def from_mapping(fields: Mapping[str, Any], base: Policy = SAGE) -> Policy:
    """`base` with the given subset of fields. Raises PolicyError naming the first field that is unknown or wrong."""
    known = {f.name: f.type for f in msgspec.structs.fields(Policy)}
    merged = base.to_mapping()
    for name, value in fields.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {', '.join(known)}"
            raise PolicyError(f"policy field {name!r} is unknown{hint}", field=name)
        try:
            merged[name] = msgspec.convert(value, known[name])
        except msgspec.ValidationError as error:
            kind = known[name]
            rule = f"it is one of {', '.join(get_args(kind))}" if get_origin(kind) is Literal else error
            raise PolicyError(f"policy field {name!r} is {value!r}: {rule}", field=name) from None
    return msgspec.convert(merged, Policy)
