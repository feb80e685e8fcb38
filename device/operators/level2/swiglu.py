"""The gated SiLU unit: one half of the last axis gates the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, nothing_summed, padded, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Split x = [a, b] along the last axis and gate: a * sigmoid(a) * b (Shazeer, arXiv 2002.05202, beta = 1)."""
    a, b = x.chunk(2, dim=-1)
    return (a / (1 + (-a).exp()) * b,)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Compose torch's own silu with a product; torch has no fused call for it."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    a, b = x.chunk(2, dim=-1)
    return (functional.silu(a) * b,)


def sigmoid(x: Tensor) -> Tensor:
    """Take 1 / (1 + exp(-a)) of the first half a."""
    return x.chunk(2, dim=-1)[0].sigmoid()


def silu(x: Tensor) -> Tensor:
    """Take a * sigmoid(a) of the first half a, before the second half comes in."""
    a = x.chunk(2, dim=-1)[0]
    return a * a.sigmoid()


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output with half the last axis; raises InvalidOperator when that is odd."""
    (x,) = case.inputs
    *outer, columns = x.shape
    if columns % 2:
        raise InvalidOperator(f"case {case.name}", f"the last axis ({columns}) must be even to be split in halves")
    return (TensorSpec((*outer, columns // 2), x.dtype),)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Hard rows with an even last axis."""
    return hidden_rows(rng, multiple=2)


OPERATORS = (
    Operator(
        name="swiglu",
        level=2,
        family="elementwise",
        summary="x = [a, b] split in halves along the last axis; out = silu(a) * b = a / (1 + exp(-a)) * b.",
        cases=(
            Case("large", (TensorSpec((256, 4096)),), timed=True),
            Case("small", (TensorSpec((64, 2048)),), timed=True),
            Case("tail", (TensorSpec((7, 2 * 131)),)),
            Case("two", (TensorSpec((3, 2)),)),
            Case("deep", (TensorSpec((2, 3, 5, 34)),)),
            Case("transposed", (swapped((45, 30)),)),
            Case("sliced", (padded((21, 50)),)),
        ),
        reference=reference,
        baseline=baseline,
        stages={"sigmoid": sigmoid, "silu": silu},
        outputs=outputs,
        hidden_cases=hidden_cases,
        accumulation=nothing_summed,
        expert_file=beside(__file__, "swiglu.cpp"),
        traps=(
            "The gate is the first half, not the second.",
            "exp(-a) overflows for a below -88; the quotient is then 0 only if the infinity is not turned into NaN.",
            "The halves are cut in each row: b[i] lies n elements after a[i], and an odd n breaks alignment.",
        ),
    ),
)
