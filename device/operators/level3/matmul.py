"""The product of two matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import swapped
from device.operators.level3.products import hidden_products, product_outputs, summed_axis

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Sum a[i, l] * b[l, j] over l, written as one row of products an output row."""
    out = a.new_empty((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        out[i] = (a[i, :, None] * b).sum(dim=0)
    return (out,)


def baseline(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own matrix product."""
    return (a @ b,)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Thin, prime, tailed, long and transposed factors."""
    return hidden_products(rng)


OPERATORS = (
    Operator(
        name="matmul",
        level=3,
        family="matmul",
        summary="out[i, j] = sum_l a[i, l] * b[l, j]; a is [m, k], b is [k, n].",
        cases=(
            Case("square", (TensorSpec((256, 256)), TensorSpec((256, 256))), timed=True),
            Case("deep", (TensorSpec((128, 1024)), TensorSpec((1024, 192))), timed=True),
            Case("tail", (TensorSpec((33, 65)), TensorSpec((65, 17)))),
            Case("vector-matrix", (TensorSpec((1, 129)), TensorSpec((129, 77)))),
            Case("outer", (TensorSpec((45, 1)), TensorSpec((1, 50)))),
            Case("transposed-left", (swapped((31, 40)), TensorSpec((40, 37)))),
            Case("transposed-right", (TensorSpec((31, 40)), swapped((40, 37)))),
        ),
        reference=reference,
        baseline=baseline,
        outputs=product_outputs,
        hidden_cases=hidden_cases,
        accumulation=summed_axis,
        expert_file=beside(__file__, "matmul.cpp"),
        traps=(
            "Either factor may be a transposed view; its element [i, l] is at i * stride 0 + l * stride 1.",
            "Sizes that the register tile does not divide leave strips at the right and at the bottom.",
            "The output is poisoned, so the first block of the sum must store and not add.",
            "One float accumulator over a long k loses digits; add up blocks of k.",
        ),
    ),
)
