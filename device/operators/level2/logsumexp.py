"""The logarithm of the sum of exponentials along the last axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, last_axis, padded, swapped, without_last_axis

if TYPE_CHECKING:
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Take log(sum(exp(x))) with the row's maximum taken off inside and put back outside; an infinite one stays."""
    top = x.amax(dim=-1, keepdim=True)
    shift = top.where(top.isfinite(), top.new_zeros(()))
    return (((x - shift).exp().sum(dim=-1, keepdim=True).log() + shift).squeeze(-1),)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own logsumexp."""
    return (x.logsumexp(dim=-1),)


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
        name="logsumexp",
        level=2,
        family="reduction",
        summary="out[..] = log(sum_i exp(x[.., i])), along the last axis.",
        cases=(
            Case("rows", (TensorSpec((512, 1024)),), timed=True),
            Case("long-rows", (TensorSpec((16, 16384)),), timed=True),
            Case("tail", (TensorSpec((5, 131)),)),
            Case("short-rows", (TensorSpec((257, 7)),)),
            Case("one-column", (TensorSpec((9, 1)),)),
            Case("vector", (TensorSpec((1003,)),)),
            Case("deep", (TensorSpec((2, 3, 5, 33)),)),
            Case("transposed", (swapped((31, 45)),)),
            Case("sliced", (padded((8, 99)),)),
        ),
        reference=reference,
        baseline=baseline,
        stages={"maximum": maximum, "exponentials": exponentials, "sum": row_sum},
        outputs=without_last_axis,
        hidden_cases=hidden_rows,
        accumulation=last_axis,
        expert_file=beside(__file__, "logsumexp.cpp"),
        traps=(
            "exp(x) overflows above 88 unless the row's maximum is subtracted first and added back at the end.",
            "Where the maximum is infinite, x - max is NaN; the result is the infinity itself.",
            "One float accumulator over a long row loses digits; sum in lanes and blocks.",
            "A row of one element gives that element back exactly.",
        ),
    ),
)
