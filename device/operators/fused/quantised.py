"""Products and norms around int8: scaled, gated, rounded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide, wide_as
from device.operators.forms import odd, prime
from device.operators.fused.forms import Sizes, Table, fused
from device.operators.npukernelbench.level3.dequantised import whole_product
from device.operators.npukernelbench.level3.grouped import ends_of
from device.operators.npukernelbench.level3.sizes import hard_sizes

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

HALF, BRAIN = "float16", "bfloat16"
_BYTE = (-127, 128)
_EXACT = "Products of int8 are summed exactly: int32, or float32 in blocks whose sums stay below 2^24."
_STEP = "The step is the row's largest size over 127, worked out before anything of the row is rounded."


def stepped(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Give each row in units of its step, not yet rounded, and the step: its largest size over 127."""
    step = rows.abs().amax(dim=-1) / 127
    return rows / step.where(step > 0, 1)[..., None], step


def swiglu_quant(x: Tensor, w: Tensor, w_scale: Tensor, x_scale: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply rows by their group's matrix, scale, gate (silu of the first half times the second), and quantise."""
    outs = []
    begin = 0
    for g, end in enumerate(ends.tolist()):
        sums = whole_product(x[begin:end], w[g], w_scale)
        first, second = (sums * w_scale[g] * x_scale[begin:end, None]).chunk(2, dim=-1)
        outs.append(first / (1 + (-first).exp()) * second)
        begin = end
    import torch  # noqa: PLC0415  (torch loads when a reference runs)

    return stepped(torch.cat(outs))


def swiglu_quant_of_torch(x: Tensor, w: Tensor, w_scale: Tensor, x_scale: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply group by group, gate with torch's own silu, round."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    cuts = ends.tolist()[:-1]
    parts = zip(wide_as(x, w_scale).tensor_split(cuts), wide_as(w, w_scale), strict=True)
    sums = torch.cat([rows @ matrix * scale for (rows, matrix), scale in zip(parts, w_scale, strict=True)])
    first, second = (sums * x_scale[:, None]).chunk(2, dim=-1)
    units, step = stepped(functional.silu(first) * second)
    return (units.round().to(torch.int8), step)


def swiglu_quant_inputs(m: int, k: int, n: int, groups: int) -> tuple[TensorSpec, ...]:
    """Describe m rows of k, and for each group a matrix of 2 n columns."""
    return (
        TensorSpec((m, k), "int8", span=_BYTE),
        TensorSpec((groups, k, 2 * n), "int8", span=_BYTE),
        TensorSpec((groups, 2 * n), values="small"),
        TensorSpec((m,), values="small"),
        ends_of(groups, m),
    )


def swiglu_quant_outputs(x: TensorSpec, w: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    """Rounded int8 [m, n] and the float32 steps of the rows."""
    return (TensorSpec((x.shape[0], w.shape[2] // 2), "int8", rounded=True), TensorSpec(x.shape[:1]))


def groups_hidden(rng: Generator) -> Table:
    """Hard sizes with few and many groups."""
    sizes = {name: (*row, int(rng.integers(1, 9))) for name, row in hard_sizes(rng).items()}
    return {name: row for name, row in sizes.items() if name != "single"}


def weight_quant(x: Tensor, w: Tensor, scale: Tensor, offset: Tensor) -> tuple[Tensor, ...]:
    """Multiply x by (w + offset) scale, both of a column, without rounding the weights on the way."""
    return ((wide(x) @ ((wide_as(w, x) + wide(offset)) * wide(scale))).to(x.dtype),)


def weight_quant_of_torch(x: Tensor, w: Tensor, scale: Tensor, offset: Tensor) -> tuple[Tensor, ...]:
    """Put the weights back into float32 and call torch's own product, which on a CPU is slow for half numbers."""
    return (wide(x).matmul((wide_as(w, x) + offset) * scale).to(x.dtype),)


def weight_quant_inputs(b: int, m: int, k: int, n: int) -> tuple[TensorSpec, ...]:
    """Describe a batch of rows and one int8 matrix for all."""
    return (
        TensorSpec((b, m, k), HALF),
        TensorSpec((k, n), "int8", span=_BYTE),
        TensorSpec((n,), HALF, values="small"),
        TensorSpec((n,), HALF, values="whole"),
    )


def batch_hidden(rng: Generator) -> Table:
    """Hard sizes in small batches."""
    return {name: (odd(rng, 1, 4), *row) for name, row in hard_sizes(rng).items()}


def reduce_sum(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor) -> tuple[Tensor, ...]:
    """Multiply each batch exactly, scale its columns and rows, and sum over the batch."""
    sums = whole_product(a, b, per_token)
    return ((sums * wide(scale).to(per_token.dtype) * per_token[..., None]).sum(dim=0).to(scale.dtype),)


def reduce_sum_of_torch(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor) -> tuple[Tensor, ...]:
    """Multiply in float32, scale, and sum."""
    sums = wide_as(a, per_token) @ wide_as(b, per_token)
    return ((sums * scale * per_token[..., None]).sum(dim=0).to(scale.dtype),)


def reduce_sum_inputs(b: int, m: int, k: int, n: int) -> tuple[TensorSpec, ...]:
    """Describe batches of int8 matrices; one scale a column, one a row of each batch."""
    return (
        TensorSpec((b, m, k), "int8", span=_BYTE),
        TensorSpec((b, k, n), "int8", span=_BYTE),
        TensorSpec((n,), BRAIN),
        TensorSpec((b, m), values="small"),
    )


def norm_quant(x: Tensor, residual: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Add the residual, divide by the root of the mean square, scale, and give it in units of each row's step.

    RMSNorm: Zhang and Sennrich, arXiv 1910.07467, equation 4. The sum that is normed is the one not yet rounded.
    """
    total = wide(x) + wide(residual)
    normed = total / (total.square().mean(dim=-1, keepdim=True) + eps).sqrt() * wide(gamma)
    return (*stepped(normed), total.to(x.dtype))


def norm_quant_of_torch(x: Tensor, residual: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Call torch's own rms_norm, and round."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    total = wide(x) + wide(residual)
    units, step = stepped(functional.rms_norm(total, gamma.shape, wide(gamma), eps))
    return (units.round().to(torch.int8), step, total.to(x.dtype))


def norm_inputs(m: int, n: int) -> tuple[TensorSpec, ...]:
    """Describe m rows of n."""
    return (TensorSpec((m, n), HALF), TensorSpec((m, n), HALF), TensorSpec((n,), HALF))


def norm_outputs(x: TensorSpec, *_: TensorSpec, **__: float) -> tuple[TensorSpec, ...]:
    """Rounded int8, the float32 steps of the rows, the sum in x's type."""
    return (TensorSpec(x.shape, "int8", rounded=True), TensorSpec(x.shape[:1]), TensorSpec(x.shape, x.dtype))


def norm_hidden(rng: Generator) -> Table:
    """Short, prime and long rows."""
    return {
        "pairs": (odd(rng, 30, 300), 2),
        "one-row": (1, prime(rng, 100, 900)),
        "prime": (prime(rng, 5, 60), prime(rng, 31, 300)),
        "tail": (3, 64 * int(rng.integers(1, 9)) + 1),
        "long-rows": (3, odd(rng, 5000, 9000)),
    }


def last_columns(a: TensorSpec, b: TensorSpec, scale: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    """One dense output of a's rows and b's columns in the scale's type."""
    return (TensorSpec((*a.shape[-2:-1], b.shape[-1]), scale.dtype),)


def _eps(sizes: Sizes) -> dict[str, float]:
    del sizes
    return {"eps": 1e-6}


OPERATORS = (
    fused(
        "GroupedMatmulSwigluQuant",
        family="matmul",
        summary=(
            "x int8 [m, k], w int8 [groups, k, 2n], w_scale [groups, 2n], x_scale [m] float32, ends int64 [groups]: "
            "y = (x w[g]) w_scale[g] x_scale for each row's group g; z = silu(y[:, :n]) y[:, n:]; out step[i] = "
            "max |z[i]| / 127 (float32) and round(z / step) (int8)."
        ),
        expert=beside(__file__, "grouped_matmul_swiglu_quant.cpp"),
        reference=swiglu_quant,
        baseline=swiglu_quant_of_torch,
        make=swiglu_quant_inputs,
        outputs=swiglu_quant_outputs,
        accumulation=lambda x, *_: x.shape[1],
        visible={
            "few": (128, 256, 64, 4),
            "many": (96, 128, 48, 24),
            "tail": (13, 37, 19, 3),
            "one-group": (9, 30, 8, 1),
        },
        hidden=groups_hidden,
        full=((4096, 7168, 2048, 8), (576, 7168, 2048, 32)),
        traps=(
            _EXACT,
            _STEP,
            "The halves are gate first, then what is gated.",
            "The list holds ends; a group may be empty.",
        ),
        dtypes=("int8", "float32", "int64"),
        conditions=("Ends do not fall, and the last one is m.",),
    ),
    fused(
        "WeightQuantBatchMatmul",
        family="matmul",
        summary="out = x ((w + offset) scale); x float16 [b, m, k], w int8 [k, n], scale and offset float16 [n].",
        expert=beside(__file__, "weight_quant_batch_matmul.cpp"),
        reference=weight_quant,
        baseline=weight_quant_of_torch,
        make=weight_quant_inputs,
        outputs=lambda x, w, *_: (TensorSpec((*x.shape[:2], w.shape[1]), x.dtype),),
        accumulation=lambda x, *_: x.shape[2],
        visible={
            "decode": (1, 8, 1024, 512),
            "batch": (4, 32, 256, 256),
            "tail": (3, 13, 37, 19),
            "one-row": (1, 1, 65, 33),
        },
        hidden=batch_hidden,
        full=((1, 16, 8192, 8192), (1, 96, 7168, 4096)),
        traps=(
            "The offset is added before the scale is applied.",
            "Weights put back into half precision lose digits that the product needs.",
        ),
        dtypes=(HALF, "int8"),
    ),
    fused(
        "QuantMatmulReduceSum",
        family="matmul",
        summary=(
            "out = sum over b of (a[b] b[b]) scale per_token[b]; a int8 [batch, m, k], b int8 [batch, k, n], "
            "scale bfloat16 [n], per_token float32 [batch, m], out bfloat16 [m, n]."
        ),
        expert=beside(__file__, "quant_matmul_reduce_sum.cpp"),
        reference=reduce_sum,
        baseline=reduce_sum_of_torch,
        make=reduce_sum_inputs,
        outputs=last_columns,
        accumulation=lambda a, *_: a.shape[0] * a.shape[2],
        visible={"eight": (8, 64, 128, 128), "many": (32, 32, 64, 64), "tail": (3, 13, 37, 19), "one": (1, 21, 30, 24)},
        hidden=batch_hidden,
        full=((8, 2048, 1024, 7168), (16, 512, 256, 7168)),
        traps=(
            _EXACT,
            "Every batch has its own row scales: it is scaled before it is added.",
            "The sum over the batch is gathered in float32 and rounded once.",
        ),
        dtypes=("int8", BRAIN, "float32"),
    ),
    fused(
        "AddRmsNormDynamicQuant",
        family="reduction",
        summary=(
            "t = x + residual (float16 [m, n]); z = t / sqrt(mean(t^2) + eps) gamma; out round(z / step) int8, step[i] "
            "= max |z[i]| / 127 float32, and t float16."
        ),
        expert=beside(__file__, "add_rms_norm_dynamic_quant.cpp"),
        reference=norm_quant,
        baseline=norm_quant_of_torch,
        make=norm_inputs,
        outputs=norm_outputs,
        accumulation=lambda x, *_: x.shape[1],
        visible={"rows": (256, 1024), "long-rows": (16, 8192), "tail": (5, 131), "short": (65, 8)},
        hidden=norm_hidden,
        full=((4096, 7168), (64, 16384)),
        attributes=_eps,
        traps=(
            _STEP,
            "The norm is that of the sum before it is rounded to half precision.",
            "Rounding to a whole number is to nearest, not towards zero.",
        ),
        dtypes=(HALF, "int8", "float32"),
    ),
)
