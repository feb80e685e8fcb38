"""The form of a fused operator here: inputs made out of a row of sizes, and tables of such rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Sizes = tuple[int, ...]
Table = Mapping[str, Sizes]
Attributes = Callable[[Sizes], Mapping[str, float]]


def no_attributes(sizes: Sizes) -> Mapping[str, float]:  # noqa: ARG001  (one form for all)
    """Give none."""
    return {}


def fused(
    name: str,
    *,
    family: str,
    summary: str,
    reference: Callable[..., tuple[Tensor, ...]],
    baseline: Callable[..., tuple[Tensor, ...]],
    make: Callable[..., tuple[TensorSpec, ...]],
    outputs: Callable[..., tuple[TensorSpec, ...]],
    accumulation: Callable[..., int],
    visible: Table,
    hidden: Callable[[Generator], Table],
    full: Sequence[Sizes],
    traps: tuple[str, ...],
    dtypes: tuple[str, ...],
    attributes: Attributes = no_attributes,
    conditions: tuple[str, ...] = (),
    expert: Path | None = None,
    magnitudes: Callable[..., tuple[Tensor, ...]] | None = None,
) -> Operator:
    """Make a fused operator; the first two visible rows of sizes are timed.

    `make` gets a row of sizes, `outputs` and `accumulation` the inputs that it made.
    """

    def case(label: str, sizes: Sizes, *, timed: bool = False, hidden: bool = False) -> Case:
        return Case(label, make(*sizes), dict(attributes(sizes)), timed, hidden)

    def hidden_cases(rng: Generator) -> tuple[Case, ...]:
        return tuple(case(label, sizes, hidden=True) for label, sizes in hidden(rng).items())

    rows = tuple(visible.items())
    return Operator(
        name=name,
        level=4,
        family=family,
        summary=summary,
        cases=tuple(case(label, sizes, timed=number < 2) for number, (label, sizes) in enumerate(rows)),
        full_cases=tuple(case(f"full-{number}", sizes) for number, sizes in enumerate(full)),
        reference=reference,
        baseline=baseline,
        outputs=lambda one: outputs(*one.inputs, **one.attributes),
        hidden_cases=hidden_cases,
        accumulation=lambda one: accumulation(*one.inputs),
        dtypes=dtypes,
        attributes=tuple(attributes(rows[0][1])),
        traps=traps,
        conditions=conditions,
        expert_file=expert,
        magnitudes=magnitudes,
    )
