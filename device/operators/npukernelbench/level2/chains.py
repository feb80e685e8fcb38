"""Short chains of operators that pay as one: their parts read and write more memory than they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed, odd, prime
from device.operators.npukernelbench.level2.plan import (
    Attributes,
    Shapes,
    dense_full,
    like,
    planned,
    row,
    rows,
    same_as,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Sizes = tuple[int, int, int]
_ROUNDING = "Half inputs are computed in float32 through the whole chain and rounded once."
_LATE = "The product of half numbers is not rounded before the norm."
_ONE = "A scalar is a tensor of one element, not an attribute."


def mul_sigmoid(x1: Tensor, x2: Tensor, *, t1: float, t2: float, t3: float) -> tuple[Tensor, ...]:
    """Gate x2, repeated for every row of x1, by s = sigmoid(t1 * x1), doubled where it is not below t2; times t3."""
    s = 1 / (1 + (-t1 * wide(x1)).exp())
    gate = s.where(s < t2, 2 * s)
    return ((gate.reshape(-1, *x2.shape[1:]) * wide(x2) * t3).to(x1.dtype),)


def mul_sigmoid_of_torch(x1: Tensor, x2: Tensor, *, t1: float, t2: float, t3: float) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    s = (t1 * wide(x1)).sigmoid()
    return ((s.where(s < t2, 2 * s).reshape(-1, *x2.shape[1:]) * wide(x2) * t3).to(x1.dtype),)


def softmax(x: Tensor) -> tuple[Tensor, ...]:
    """Divide exp(x - max x) by its sum along the last axis."""
    a = wide(x)
    e = (a - a.amax(dim=-1, keepdim=True)).exp()
    return ((e / e.sum(dim=-1, keepdim=True)).to(x.dtype),)


def softmax_of_torch(x: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own softmax."""
    return (x.softmax(dim=-1),)


def select_softmax(chosen: Tensor, x1: Tensor, x2: Tensor) -> tuple[Tensor, ...]:
    """Softmax along the last axis of x1 where chosen, of x2 elsewhere."""
    a = wide(x1).where(chosen, wide(x2))
    e = (a - a.amax(dim=-1, keepdim=True)).exp()
    return ((e / e.sum(dim=-1, keepdim=True)).to(x1.dtype),)


def select_softmax_of_torch(chosen: Tensor, x1: Tensor, x2: Tensor) -> tuple[Tensor, ...]:
    """Select, then call torch's own softmax."""
    return (x1.where(chosen, x2).softmax(dim=-1),)


def add_sigmoid_mul_sum(x: Tensor, y: Tensor, scale: Tensor, rows: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Sum sigmoid((x + y) * scale) * rows * weight over the middle axis."""
    s = 1 / (1 + (-(wide(x) + wide(y)) * wide(scale)).exp())
    return ((s * wide(rows) * wide(weight)).sum(dim=1).to(x.dtype),)


def add_sigmoid_mul_sum_of_torch(
    x: Tensor, y: Tensor, scale: Tensor, rows: Tensor, weight: Tensor
) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    s = ((wide(x) + wide(y)) * wide(scale)).sigmoid()
    return ((s * wide(rows) * wide(weight)).sum(dim=1).to(x.dtype),)


def mul_sigmoid_mul_add(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Take sigmoid(x * a) * b + c."""
    return ((wide(b) / (1 + (-wide(x) * wide(a)).exp()) + wide(c)).to(x.dtype),)


def mul_sigmoid_mul_add_of_torch(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Write it with torch's own sigmoid."""
    return (((wide(x) * wide(a)).sigmoid() * wide(b) + wide(c)).to(x.dtype),)


def mul_mul_norm(a: Tensor, b: Tensor, c: Tensor, add: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, ...]:
    """Layer norm along the last axis of a * b * c, with `add` in the place of eps."""
    x = wide(a) * wide(b) * wide(c)
    centred = x - x.mean(dim=1, keepdim=True)
    factor = wide(gamma) / (centred.square().mean(dim=1, keepdim=True) + wide(add)).sqrt()
    return ((centred * factor + wide(beta)).to(a.dtype),)


def mul_mul_norm_of_torch(
    a: Tensor, b: Tensor, c: Tensor, add: Tensor, gamma: Tensor, beta: Tensor
) -> tuple[Tensor, ...]:
    """Multiply, then call torch's own layer norm."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    x = wide(a) * wide(b) * wide(c)
    return (functional.layer_norm(x, x.shape[1:], wide(gamma)[0], wide(beta)[0], add.item()).to(a.dtype),)


def _threes(rng: Generator) -> Mapping[str, Sizes]:
    return {
        "prime": (prime(rng, 3, 20), prime(rng, 3, 20), prime(rng, 17, 80)),
        "single": (1, 1, 1),
        "one-row": (1, odd(rng, 3, 60), odd(rng, 3, 60)),
        "narrow": (odd(rng, 3, 60), odd(rng, 3, 60), 1),
        "long": (2, odd(rng, 300, 900), odd(rng, 9, 40)),
        "wide": (3, 2, odd(rng, 3000, 9000)),
    }


THREES: Shapes[Sizes] = Shapes(
    {"large": (20, 64, 128), "wide": (40, 32, 256)},
    {"tail": (5, 7, 33), "one-column": (9, 5, 1), "one-row": (1, 12, 40), "odd": (3, 17, 131)},
    _threes,
)


def _gate_inputs(first: Sizes, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    r, m, k = first
    return TensorSpec((r, m * k), dtype), TensorSpec((1, m, k), dtype)


def _sum_inputs(first: Sizes, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    b, s, d = first
    shapes = ((b, s, d), (1, 1, d), (1,), (b, s, 1), (b, s, d))
    return tuple(TensorSpec(shape, dtype) for shape in shapes)


def _sum_outputs(case: Case) -> tuple[TensorSpec, ...]:
    b, _, d = case.inputs[0].shape
    return (TensorSpec((b, d), case.inputs[0].dtype),)


def _plain(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return (like(first, dtype),)


def _selected(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return like(first, "bool", dense=True), like(first, dtype), like(first, dtype, dense=True)


def _scalars(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return (like(first, dtype), *(TensorSpec((1,), dtype),) * 3)


def _normed(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    count = first.elements // first.shape[-1]
    flat = first if len(first.shape) == 2 else TensorSpec((count, first.shape[-1]))
    line = TensorSpec((1, *row(first, dtype).shape), dtype)
    one, added = TensorSpec((1,), dtype, values="positive"), TensorSpec((1,), dtype, values="positive")
    return like(flat, dtype), like(flat, dtype, dense=True), one, added, line, line


_THRESHOLDS = {"": {"t1": 0.3, "t2": 0.1, "t3": 0.8}, "middle": {"t1": 0.35, "t2": 0.45, "t3": 0.85}}

OPERATORS = (
    planned(
        "MulSigmoid", mul_sigmoid, baseline=mul_sigmoid_of_torch, expert=beside(__file__, "mul_sigmoid.cpp"),
        summary=("s = sigmoid(t1 * x1), out = (s < t2 ? s : 2 s) * x2 * t3; x1 [r, m k], x2 [1, m, k], out [r, m, k]."),
        shapes=THREES, inputs=_gate_inputs, dtypes=("float16",), variants=_THRESHOLDS, family="elementwise",
        outputs=lambda case: (TensorSpec((case.inputs[0].shape[0], *case.inputs[1].shape[1:]), "float16"),),
        accumulation=nothing_summed,
        traps=("The threshold is met by the gate in float32; rounded to half it may fall on the other side.",
               "x2 has one row, which is used for every row of x1.", _ROUNDING),
        full=[((25, 256, 128), "float16", ""), ((20, 32, 256), "float16", "middle")],
    ),
    planned(
        "InplaceAttnSoftmax", softmax, baseline=softmax_of_torch, expert=beside(__file__, "attn_softmax.cpp"),
        summary="out = exp(x - max) / sum of exp(x - max) along the last axis.",
        shapes=rows(), inputs=_plain, outputs=same_as(0), dtypes=("float32", "float16", "bfloat16"),
        traps=("Without the shift by the maximum exp overflows.", "Sums of half numbers are taken in float32.",
               "In place means after the row was read: the maximum and the sum need all of it."),
        full=dense_full(((32, 256), "float32"), ((1024, 2048), "float16"), ((128, 2048, 2048), "bfloat16")),
    ),
    planned(
        "SelectReduceMaxDSubExpReduceSumDRealDiv", select_softmax, baseline=select_softmax_of_torch,
        expert=beside(__file__, "select_softmax.cpp"),
        summary="a = chosen ? x1 : x2; out = exp(a - max a) / sum of exp(a - max a) along the last axis; inputs chosen "
                "(bool), x1, x2.",
        shapes=rows(), inputs=_selected, outputs=same_as(1),
        traps=("The maximum is that of the selected numbers, not of either input.", _ROUNDING),
        full=dense_full(((60, 1, 60), "float16"), ((64, 1, 60), "float16")),
    ),
    planned(
        "AddSigmoidMulReduceSumD", add_sigmoid_mul_sum, baseline=add_sigmoid_mul_sum_of_torch,
        expert=beside(__file__, "add_sigmoid_mul_sum.cpp"),
        summary=("out[b, d] = sum over s of sigmoid((x[b, s, d] + y[d]) * scale) * rows[b, s] * weight[b, s, d]; "
                 "inputs "
                 "x [b, s, d], y [1, 1, d], scale [1], rows [b, s, 1], weight [b, s, d]."),
        shapes=THREES, inputs=_sum_inputs, outputs=_sum_outputs, accumulation=lambda case: case.inputs[0].shape[1],
        traps=("The sum goes over the middle axis: neighbours in memory belong to different sums.", _ONE, _ROUNDING),
        full=[((40, 64, 32), "float16", ""), ((8, 32, 64), "float16", "")],
    ),
    planned(
        "MulSigmoidMulAddCustom", mul_sigmoid_mul_add, baseline=mul_sigmoid_mul_add_of_torch,
        expert=beside(__file__, "mul_sigmoid_mul_add.cpp"), family="elementwise",
        summary="out = sigmoid(x * a) * b + c; a, b and c are tensors of one element.",
        shapes=rows(), inputs=_scalars, outputs=same_as(0), accumulation=nothing_summed, traps=(_ONE, _ROUNDING),
        full=dense_full(((32, 32), "float16"), ((8, 16), "float16")),
    ),
    planned(
        "MulMulReduceMeanDTwice", mul_mul_norm, baseline=mul_mul_norm_of_torch,
        expert=beside(__file__, "mul_mul_norm.cpp"),
        summary=("x = a * b * c; out = (x - mean) / sqrt(variance + add) * gamma + beta of each row; a, b [m, n], "
                 "c and "
                 "add [1], gamma and beta [1, n]."),
        shapes=rows(), inputs=_normed, outputs=same_as(0),
        traps=("E[x^2] - E[x]^2 loses the digits of a row far from 0.", _LATE, _ONE),
        full=dense_full(((90, 1024), "float16"), ((2048, 1024), "float16")),
    ),
)  # fmt: skip
