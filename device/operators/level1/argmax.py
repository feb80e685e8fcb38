"""The index of the largest element of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, nothing_summed, odd, padded, prime, swapped, without_last_axis

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Count the elements before the first that is NaN or, where no NaN is, that equals the row's maximum."""
    nan = x.isnan()
    found = nan.where(nan.any(dim=-1, keepdim=True), x == x.amax(dim=-1, keepdim=True))
    return ((found.cumsum(dim=-1) == 0).sum(dim=-1),)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own argmax."""
    return (x.argmax(dim=-1),)


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense int64 output of the input's shape less its last axis."""
    return (TensorSpec(without_last_axis(case)[0].shape, "int64"),)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Hard rows, rows with many equal elements and rows with NaN."""
    special = (
        Case("ties", (TensorSpec((odd(rng, 9, 40), prime(rng, 40, 300)), values="ties"),), hidden=True),
        Case("nans", (TensorSpec((odd(rng, 9, 40), prime(rng, 40, 300)), values="nans"),), hidden=True),
    )
    return (*hidden_rows(rng), *special)


OPERATORS = (
    Operator(
        name="argmax",
        level=1,
        family="reduction",
        summary="out[..] = index (int64) of the largest element along the last axis; the first one among equals.",
        cases=(
            Case("rows", (TensorSpec((512, 2048)),), timed=True),
            Case("short-rows", (TensorSpec((4096, 100)),), timed=True),
            Case("tail", (TensorSpec((5, 131)),)),
            Case("ties", (TensorSpec((9, 70), values="ties"),)),
            Case("nans", (TensorSpec((9, 70), values="nans"),)),
            Case("one-column", (TensorSpec((6, 1)),)),
            Case("vector", (TensorSpec((1001,)),)),
            Case("transposed", (swapped((31, 45)),)),
            Case("sliced", (padded((8, 99)),)),
        ),
        reference=reference,
        baseline=baseline,
        outputs=outputs,
        hidden_cases=hidden_cases,
        accumulation=nothing_summed,
        expert_file=beside(__file__, "argmax.cpp"),
        traps=(
            "Of equal elements the first one counts; lanes that each keep their own best must be merged by index.",
            "A NaN counts as the largest, and the first NaN wins; a plain > comparison skips it.",
            "A start value of 0 or of the smallest normal number is wrong for rows of negative numbers.",
            "The output is int64, also where a row has fewer than 2^31 elements.",
        ),
    ),
)
