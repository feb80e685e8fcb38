"""Addition of two tensors that broadcast to a common shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import broadcasted, nothing_summed, odd, padded, prime, swapped, tail

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Add a and b, axes aligned at the last one, an axis of size 1 stretched."""
    return (a + b,)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Every way two shapes broadcast, at sizes that no block divides."""
    rows, columns, deep = odd(rng, 3, 60), prime(rng, 17, 240), odd(rng, 3, 9)
    pairs: dict[str, tuple[TensorSpec, TensorSpec]] = {
        "single": (TensorSpec((1,)), TensorSpec((1,))),
        "scalar-right": (TensorSpec((rows, columns)), TensorSpec((1,))),
        "row-left": (TensorSpec((columns,)), TensorSpec((rows, columns))),
        "column-right": (TensorSpec((rows, columns)), TensorSpec((rows, 1))),
        "outer-sum": (TensorSpec((rows, 1)), TensorSpec((1, columns))),
        "deep": (TensorSpec((deep, 1, columns)), TensorSpec((2, 1, rows, 1))),
        "middle-axis": (TensorSpec((deep, rows, columns)), TensorSpec((deep, 1, columns))),
        "tail": (TensorSpec((tail(rng, 1024, 2, 40),)),) * 2,
        "swapped": (swapped((rows, columns)), TensorSpec((rows, columns))),
        "padded": (padded((rows, columns)), padded((rows, columns), 1)),
        "expanded": (TensorSpec((rows, columns), strides=(0, 1)), swapped((rows, columns))),
    }
    return tuple(Case(name, pair, hidden=True) for name, pair in pairs.items())


OPERATORS = (
    Operator(
        name="add",
        level=1,
        family="elementwise",
        summary="out = a + b, with torch's broadcasting: shapes aligned at the last axis, axes of size 1 stretched.",
        cases=(
            Case("same-shape", (TensorSpec((512, 1024)), TensorSpec((512, 1024))), timed=True),
            Case("bias-row", (TensorSpec((512, 1024)), TensorSpec((1024,))), timed=True),
            Case("column", (TensorSpec((33, 77)), TensorSpec((33, 1)))),
            Case("both-stretch", (TensorSpec((19, 1)), TensorSpec((1, 45)))),
            Case("batched", (TensorSpec((3, 5, 31)), TensorSpec((5, 1)))),
            Case("one-row", (TensorSpec((1, 1003)), TensorSpec((1, 1003)))),
            Case("transposed", (swapped((37, 53)), TensorSpec((37, 53)))),
        ),
        reference=reference,
        baseline=reference,
        outputs=broadcasted,
        hidden_cases=hidden_cases,
        accumulation=nothing_summed,
        expert_file=beside(__file__, "add.cpp"),
        traps=(
            "An axis of size 1 has a stride that must be ignored, not walked.",
            "A shape may have fewer axes than the output; the missing ones are on the left.",
            "An input may be a transposed or sliced view, so its flat index is not its position in memory.",
        ),
    ),
)
