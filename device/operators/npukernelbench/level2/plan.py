"""Cases of operators over several element types and attribute sets: which shapes, types and attributes meet.

An operator says what its inputs are, given one `first` (a TensorSpec, several of them, or sizes), a dtype and the
attributes; a `Shapes` says which firsts there are; `planned` makes visible, full-sized and hidden cases of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from device.operators.base import Case, Operator, TensorSpec, Values
from device.operators.formats import SHORT
from device.operators.forms import hidden_rows, last_axis, padded, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

T = TypeVar("T")
Formula = Callable[..., "tuple[Tensor, ...]"]
Attributes = Mapping[str, float]
Inputs = Callable[[T, str, Attributes], tuple[TensorSpec, ...]]
Outputs = Callable[[Case], tuple[TensorSpec, ...]]


@dataclass(frozen=True, slots=True)
class Shapes(Generic[T]):
    """Firsts by name: large ones to be timed, small visible ones, and a rule that draws hidden ones.

    The first small one and the first hidden one meet every dtype, and every set of attributes in the first dtype; the
    others take turns.
    """

    timed: Mapping[str, T]
    small: Mapping[str, T]
    hidden: Callable[[Generator], Mapping[str, T]]


def rows(multiple: int = 1, timed: Sequence[tuple[int, int]] = ((256, 1024), (32, 8192))) -> Shapes[TensorSpec]:
    """Shapes of what works along the last axis, whose length is divided by `multiple`."""

    def hidden(rng: Generator) -> Mapping[str, TensorSpec]:
        drawn = {case.name: case.inputs[0] for case in hidden_rows(rng, multiple=multiple)}
        return {"prime": drawn["prime"], **drawn}

    return Shapes(
        {name: TensorSpec(shape) for name, shape in zip(("rows", "long-rows"), timed, strict=True)},
        {
            "tail": TensorSpec((5, 131 * multiple)),
            "short-rows": TensorSpec((257, 7 * multiple)),
            "one-column": TensorSpec((9, multiple)),
            "deep": TensorSpec((2, 3, 5, 33 * multiple)),
            "transposed": swapped((31, 45 * multiple)),
            "sliced": padded((8, 99 * multiple)),
        },
        hidden,
    )


def like(
    first: TensorSpec, dtype: str, values: Values = "any", span: tuple[int, int] | None = None, *, dense: bool = False
) -> TensorSpec:
    """Describe a tensor of the shape and layout of another."""
    return TensorSpec(first.shape, dtype, None if dense else first.strides, values, span)


def row(first: TensorSpec, dtype: str, values: Values = "any") -> TensorSpec:
    """Describe a dense tensor of the length of the last axis of another."""
    return TensorSpec(first.shape[-1:], dtype, values=values)


def column(first: TensorSpec, dtype: str = "float32", values: Values = "any") -> TensorSpec:
    """Describe a dense tensor with one number for each row of another, its last axis kept at size 1."""
    return TensorSpec((*first.shape[:-1], 1), dtype, values=values)


def same_as(*numbers: int) -> Outputs:
    """Return a rule: one dense output of the shape and dtype of each of these inputs."""
    return lambda case: tuple(TensorSpec(case.inputs[i].shape, case.inputs[i].dtype) for i in numbers)


def row_count(case: Case) -> int:
    """Count the rows of the first input along its last axis: what a sum over all of them takes."""
    return case.inputs[0].elements // case.inputs[0].shape[-1]


def row_or_column(case: Case) -> int:
    """Return the longer of a row and a column of the first input: some outputs sum along the one, some the other."""
    return max(last_axis(case), row_count(case))


def dense_full(
    *sizes: tuple[tuple[int, ...], str] | tuple[tuple[int, ...], str, str],
) -> list[tuple[TensorSpec, str, str]]:
    """Describe full-sized dense firsts: shape, dtype and, where there are several, the name of the attributes."""
    return [(TensorSpec(size[0]), size[1], size[2] if len(size) == 3 else "") for size in sizes]


class _Maker(Generic[T]):
    def __init__(self, inputs: Inputs[T], dtypes: Sequence[str], variants: Mapping[str, Attributes]) -> None:
        self.inputs, self.dtypes, self.variants = inputs, tuple(dtypes), dict(variants)

    def case(self, name: str, first: T, dtype: str, variant: str, *, timed: bool = False, hidden: bool = False) -> Case:
        attributes = self.variants[variant]
        label = "-".join(part for part in (name, SHORT[dtype], variant) if part)
        return Case(label, self.inputs(first, dtype, attributes), dict(attributes), timed, hidden)

    def turns(self, firsts: Mapping[str, T], *, timed: bool = False) -> Iterator[tuple[str, T, str, str]]:
        names, kinds = list(self.variants), len(self.dtypes)
        for k, (name, first) in enumerate(firsts.items()):
            variant = names[0] if timed else names[(k + k // kinds) % len(names)]
            yield name, first, self.dtypes[k % kinds], variant

    def every(self, firsts: Mapping[str, T]) -> Iterator[tuple[str, T, str, str]]:
        name, first = next(iter(firsts.items()))
        kind, usual = self.dtypes[0], next(iter(self.variants))
        pairs = ((d, v) for d in self.dtypes for v in self.variants if kind == d or usual == v)
        return ((name, first, dtype, variant) for dtype, variant in pairs)

    def covered(self, firsts: Mapping[str, T], *, hidden: bool = False) -> tuple[Case, ...]:
        places = dict.fromkeys((n, d, v) for n, _, d, v in (*self.every(firsts), *self.turns(firsts)))
        return tuple(self.case(name, firsts[name], dtype, variant, hidden=hidden) for name, dtype, variant in places)


def planned(
    name: str,
    formula: Formula,
    *,
    summary: str,
    shapes: Shapes[T],
    inputs: Inputs[T],
    outputs: Outputs,
    dtypes: Sequence[str] = ("float32", "float16"),
    variants: Mapping[str, Attributes] | None = None,
    family: str = "reduction",
    baseline: Formula | None = None,
    accumulation: Callable[[Case], int] = last_axis,
    expert: Path | None = None,
    traps: Sequence[str] = (),
    conditions: Sequence[str] = (),
    full: Sequence[tuple[T, str, str]] = (),
) -> Operator:
    """Make a level 2 operator; `variants` names sets of attributes, of which the first is the one that is timed.

    `full` gives a first, its dtype and the name of the attributes of each full-sized case.
    """
    maker = _Maker(inputs, dtypes, variants or {"": {}})

    def hidden(rng: Generator) -> tuple[Case, ...]:
        return maker.covered(shapes.hidden(rng), hidden=True)

    timed = tuple(maker.case(*place, timed=True) for place in maker.turns(shapes.timed, timed=True))
    whole = (maker.case(f"full-{k}", first, dtype, variant) for k, (first, dtype, variant) in enumerate(full))
    return Operator(
        name=name,
        level=2,
        family=family,
        summary=summary,
        cases=(*timed, *maker.covered(shapes.small)),
        full_cases=tuple(whole),
        reference=formula,
        baseline=baseline or formula,
        outputs=outputs,
        hidden_cases=hidden,
        accumulation=accumulation,
        dtypes=tuple(dtypes),
        attributes=tuple(next(iter(maker.variants.values()))),
        expert_file=expert,
        traps=tuple(traps),
        conditions=tuple(conditions),
    )
