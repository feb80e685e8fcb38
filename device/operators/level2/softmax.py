"""Softmax along the last axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, last_axis, padded, same, swapped

if TYPE_CHECKING:
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Divide exp(x) by its sum over the row; the row's maximum is taken off first, which changes nothing but range."""
    e = (x - x.amax(dim=-1, keepdim=True)).exp()
    return (e / e.sum(dim=-1, keepdim=True),)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own softmax."""
    return (x.softmax(dim=-1),)


def maximum(x: Tensor) -> Tensor:
    """Take the largest element of each row."""
    return x.amax(dim=-1)


def exponentials(x: Tensor) -> Tensor:
    """Take exp(x - maximum), before any sum."""
    return (x - x.amax(dim=-1, keepdim=True)).exp()


def row_sum(x: Tensor) -> Tensor:
    """Add each row's exponentials up."""
    return exponentials(x).sum(dim=-1)


OPERATORS = (
    Operator(
        name="softmax",
        level=2,
        family="reduction",
        summary="out[.., i] = exp(x[.., i]) / sum_j exp(x[.., j]), along the last axis.",
        cases=(
            Case("rows", (TensorSpec((512, 1024)),), timed=True),
            Case("long-rows", (TensorSpec((16, 16384)),), timed=True),
            Case("tail", (TensorSpec((5, 131)),)),
            Case("short-rows", (TensorSpec((257, 7)),)),
            Case("one-column", (TensorSpec((9, 1)),)),
            Case("one-row", (TensorSpec((1, 1003)),)),
            Case("deep", (TensorSpec((2, 3, 5, 33)),)),
            Case("transposed", (swapped((31, 45)),)),
            Case("sliced", (padded((8, 99)),)),
        ),
        reference=reference,
        baseline=baseline,
        stages={"maximum": maximum, "exponentials": exponentials, "sum": row_sum},
        outputs=same,
        hidden_cases=hidden_rows,
        accumulation=last_axis,
        expert_file=beside(__file__, "softmax.cpp"),
        traps=(
            "exp(x) overflows above 88 unless the row's maximum is subtracted first.",
            "The maximum must start at minus infinity, or at the first element, for rows of negative numbers.",
            "One float accumulator over a long row loses digits; sum in lanes and blocks.",
            "The last few elements that fill no vector belong to the maximum, to the sum and to the output.",
        ),
    ),
)
