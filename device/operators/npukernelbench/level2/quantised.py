"""What ends in int8: a real number, divided by a step, shifted, rounded to nearest and held within -128 and 127."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import padded, swapped
from device.operators.npukernelbench.level2.plan import Attributes, column, dense_full, like, planned, row, rows

if TYPE_CHECKING:
    from torch import Tensor

_LIMITS = "What rounds beyond -128 and 127 stops there; a plain conversion to int8 wraps around."
_DYNAMIC = "A row's step is known only when all of it is; the largest element becomes 127 or -127."
_EVEN = "The number is rounded once, from float32; half formats in between make it off by one."


def within(x: Tensor) -> Tensor:
    """Hold within int8; what is judged is the real number, which a kernel rounds."""
    return x.clamp(-128, 127)


def rounded(x: Tensor) -> Tensor:
    """Round to int8."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return x.round().clamp(-128, 127).to(torch.int8)


def gelu_quant(x: Tensor, scale: Tensor, *offset: Tensor, approximate: float, dynamic: float) -> tuple[Tensor, ...]:
    """Quantise gelu(x) (by tanh if `approximate`, else erf): gelu * scale + offset, or by each row's own step.

    The dynamic step of a row is the largest |gelu * scale| over 127; it is the second output.
    """
    a = wide(x)
    if approximate:
        u = math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)
        g = a / (1 + (-2 * u).exp())
    else:
        g = 0.5 * a * (-a / math.sqrt(2)).erfc()
    g = g * wide(scale)
    if not dynamic:
        return ((g + wide(offset[0])).clamp(-128, 127),)
    step = g.abs().amax(dim=-1, keepdim=True) / 127
    return (g / step).clamp(-128, 127), step


def gelu_quant_of_torch(
    x: Tensor, scale: Tensor, *offset: Tensor, approximate: float, dynamic: float
) -> tuple[Tensor, ...]:
    """Write it with torch's own gelu."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    g = functional.gelu(wide(x), approximate="tanh" if approximate else "none") * wide(scale)
    if not dynamic:
        return (rounded(g + wide(offset[0])),)
    step = g.abs().amax(dim=-1, keepdim=True) / 127
    return rounded(g / step), step


def dequant_swiglu_quant(x: Tensor, *others: Tensor, activate_left: float, dynamic: float) -> tuple[Tensor, ...]:
    """Gate one half by silu of the other, and quantise; int32 is scaled back first, by column and by row.

    Static: out / smooth + offset. Dynamic: out * smooth by each row's own step, the second output.
    """
    a, rest = wide(x), list(others)
    if not x.is_floating_point():
        weight_scale, activation_scale, *rest = others
        a = x.to(weight_scale.dtype) * weight_scale * activation_scale
    smooth, *offset = rest
    left, right = a.chunk(2, dim=-1)
    gate, value = (left, right) if activate_left else (right, left)
    g = gate / (1 + (-gate).exp()) * value
    if not dynamic:
        return ((g / smooth + offset[0]).clamp(-128, 127),)
    g = g * smooth
    step = g.abs().amax(dim=-1, keepdim=True) / 127
    return (g / step).clamp(-128, 127), step


def dequant_swiglu_quant_of_torch(
    x: Tensor, *others: Tensor, activate_left: float, dynamic: float
) -> tuple[Tensor, ...]:
    """Write it with torch's own silu."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    scaled = not x.is_floating_point()
    left, right = (x * others[0] * others[1] if scaled else wide(x)).chunk(2, dim=-1)
    smooth, *offset = others[2:] if scaled else others
    gate, value = (left, right) if activate_left else (right, left)
    g = functional.silu(gate) * value
    if not dynamic:
        return (rounded(g / smooth + offset[0]),)
    g = g * smooth
    step = g.abs().amax(dim=-1, keepdim=True) / 127
    return rounded(g / step), step


def add_rms_norm_quant(
    x1: Tensor, x2: Tensor, gamma: Tensor, scale: Tensor, zero: Tensor, *, eps: float, div_mode: float
) -> tuple[Tensor, ...]:
    """Quantise the RMS norm of x1 + x2: norm / scale + zero, or norm * scale + zero without div_mode; and the sum."""
    a = wide(x1) + wide(x2)
    y = a / (a.square().mean(dim=-1, keepdim=True) + eps).sqrt() * wide(gamma)
    y = y / scale if div_mode else y * scale
    return (y + zero).clamp(-128, 127), a.to(x1.dtype)


def add_rms_norm_quant_of_torch(
    x1: Tensor, x2: Tensor, gamma: Tensor, scale: Tensor, zero: Tensor, *, eps: float, div_mode: float
) -> tuple[Tensor, ...]:
    """Add, call torch's own norm, and quantise."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    a = wide(x1) + wide(x2)
    y = functional.rms_norm(a, a.shape[-1:], wide(gamma), eps)
    return rounded((y / scale if div_mode else y * scale) + zero), a.to(x1.dtype)


def _byte(shape: tuple[int, ...]) -> TensorSpec:
    return TensorSpec(shape, "int8", rounded=True)


def _gelu_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    scale = row(first, "float32", "positive")
    # gelu vanishes for numbers far below 0, and a short row may hold no other.
    short = attributes["dynamic"] and first.shape[-1] < 64
    offset = () if attributes["dynamic"] else (row(first, "float32"),)
    return like(first, dtype, "positive" if short else "any"), scale, *offset


def _gelu_outputs(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    return _byte(x.shape), *((column(x),) if case.attributes["dynamic"] else ())


def _sums(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    shape = (*first.shape[:-1], 2 * first.shape[-1])
    made = TensorSpec(shape)
    if first.strides is not None:
        made = padded(shape) if first.strides[-1] == 1 else swapped(shape)
    scales = (TensorSpec(shape[-1:], values="small"), column(first, values="positive")) if dtype == "int32" else ()
    offset = () if attributes["dynamic"] else (row(first, "float32"),)
    # No zeros, and nothing that a gate shuts out: a row that is all zeros has no step.
    x = like(made, dtype, span=(1, 3000)) if scales else like(made, dtype, "positive")
    return x, *scales, row(first, "float32", "positive"), *offset


def _gated_outputs(case: Case) -> tuple[TensorSpec, ...]:
    half = TensorSpec((*case.inputs[0].shape[:-1], case.inputs[0].shape[-1] // 2))
    return _byte(half.shape), *((column(half),) if case.attributes["dynamic"] else ())


def _norm_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    zero = TensorSpec(first.shape[-1:], "int32", span=(-20, 20))
    return (
        like(first, dtype), like(first, dtype, dense=True), row(first, dtype), row(first, "float32", "positive"), zero
    )  # fmt: skip


def _norm_outputs(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    return _byte(x.shape), TensorSpec(x.shape, x.dtype)


OPERATORS = (
    planned(
        "GeluQuant", gelu_quant, baseline=gelu_quant_of_torch, expert=beside(__file__, "gelu_quant.cpp"),
        summary=("g = gelu(x) * scale, by tanh with approximate, else by erf; static: out = round(g + offset) in int8; "
                 "dynamic: step = max |g| / 127 of each row, out = round(g / step); outputs out and, if dynamic, step "
                 "(float32); inputs x, scale and, if static, offset, float32 [n]."),
        shapes=rows(), inputs=_gelu_inputs, outputs=_gelu_outputs, dtypes=("float32", "float16", "bfloat16"),
        variants={"": {"approximate": 1, "dynamic": 0}, "dynamic": {"approximate": 0, "dynamic": 1}},
        traps=(_LIMITS, _DYNAMIC, _EVEN),
        full=dense_full(((512, 3), "float16"), ((1024, 512, 128), "bfloat16", "dynamic")),
        conditions=("scale is at least 2^-6.", "With dynamic, a row has an element above 0."),
    ),
    planned(
        "DequantSwigluQuant", dequant_swiglu_quant, baseline=dequant_swiglu_quant_of_torch,
        expert=beside(__file__, "dequant_swiglu_quant.cpp"),
        summary=("a = x, or x * weight_scale * activation_scale for int32 x [.., 2 n]; g = silu(gate) * value, "
                 "gate the right half of a unless activate_left; static: out = round(g / smooth + offset) in int8; "
                 "dynamic: h = g * smooth, step = max |h| / 127 of each row, out = round(h / step), outputs out, step; "
                 "inputs x, for int32 weight_scale [2 n] and activation_scale [.., 1], then smooth [n] and, if "
                 "static, offset [n], all float32."),
        shapes=rows(timed=((128, 1024), (16, 4096))), inputs=_sums, outputs=_gated_outputs,
        dtypes=("int32", "float16", "bfloat16"),
        variants={"": {"activate_left": 0, "dynamic": 0}, "dynamic": {"activate_left": 1, "dynamic": 1}},
        traps=(_LIMITS, _DYNAMIC, _EVEN, "The static form divides by smooth, the dynamic one multiplies by it."),
        full=dense_full(((128, 256), "float16"), ((4096, 4096), "bfloat16", "dynamic"),
                        ((256, 192), "int32", "dynamic")),
        conditions=("x is above 0.", "Scales are at least 2^-16."),
    ),
    planned(
        "AddRmsNormQuant", add_rms_norm_quant, baseline=add_rms_norm_quant_of_torch,
        expert=beside(__file__, "add_rms_norm_quant.cpp"),
        summary=("x = x1 + x2; y = x / sqrt(mean(x^2) + eps) * gamma of each row; out = round(y / scale + zero) in "
                 "int8, "
                 "y * scale without div_mode; outputs out, x; inputs x1, x2, gamma, scale (float32 [n]), zero (int32 "
                 "[n])."),
        shapes=rows(), inputs=_norm_inputs, outputs=_norm_outputs, dtypes=("float16", "bfloat16"),
        variants={"": {"eps": 1e-6, "div_mode": 1}, "times": {"eps": 1e-6, "div_mode": 0}},
        traps=(_LIMITS, _EVEN, "The zero point is added before rounding and holding, and is int32."),
        full=dense_full(((8, 4), "float16"), ((64, 1024, 512), "bfloat16")),
        conditions=("scale is at least 2^-6.",),
    ),
)  # fmt: skip
