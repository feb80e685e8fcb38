"""A linear layer with its activation: matrix product, bias, exact gelu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import swapped
from device.operators.level3.products import hidden_products, product_outputs, summed_axis

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(a: Tensor, b: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Take y = a b + bias, one row of products an output row, and then y * Phi(y)."""
    y = a.new_empty((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        y[i] = (a[i, :, None] * b).sum(dim=0) + bias
    return (y * 0.5 * (-y / 2**0.5).erfc(),)


def baseline(a: Tensor, b: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own addmm and gelu."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415  (the same)

    return (functional.gelu(torch.addmm(bias, a, b)),)


def product(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:  # noqa: ARG001  (the form of a stage)
    """Take a b, [m, n]."""
    return a @ b


def biased(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    """Take a b + bias, what the activation is applied to."""
    return a @ b + bias


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Thin, prime, tailed, long and transposed factors, each with its bias."""
    return hidden_products(rng, lambda columns: (TensorSpec((columns,)),))


def _inputs(a: TensorSpec, b: TensorSpec) -> tuple[TensorSpec, ...]:
    return (a, b, TensorSpec(b.shape[1:]))


OPERATORS = (
    Operator(
        name="matmul_bias_gelu",
        level=3,
        family="matmul",
        summary="y = a b + bias; out = y/2 * (1 + erf(y / sqrt(2))). a is [m, k], b is [k, n], bias is [n].",
        cases=(
            Case("square", _inputs(TensorSpec((256, 256)), TensorSpec((256, 256))), timed=True),
            Case("wide", _inputs(TensorSpec((96, 256)), TensorSpec((256, 1024))), timed=True),
            Case("tail", _inputs(TensorSpec((33, 65)), TensorSpec((65, 17)))),
            Case("vector-matrix", _inputs(TensorSpec((1, 129)), TensorSpec((129, 77)))),
            Case("outer", _inputs(TensorSpec((45, 1)), TensorSpec((1, 50)))),
            Case("transposed-left", _inputs(swapped((31, 40)), TensorSpec((40, 37)))),
            Case("transposed-right", _inputs(TensorSpec((31, 40)), swapped((40, 37)))),
        ),
        reference=reference,
        baseline=baseline,
        stages={"product": product, "biased": biased},
        outputs=product_outputs,
        hidden_cases=hidden_cases,
        accumulation=summed_axis,
        expert_file=beside(__file__, "matmul_bias_gelu.cpp"),
        traps=(
            "The activation may be applied only after the whole sum over k and the bias, not after one block of k.",
            "The tanh approximation of gelu is another function.",
            "Either factor may be a transposed view.",
            "Strips at the right and at the bottom need their bias and activation too.",
        ),
    ),
)
