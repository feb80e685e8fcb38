"""The Gaussian error linear unit, in its exact form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, nothing_summed, padded, same, swapped

if TYPE_CHECKING:
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Multiply x by Phi(x) = erfc(-x / sqrt(2)) / 2 (Hendrycks and Gimpel, arXiv 1606.08415); erfc keeps far digits."""
    return (x * 0.5 * (-x / 2**0.5).erfc(),)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own gelu."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.gelu(x),)


OPERATORS = (
    Operator(
        name="gelu",
        level=1,
        family="elementwise",
        summary="out = x * Phi(x) = x/2 * (1 + erf(x / sqrt(2))), the exact form, not the tanh approximation.",
        cases=(
            Case("large", (TensorSpec((512, 1024)),), timed=True),
            Case("small", (TensorSpec((64, 1024)),), timed=True),
            Case("tail", (TensorSpec((7, 131)),)),
            Case("one", (TensorSpec((1,)),)),
            Case("deep", (TensorSpec((2, 3, 5, 17)),)),
            Case("transposed", (swapped((45, 29)),)),
            Case("sliced", (padded((21, 50)),)),
        ),
        reference=reference,
        baseline=baseline,
        outputs=same,
        hidden_cases=hidden_rows,
        accumulation=nothing_summed,
        expert_file=beside(__file__, "gelu.cpp"),
        traps=(
            "The tanh approximation is off by up to 5e-4 and is another function.",
            "For large negative x the sum 1 + erf cancels; erfc keeps the digits.",
            "A polynomial for erf holds on a range only; beyond it the value must be clamped to 0 or x.",
        ),
    ),
)
