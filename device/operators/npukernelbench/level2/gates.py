"""Gated activations: one half of a tensor, through a function of its own, is the gate of the other half."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed, padded, swapped
from device.operators.npukernelbench.level2.plan import Attributes, dense_full, like, planned, rows, same_as

if TYPE_CHECKING:
    from torch import Tensor

_HALVES = "The halves lie along the axis dim, which need not be the last: a half's rows are then not one piece."
_OVERFLOW = "exp(-a) overflows for a far below 0; the gate there is 0, not NaN."
_ROUNDING = "Half formats are computed in float32 and rounded once."
_DIMS = {"": {"dim": -1}, "first": {"dim": 0}}


def swiglu(x: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Take a * sigmoid(a) * b, a and b being the halves of x along dim (Shazeer, arXiv 2002.05202)."""
    a, b = wide(x).chunk(2, dim=int(dim))
    return ((a / (1 + (-a).exp()) * b).to(x.dtype),)


def swiglu_of_torch(x: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Write it with torch's own silu."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    a, b = x.chunk(2, dim=int(dim))
    return (functional.silu(a) * b,)


def swiglu_grad(dy: Tensor, x: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Pass dy back: dy * b * s (1 + a (1 - s)) for a, dy * a * s for b, s = sigmoid(a), in the halves of x."""
    import torch  # noqa: PLC0415  (torch loads when a reference runs)

    g, (a, b) = wide(dy), wide(x).chunk(2, dim=int(dim))
    s, rest = 1 / (1 + (-a).exp()), 1 / (1 + a.exp())
    return (torch.cat([g * b * s * (1 + a * rest), g * a * s], dim=int(dim)).to(x.dtype),)


def swiglu_grad_of_torch(dy: Tensor, x: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Write it with torch's own silu and its backward."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    a, b = x.chunk(2, dim=int(dim))
    of_a = torch.ops.aten.silu_backward(dy * b, a)
    return (torch.cat([of_a, dy * torch.nn.functional.silu(a)], dim=int(dim)),)


def geglu(x: Tensor, *, approximate: float, activate_left: float) -> tuple[Tensor, ...]:
    """Multiply one half by gelu of the other, which is given as well; gelu by erf, or by tanh if `approximate`."""
    left, right = wide(x).chunk(2, dim=-1)
    gate, value = (left, right) if activate_left else (right, left)
    if approximate:
        u = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
        gelu = gate / (1 + (-2 * u).exp())
    else:
        gelu = 0.5 * gate * (-gate / math.sqrt(2)).erfc()
    return (value * gelu).to(x.dtype), gelu.to(x.dtype)


def geglu_of_torch(x: Tensor, *, approximate: float, activate_left: float) -> tuple[Tensor, ...]:
    """Write it with torch's own gelu."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    left, right = x.chunk(2, dim=-1)
    gate, value = (left, right) if activate_left else (right, left)
    gelu = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return value * gelu, gelu


def doubled(first: TensorSpec, dtype: str, dim: int) -> TensorSpec:
    """Describe a tensor of twice the size along one axis, and of the same kind of layout."""
    shape = list(first.shape)
    shape[dim] *= 2
    made = TensorSpec(tuple(shape))
    if first.strides is not None:
        made = padded(made.shape) if first.strides[-1] == 1 else swapped(made.shape)
    return like(made, dtype)


def _whole(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    return (doubled(first, dtype, int(attributes.get("dim", -1))),)


def _with_gradient(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    return like(first, dtype), *_whole(first, dtype, attributes)


def _half(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    shape = list(x.shape)
    shape[int(case.attributes.get("dim", -1))] //= 2
    return (TensorSpec(tuple(shape), x.dtype),)


OPERATORS = (
    planned(
        "SwiGlu", swiglu, baseline=swiglu_of_torch, expert=beside(__file__, "swiglu_dim.cpp"), family="elementwise",
        summary="out = a * sigmoid(a) * b; a and b are the first and the second half of x along the axis dim.",
        shapes=rows(), inputs=_whole, outputs=_half, dtypes=("float32", "float16", "bfloat16"), variants=_DIMS,
        accumulation=nothing_summed, traps=(_HALVES, _OVERFLOW, _ROUNDING),
        full=dense_full(((48, 128, 256), "float16"), ((48, 128, 256), "float32"),
                        ((24, 32, 4096), "bfloat16", "first")),
    ),
    planned(
        "SwiGluGrad", swiglu_grad, baseline=swiglu_grad_of_torch, expert=beside(__file__, "swiglu_dim_grad.cpp"),
        family="elementwise",
        summary=("out = dy * b * s * (1 + a * (1 - s)) for the half a, dy * a * s for the half b of x along dim, "
                 "s = sigmoid(a); inputs dy, x."),
        shapes=rows(), inputs=_with_gradient, outputs=same_as(1),
        dtypes=("float32", "float16", "bfloat16"), variants=_DIMS, accumulation=nothing_summed,
        traps=(_HALVES, _OVERFLOW, _ROUNDING, "1 - s has no digit left for large a; take it as sigmoid(-a)."),
        full=dense_full(((48, 128, 256), "float16"), ((48, 32, 4096), "bfloat16", "first")),
    ),
    planned(
        "GeGluV2", geglu, baseline=geglu_of_torch, expert=beside(__file__, "geglu.cpp"), family="elementwise",
        summary=("out = value * gelu(gate) and gelu(gate); gate is the right half of x along the last axis, value the "
                 "left one, the other way round with activate_left; gelu by erf, or by tanh with approximate."),
        shapes=rows(), inputs=_whole, outputs=lambda case: _half(case) * 2,
        variants={"": {"approximate": 1, "activate_left": 0}, "erf": {"approximate": 0, "activate_left": 0},
                  "left": {"approximate": 1, "activate_left": 1}},
        accumulation=nothing_summed,
        traps=("The gate is the right half unless told otherwise.", "The tanh form is not the erf form: 1e-4 apart.",
               "1 + erf has no digit left far below 0.", _ROUNDING),
        full=dense_full(((128, 256), "float16"), ((1024, 2048), "float16", "erf"), ((256, 192), "float32")),
    ),
)  # fmt: skip
