"""Activations of one number, and what they pass back: the gradient of the output times the derivative at x."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from device.operators.base import beside
from device.operators.formats import wide
from device.operators.pointwise import pointwise

if TYPE_CHECKING:
    from torch import Tensor

_FAST = 1.702
_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_TAIL = "Far from 0 exponentials overflow; the limits there are 0 and x (a derivative of 0 and 1), not NaN."
_ROUNDING = "Half formats are computed in float32 and rounded once."


def fast_gelu(x: Tensor) -> tuple[Tensor, ...]:
    """Take x * sigmoid(1.702 x) (Hendrycks and Gimpel, arXiv 1606.08415, section 2)."""
    a = wide(x)
    return ((a / (1 + (-1.702 * a).exp())).to(x.dtype),)


def fast_gelu_of_torch(x: Tensor) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    return (x * (_FAST * x).sigmoid(),)


def fast_gelu_grad(dy: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Multiply dy by the derivative of x * s(1.702 x): s + 1.702 x s (1 - s), s being the sigmoid."""
    g, a = wide(dy), wide(x)
    s = 1 / (1 + (-1.702 * a).exp())
    return ((g * (s + 1.702 * a * s * (1 / (1 + (1.702 * a).exp())))).to(x.dtype),)


def fast_gelu_grad_of_torch(dy: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    s = (_FAST * x).sigmoid()
    return (dy * s * (1 + _FAST * x * (1 - s)),)


def gelu(x: Tensor) -> tuple[Tensor, ...]:
    """Take x * sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as x / 2 (1 + tanh u) (arXiv 1606.08415)."""
    a = wide(x)
    u = math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)
    return ((a / (1 + (-2 * u).exp())).to(x.dtype),)


def gelu_of_torch(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own gelu in its tanh form."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.gelu(x, approximate="tanh"),)


def gelu_grad(dy: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Multiply dy by the derivative of x s(2 u): s + 2 x u' s (1 - s), u' = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)."""
    g, a = wide(dy), wide(x)
    u = math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * a**2)
    s, rest = 1 / (1 + (-2 * u).exp()), 1 / (1 + (2 * u).exp())
    return ((g * (s + 2 * a * slope * s * rest)).to(x.dtype),)


def gelu_grad_of_torch(dy: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own backward of gelu in its tanh form."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return (torch.ops.aten.gelu_backward(dy, x, approximate="tanh"),)


def swish(x: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Take x * sigmoid(scale * x) (Ramachandran et al., arXiv 1710.05941)."""
    a = wide(x)
    return ((a / (1 + (-scale * a).exp())).to(x.dtype),)


def swish_of_torch(x: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    return (x * (scale * x).sigmoid(),)


OPERATORS = (
    pointwise(
        "FastGelu", fast_gelu, level=2, summary="out = x * sigmoid(1.702 x).",
        dtypes=("float32", "float16"), baseline=fast_gelu_of_torch,
        full=(((48, 256), "float32"), ((1024, 1024), "float16"), ((256, 256), "float32")),
        expert=beside(__file__, "fast_gelu.cpp"),
        traps=(_TAIL, _ROUNDING, "It is a formula of its own: neither the erf nor the tanh form passes for it."),
    ),
    pointwise(
        "FastGeluGrad", fast_gelu_grad, level=2,
        summary="out = dy * (s + 1.702 x s (1 - s)), s = sigmoid(1.702 x); inputs dy, x.",
        dtypes=("float32", "float16"), values=("any", "any"), baseline=fast_gelu_grad_of_torch,
        full=(((6, 6), "float32"), ((1024, 1024), "float16"), ((256, 256), "float32")),
        expert=beside(__file__, "fast_gelu_grad.cpp"),
        traps=(_TAIL, _ROUNDING, "The derivative is not s: the factor x is differentiated as well as the gate."),
    ),
    pointwise(
        "Gelu", gelu, level=2,
        summary="out = x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).",
        dtypes=("float32", "float16", "bfloat16"), baseline=gelu_of_torch,
        full=(((8, 1024), "float32"), ((2048, 2048), "float16"), ((1024, 4096), "bfloat16"), ((256, 512), "float32")),
        expert=beside(__file__, "gelu_tanh.cpp"),
        traps=(_TAIL, _ROUNDING, "1 + tanh(u) has no digit left for u far below 0; x * sigmoid(2 u) keeps them."),
    ),
    pointwise(
        "GeluGrad", gelu_grad, level=2,
        summary="out = dy * d/dx [x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))]; inputs dy, x.",
        dtypes=("float32", "float16", "bfloat16"), values=("any", "any"), baseline=gelu_grad_of_torch,
        full=(((256, 512), "float32"), ((2048, 2048), "float16"), ((1024, 4096), "bfloat16"), ((32, 512), "float32")),
        expert=beside(__file__, "gelu_tanh_grad.cpp"),
        traps=(_TAIL, _ROUNDING, "The inner derivative 1 + 3 * 0.044715 x^2 belongs to it.",
               "x^2 times a vanishing gate is infinity times 0 once the one overflows and the other has vanished."),
    ),
    pointwise(
        "Swish", swish, level=2, summary="out = x * sigmoid(scale * x).",
        dtypes=("float32", "float16"), attributes={"scale": 1.11753}, baseline=swish_of_torch,
        full=(((32, 32), "float32"), ((1024, 1024), "float16"), ((64, 128, 256), "float32")),
        expert=beside(__file__, "swish.cpp"),
        traps=(_TAIL, _ROUNDING, "The scale is inside the sigmoid only."),
    ),
)  # fmt: skip
