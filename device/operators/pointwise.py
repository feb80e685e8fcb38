"""Operators with one output element for each index, over several element types: their cases by one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, Values
from device.operators.formats import SHORT
from device.operators.forms import nothing_summed, odd, padded, prime, swapped, tail

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Formula = Callable[..., "tuple[Tensor, ...]"]
Span = tuple[int, int]


class Pointwise:
    """Makes the cases of one operator from `values` of each input, `spans` of whole dtypes, and the output's dtype."""

    def __init__(
        self,
        values: Sequence[Values],
        spans: Mapping[str, Span] | None = None,
        output: str | None = None,
        attributes: Mapping[str, float] | None = None,
    ) -> None:
        self.values, self.spans, self.output = tuple(values), dict(spans or {}), output
        self.attributes = dict(attributes or {})

    def inputs(self, first: TensorSpec, dtype: str) -> tuple[TensorSpec, ...]:
        """Describe all inputs from the layout of one."""
        whole = dtype in {"int8", "uint8", "int32", "int64", "bool"}
        made = []
        for number, values in enumerate(self.values):
            kept: Values = "any" if whole else values
            # The last of several inputs is always dense: layouts differ within one call.
            strides = None if number and number == len(self.values) - 1 else first.strides
            made.append(TensorSpec(first.shape, dtype, strides, kept, self.spans.get(dtype)))
        return tuple(made)

    def case(self, name: str, first: TensorSpec, dtype: str, *, timed: bool = False, hidden: bool = False) -> Case:
        """Make one case."""
        return Case(f"{name}-{SHORT[dtype]}", self.inputs(first, dtype), self.attributes, timed, hidden)

    def outputs(self, case: Case) -> tuple[TensorSpec, ...]:
        """One dense output of the first input's shape."""
        first = case.inputs[0]
        return (TensorSpec(first.shape, self.output or first.dtype),)

    def cases(self, dtypes: Sequence[str]) -> tuple[Case, ...]:
        """Two timed cases of the first two dtypes, and small ones of all."""
        large = TensorSpec((512, 1024))
        cases = [self.case("large", large, dtype, timed=True) for dtype in dtypes[:2]]
        cases += [self.case("tail", TensorSpec((5, 131)), dtype) for dtype in dtypes]
        cases.append(self.case("deep", TensorSpec((2, 3, 5, 33)), dtypes[0]))
        cases.append(self.case("transposed", swapped((37, 53)), dtypes[0]))
        cases.append(self.case("sliced", padded((21, 45)), dtypes[-1]))
        return tuple(cases)

    def hidden(self, dtypes: Sequence[str]) -> Callable[[Generator], tuple[Case, ...]]:
        """Return a function that draws hard shapes; every dtype gets some of them."""

        def draw(rng: Generator) -> tuple[Case, ...]:
            rows, columns = prime(rng, 3, 40), prime(rng, 30, 359)
            shapes: dict[str, TensorSpec] = {
                "single": TensorSpec((1,)),
                "one-column": TensorSpec((odd(rng, 3, 99), 1)),
                "vector": TensorSpec((odd(rng, 3000, 9000),)),
                "block-tail": TensorSpec((tail(rng, 64, 1, 80),)),
                "prime": TensorSpec((rows, columns)),
                "deep": TensorSpec((2, odd(rng, 3, 9), 3, prime(rng, 17, 120))),
                "swapped": swapped((rows, columns)),
                "padded": padded((rows, columns)),
            }
            cases = [
                self.case(name, spec, dtypes[number % len(dtypes)], hidden=True)
                for number, (name, spec) in enumerate(shapes.items())
            ]
            cases += [
                self.case("odd", TensorSpec((odd(rng, 3, 30), odd(rng, 3, 200))), dtype, hidden=True)
                for dtype in dtypes
            ]
            return tuple(cases)

        return draw


def pointwise(
    name: str,
    formula: Formula,
    *,
    level: int,
    summary: str,
    dtypes: Sequence[str],
    values: Sequence[Values] = ("any",),
    spans: Mapping[str, Span] | None = None,
    output: str | None = None,
    attributes: Mapping[str, float] | None = None,
    baseline: Formula | None = None,
    full: Sequence[tuple[tuple[int, ...], str]] = (),
    expert: Path | None = None,
    traps: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> Operator:
    """Make an operator of inputs of one shape and dtype; `full` gives shapes and dtypes of the full-sized cases."""
    form = Pointwise(values, spans, output, attributes)
    whole = [form.case(f"full-{number}", TensorSpec(shape), dtype) for number, (shape, dtype) in enumerate(full)]
    return Operator(
        name=name,
        level=level,
        family="elementwise",
        summary=summary,
        cases=form.cases(dtypes),
        full_cases=tuple(whole),
        reference=formula,
        baseline=baseline or formula,
        outputs=form.outputs,
        hidden_cases=form.hidden(dtypes),
        accumulation=nothing_summed,
        dtypes=tuple(dtypes),
        attributes=tuple(form.attributes),
        expert_file=expert,
        traps=tuple(traps),
        conditions=tuple(conditions),
    )
