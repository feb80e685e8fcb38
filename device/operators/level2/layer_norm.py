"""Layer normalization along the last axis, with scale and shift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, last_axis, padded, same, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_EPS = 1e-5


def reference(x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Bring each row to mean 0 and variance 1, then scale and shift (Ba, Kiros and Hinton, arXiv 1607.06450)."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return (centred / (variance + eps).sqrt() * gamma + beta,)


def baseline(x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Call torch's own layer_norm."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.layer_norm(x, x.shape[-1:], gamma, beta, eps),)


def mean(x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> Tensor:  # noqa: ARG001  (the form of a stage)
    """Take the mean of each row."""
    return x.mean(dim=-1)


def variance(x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> Tensor:  # noqa: ARG001  (the form of a stage)
    """Take the mean square of each row's distance from its mean; eps is not in it."""
    return (x - x.mean(dim=-1, keepdim=True)).square().mean(dim=-1)


def normalized(x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> Tensor:
    """Take (x - mean) / sqrt(variance + eps), before scale and shift."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (variance(x, gamma, beta, eps=eps).unsqueeze(-1) + eps).sqrt()


def _inputs(x: TensorSpec) -> tuple[TensorSpec, ...]:
    return (x, TensorSpec(x.shape[-1:]), TensorSpec(x.shape[-1:]))


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Hard rows, with an eps that differs from the usual one."""
    return hidden_rows(rng, inputs=_inputs, attributes={"eps": float(rng.choice([1e-6, 1e-5, 1e-3]))})


OPERATORS = (
    Operator(
        name="layer_norm",
        level=2,
        family="reduction",
        summary=(
            "Along the last axis of length n: out = (x - mean) / sqrt(variance + eps) * gamma + beta, the variance "
            "divided by n; gamma and beta have shape [n]."
        ),
        attributes=("eps",),
        cases=(
            Case("rows", _inputs(TensorSpec((512, 1024))), {"eps": _EPS}, timed=True),
            Case("long-rows", _inputs(TensorSpec((32, 8192))), {"eps": _EPS}, timed=True),
            Case("tail", _inputs(TensorSpec((5, 131))), {"eps": _EPS}),
            Case("large-eps", _inputs(TensorSpec((6, 40))), {"eps": 0.1}),
            Case("short-rows", _inputs(TensorSpec((257, 7))), {"eps": _EPS}),
            Case("one-column", _inputs(TensorSpec((9, 1))), {"eps": _EPS}),
            Case("deep", _inputs(TensorSpec((2, 3, 5, 33))), {"eps": _EPS}),
            Case("transposed", _inputs(swapped((31, 45))), {"eps": _EPS}),
            Case("sliced", _inputs(padded((8, 99))), {"eps": _EPS}),
        ),
        reference=reference,
        baseline=baseline,
        stages={"mean": mean, "variance": variance, "normalized": normalized},
        outputs=same,
        hidden_cases=hidden_cases,
        accumulation=last_axis,
        expert_file=beside(__file__, "layer_norm.cpp"),
        traps=(
            "The mean of squares less the squared mean cancels when the mean is large; subtract the mean first.",
            "The variance is divided by n, not by n - 1.",
            "eps is added to the variance, inside the root, and comes as an attribute.",
            "One float accumulator over a long row loses digits; sum in lanes and blocks or in double.",
        ),
    ),
)
