"""Norms along the last axis, alone and behind an addition, with the statistics that their gradients need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.npukernelbench.level2.plan import (
    Attributes,
    Inputs,
    Outputs,
    column,
    dense_full,
    like,
    planned,
    row,
    rows,
)

if TYPE_CHECKING:
    from torch import Tensor

_MEAN = "E[x^2] - E[x]^2 loses all digits of a row far from 0: take the variance about the mean."
_SQUARE = "Nothing is subtracted: the mean square is taken about 0."
_ROUNDING = "The sum of half inputs is kept in float32 for the norm; it is rounded only where it is an output."
_FLOATS = ("float32", "float16", "bfloat16")


def layer_norm(x: Tensor, *parameters: Tensor, eps: float, affine: float) -> tuple[Tensor, ...]:
    """Shift each row to mean 0, scale it to variance 1, then, if `affine`, by gamma and beta (arXiv 1607.06450)."""
    a = wide(x)
    mean = a.mean(dim=-1, keepdim=True)
    rstd = 1 / ((a - mean).square().mean(dim=-1, keepdim=True) + eps).sqrt()
    y = (a - mean) * rstd
    if affine:
        gamma, beta = parameters
        y = y * wide(gamma) + wide(beta)
    return y.to(x.dtype), mean, rstd


def layer_norm_of_torch(x: Tensor, *parameters: Tensor, eps: float, affine: float = 1.0) -> tuple[Tensor, ...]:
    """Call torch's own layer norm, which gives the statistics as well."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    gamma, beta = map(wide, parameters) if affine else (None, None)
    y, mean, rstd = torch.native_layer_norm(wide(x), list(x.shape[-1:]), gamma, beta, eps)
    return y.to(x.dtype), mean, rstd


def add_layer_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, *bias: Tensor, eps: float, additional_out: float
) -> tuple[Tensor, ...]:
    """Layer norm of x1 + x2 (+ bias); the sum is an output, too, where `additional_out` says so."""
    a = wide(x1) + wide(x2) + sum(wide(b) for b in bias)
    mean = a.mean(dim=-1, keepdim=True)
    rstd = 1 / ((a - mean).square().mean(dim=-1, keepdim=True) + eps).sqrt()
    y = (a - mean) * rstd * wide(gamma) + wide(beta)
    return (y.to(x1.dtype), mean, rstd, *([a.to(x1.dtype)] if additional_out else []))


def add_layer_norm_of_torch(
    x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, *bias: Tensor, eps: float, additional_out: float
) -> tuple[Tensor, ...]:
    """Add, then call torch's own layer norm."""
    a = sum((wide(b) for b in bias), wide(x1) + wide(x2))
    y, mean, rstd = layer_norm_of_torch(a, wide(gamma), wide(beta), eps=eps)
    return (y.to(x1.dtype), mean, rstd, *([a.to(x1.dtype)] if additional_out else []))


def pre_layer_norm(x: Tensor, y: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Layer norm of x + y."""
    a = x + y
    centred = a - a.mean(dim=-1, keepdim=True)
    return (centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt() * gamma + beta,)


def pre_layer_norm_of_torch(x: Tensor, y: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Add, then call torch's own layer norm."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.layer_norm(x + y, x.shape[-1:], gamma, beta, eps),)


def deep_norm(x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, *, alpha: float, eps: float) -> tuple[Tensor, ...]:
    """Layer norm of alpha * x + gx (Wang et al., arXiv 2203.00555); statistics come first."""
    a = alpha * wide(x) + wide(gx)
    mean = a.mean(dim=-1, keepdim=True)
    rstd = 1 / ((a - mean).square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return mean, rstd, ((a - mean) * rstd * wide(gamma) + wide(beta)).to(x.dtype)


def deep_norm_of_torch(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, *, alpha: float, eps: float
) -> tuple[Tensor, ...]:
    """Scale and add, then call torch's own layer norm."""
    a = wide(gx).add(wide(x), alpha=alpha)
    y, mean, rstd = layer_norm_of_torch(a, wide(gamma), wide(beta), eps=eps)
    return mean, rstd, y.to(x.dtype)


def rms_norm(x: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Divide each row by the root of its mean square plus eps, then scale (arXiv 1910.07467)."""
    a = wide(x)
    rstd = 1 / (a.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (a * rstd * wide(gamma)).to(x.dtype), rstd


def rms_norm_of_torch(x: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Call torch's own fused norm, which gives the statistic as well."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    call = torch.ops.aten._fused_rms_norm  # noqa: SLF001  (torch's name for it)
    y, rstd = call(wide(x), list(x.shape[-1:]), wide(gamma), eps)
    return y.to(x.dtype), rstd


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """RMS norm of x1 + x2; the outputs are the norm, the rows' 1 / rms and the sum."""
    a = wide(x1) + wide(x2)
    rstd = 1 / (a.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (a * rstd * wide(gamma)).to(x1.dtype), rstd, a.to(x1.dtype)


def add_rms_norm_of_torch(x1: Tensor, x2: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Add, then call torch's own norm."""
    a = wide(x1) + wide(x2)
    y, rstd = rms_norm_of_torch(a, wide(gamma), eps=eps)
    return y.to(x1.dtype), rstd, a.to(x1.dtype)


def add_rms_norm_cast(x1: Tensor, x2: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """RMS norm of x1 + x2, once in float32 and once in the type of x1; then the rows' 1 / rms and the sum."""
    a = wide(x1) + wide(x2)
    rstd = 1 / (a.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    y = a * rstd * wide(gamma)
    return y, y.to(x1.dtype), rstd, a.to(x1.dtype)


def add_rms_norm_cast_of_torch(x1: Tensor, x2: Tensor, gamma: Tensor, *, eps: float) -> tuple[Tensor, ...]:
    """Add, then call torch's own norm, and cast."""
    a = wide(x1) + wide(x2)
    y, rstd = rms_norm_of_torch(a, wide(gamma), eps=eps)
    return y, y.to(x1.dtype), rstd, a.to(x1.dtype)


def operands(count: int, parameters: int) -> Inputs[TensorSpec]:
    """Return a rule for inputs: `count` tensors of one shape, then `parameters` rows."""

    def inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
        del attributes
        tensors = (like(first, dtype, dense=number > 0) for number in range(count))
        return (*tensors, *(row(first, dtype),) * parameters)

    return inputs


def outputs_of(kinds: str) -> Outputs:
    """Return a rule for outputs: for each letter y (like x), w (like x, float32) or s (float32, one number a row)."""

    def outputs(case: Case) -> tuple[TensorSpec, ...]:
        x = case.inputs[0]
        made = {"y": TensorSpec(x.shape, x.dtype), "w": TensorSpec(x.shape), "s": column(x)}
        return tuple(made[kind] for kind in kinds)

    return outputs


def _layer_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    return (like(first, dtype), *(row(first, dtype),) * (2 if attributes["affine"] else 0))


def _add_layer_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    bias = (row(first, dtype),) if attributes["additional_out"] else ()
    return (like(first, dtype), like(first, dtype, dense=True), row(first, dtype), row(first, dtype), *bias)


def _add_layer_outputs(case: Case) -> tuple[TensorSpec, ...]:
    return outputs_of("yssy" if case.attributes["additional_out"] else "yss")(case)


OPERATORS = (
    planned(
        "RmsNorm", rms_norm, baseline=rms_norm_of_torch, expert=beside(__file__, "rms_norm_stats.cpp"),
        summary="y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + eps) of each row; outputs y, rstd (float32).",
        shapes=rows(), inputs=operands(1, 1), outputs=outputs_of("ys"), dtypes=_FLOATS,
        variants={"": {"eps": 1e-6}, "eps": {"eps": 1e-2}}, traps=(_SQUARE, "eps is added inside the root."),
        full=dense_full(((128, 256), "float16"), ((48, 128, 4096), "bfloat16"), ((64, 64), "float16")),
    ),
    planned(
        "AddRmsNorm", add_rms_norm, baseline=add_rms_norm_of_torch, expert=beside(__file__, "add_rms_norm.cpp"),
        summary="x = x1 + x2; y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + eps); outputs y, rstd (float32), x.",
        shapes=rows(), inputs=operands(2, 1), outputs=outputs_of("ysy"),
        variants={"": {"eps": 1e-6}, "eps": {"eps": 1e-2}}, traps=(_SQUARE, _ROUNDING),
        full=dense_full(((128, 256), "float16"), ((48, 128, 4096), "float32"), ((64, 64), "float16")),
    ),
    planned(
        "AddRmsNormCast", add_rms_norm_cast, baseline=add_rms_norm_cast_of_torch,
        expert=beside(__file__, "add_rms_norm_cast.cpp"),
        summary="x = x1 + x2; y = x * rstd * gamma; outputs y in float32, y in x1's type, rstd (float32), x.",
        shapes=rows(), inputs=operands(2, 1), outputs=outputs_of("wysy"), dtypes=("float16", "bfloat16"),
        variants={"": {"eps": 1e-5}}, traps=(_SQUARE, _ROUNDING, "The float32 output is not the rounded one widened."),
        full=dense_full(((48, 128, 256), "float16"), ((48, 128, 1024), "bfloat16"), ((48, 64, 64), "float16")),
    ),
    planned(
        "LayerNormV4", layer_norm, baseline=layer_norm_of_torch, expert=beside(__file__, "layer_norm_stats.cpp"),
        summary=("y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(variance + eps) of each row; outputs y, mean, "
                 "rstd (float32); without affine only x comes in, and gamma is 1 and beta 0."),
        shapes=rows(), inputs=_layer_inputs, outputs=outputs_of("yss"),
        variants={"": {"eps": 1e-5, "affine": 1}, "plain": {"eps": 1e-5, "affine": 0}},
        traps=(_MEAN, "gamma and beta may be absent: look at affine, or count the inputs."),
        full=dense_full(((128, 256), "float16"), ((48, 128, 1024), "float16"), ((10, 5, 20), "float32")),
    ),
    planned(
        "AddLayerNorm", add_layer_norm, baseline=add_layer_norm_of_torch, expert=beside(__file__, "add_layer_norm.cpp"),
        summary=("x = x1 + x2 (+ bias); y = (x - mean) * rstd * gamma + beta; inputs x1, x2, gamma, beta and perhaps "
                 "bias; outputs y, mean, rstd (float32) and, with additional_out, x. A bias comes where "
                 "additional_out is 1."),
        shapes=rows(), inputs=_add_layer_inputs, outputs=_add_layer_outputs, dtypes=_FLOATS,
        variants={"": {"eps": 1e-5, "additional_out": 0}, "sum": {"eps": 1e-5, "additional_out": 1}},
        traps=(_MEAN, _ROUNDING, "The bias may be absent: count the inputs."),
        full=dense_full(((48, 128, 256), "float16"), ((48, 128, 1024), "bfloat16", "sum"), ((48, 64, 64), "float16")),
    ),
    planned(
        "PreLayerNorm", pre_layer_norm, baseline=pre_layer_norm_of_torch, expert=beside(__file__, "pre_layer_norm.cpp"),
        summary="a = x + y; out = (a - mean) / sqrt(variance + eps) * gamma + beta of each row; inputs x, y, "
                "gamma, beta.",
        shapes=rows(), inputs=operands(2, 2), outputs=outputs_of("y"), dtypes=("float32",),
        variants={"": {"eps": 1e-5}}, traps=(_MEAN, "The mean is that of the sum, over the last axis only."),
        full=dense_full(((4980, 4, 2048), "float32"), ((512, 4, 2048), "float32")),
    ),
    planned(
        "DeepNorm", deep_norm, baseline=deep_norm_of_torch, expert=beside(__file__, "deep_norm.cpp"),
        summary=("a = alpha * x + gx; y = (a - mean) * rstd * gamma + beta of each row; inputs x, gx, beta, gamma; "
                 "outputs mean, rstd (float32), y."),
        shapes=rows(), inputs=operands(2, 2), outputs=outputs_of("ssy"),
        variants={"": {"alpha": 0.3, "eps": 1e-6}, "large": {"alpha": 2.5, "eps": 1e-5}},
        traps=(_MEAN, _ROUNDING, "beta comes before gamma, and the statistics before y.", "alpha scales x alone."),
        full=dense_full(((48, 128, 256), "float16"), ((48, 128, 1024), "float32"), ((48, 32, 64), "float16", "large")),
    ),
)  # fmt: skip
