"""Root-mean-square normalization along the last axis, with scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import hidden_rows, last_axis, padded, same, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_EPS = 1e-6


def reference(x: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Divide each row by the root of its mean square, then scale (Zhang and Sennrich, arXiv 1910.07467)."""
    return (x / ((x * x).mean(dim=-1, keepdim=True) + eps).sqrt() * gamma,)


def baseline(x: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Call torch's own rms_norm."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.rms_norm(x, x.shape[-1:], gamma, eps),)


def mean_square(x: Tensor, gamma: Tensor, *, eps: float) -> Tensor:  # noqa: ARG001  (the form of a stage)
    """Take the mean square of each row; eps is not in it."""
    return x.square().mean(dim=-1)


def normalized(x: Tensor, gamma: Tensor, *, eps: float) -> Tensor:
    """Take x / sqrt(mean square + eps), before the scale."""
    return x / (mean_square(x, gamma, eps=eps).unsqueeze(-1) + eps).sqrt()


def _inputs(x: TensorSpec) -> tuple[TensorSpec, ...]:
    return (x, TensorSpec(x.shape[-1:]))


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Hard rows, with an eps that differs from the usual one."""
    return hidden_rows(rng, inputs=_inputs, attributes={"eps": float(rng.choice([1e-6, 1e-5, 1e-3]))})


OPERATORS = (
    Operator(
        name="rms_norm",
        level=2,
        family="reduction",
        summary="Along the last axis of length n: out = x / sqrt(mean(x^2) + eps) * gamma; gamma has shape [n].",
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
        stages={"mean_square": mean_square, "normalized": normalized},
        outputs=same,
        hidden_cases=hidden_cases,
        accumulation=last_axis,
        expert_file=beside(__file__, "rms_norm.cpp"),
        traps=(
            "Nothing is subtracted: the mean square is taken about 0, not about the mean.",
            "eps is added to the mean square, inside the root, and comes as an attribute.",
            "One float accumulator over a long row loses digits; sum in lanes and blocks or in double.",
        ),
    ),
)
