"""What norms pass back: gradients of their inputs, and of gamma and beta, which are sums over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.npukernelbench.level2.plan import (
    Attributes,
    Outputs,
    column,
    dense_full,
    like,
    planned,
    row,
    row_or_column,
    rows,
)

if TYPE_CHECKING:
    from torch import Tensor

_ROWS = "Gradients of gamma and beta are sums over all rows, in float32 or wider: threads must not race for them."
_GIVEN = "Mean and rstd are inputs and need not be those of the rows; they are not to be computed again."
_SHAPES = rows(timed=((256, 1024), (64, 4096)))


def add_layer_norm_grad(
    dy: Tensor, x1: Tensor, x2: Tensor, rstd: Tensor, mean: Tensor, gamma: Tensor, *more: Tensor, dsum: float
) -> tuple[Tensor, ...]:
    """Pass dy back through y = (x - mean) * rstd * gamma + beta, x = x1 + x2.

    A further input is added to dx if `dsum`.
    """
    g, x = wide(dy) * wide(gamma), wide(x1) + wide(x2)
    scaled = (x - mean) * rstd
    dx = rstd * (g - g.mean(dim=-1, keepdim=True) - scaled * (g * scaled).mean(dim=-1, keepdim=True))
    if dsum:
        dx = dx + wide(more[0])
    over = tuple(range(dy.dim() - 1))
    dgamma, dbeta = wide(dy) * scaled, wide(dy)
    return dx.to(dy.dtype), dgamma.sum(dim=over) if over else dgamma, dbeta.sum(dim=over) if over else dbeta * 1


def _backward(dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    inputs = (wide(dy), x, list(x.shape[-1:]), mean, rstd, wide(gamma), torch.zeros_like(wide(gamma)))
    dx, dgamma, dbeta = torch.ops.aten.native_layer_norm_backward(*inputs, [True, True, True])
    return dx, dgamma, dbeta


def add_layer_norm_grad_of_torch(
    dy: Tensor, x1: Tensor, x2: Tensor, rstd: Tensor, mean: Tensor, gamma: Tensor, *more: Tensor, dsum: float
) -> tuple[Tensor, ...]:
    """Add, then call torch's own backward of layer norm."""
    dx, dgamma, dbeta = _backward(dy, wide(x1) + wide(x2), mean, rstd, gamma)
    if dsum:
        dx = dx + wide(more[0])
    return dx.to(dy.dtype), dgamma, dbeta


def deep_norm_grad(
    dy: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, *, alpha: float
) -> tuple[Tensor, ...]:
    """Pass dy back through y = (a - mean) * rstd * gamma + beta, a = alpha * x + gx."""
    g, a = wide(dy) * wide(gamma), alpha * wide(x) + wide(gx)
    scaled = (a - mean) * rstd
    da = rstd * (g - g.mean(dim=-1, keepdim=True) - scaled * (g * scaled).mean(dim=-1, keepdim=True))
    over = tuple(range(dy.dim() - 1))
    dgamma, dbeta = wide(dy) * scaled, wide(dy)
    parameters = (dbeta.sum(dim=over) if over else dbeta * 1, dgamma.sum(dim=over) if over else dgamma)
    return (alpha * da).to(dy.dtype), da.to(dy.dtype), *parameters


def deep_norm_grad_of_torch(
    dy: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, *, alpha: float
) -> tuple[Tensor, ...]:
    """Scale and add, then call torch's own backward of layer norm."""
    da, dgamma, dbeta = _backward(dy, wide(gx).add(wide(x), alpha=alpha), mean, rstd, gamma)
    return (alpha * da).to(dy.dtype), da.to(dy.dtype), dbeta, dgamma


def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor) -> tuple[Tensor, ...]:
    """Pass dy back through y = x * rstd * gamma, rstd = 1 / sqrt(mean(x^2) + eps)."""
    g, scaled = wide(dy) * wide(gamma), wide(x) * rstd
    dx = rstd * (g - scaled * (g * scaled).mean(dim=-1, keepdim=True))
    over = tuple(range(dy.dim() - 1))
    dgamma = wide(dy) * scaled
    return dx.to(dy.dtype), dgamma.sum(dim=over) if over else dgamma


def _statistics(first: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    return column(first, values="positive"), column(first)


def _add_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    rstd, mean = _statistics(first)
    more = (like(first, dtype),) if attributes["dsum"] else ()
    tensors = (like(first, dtype), like(first, dtype), like(first, dtype, dense=True))
    return (*tensors, rstd, mean, row(first, dtype), *more)


def _deep_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    rstd, mean = _statistics(first)
    tensors = (like(first, dtype), like(first, dtype), like(first, dtype, dense=True))
    return (*tensors, row(first, dtype), mean, rstd)


def _rms_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return like(first, dtype), like(first, dtype, dense=True), column(first, values="positive"), row(first, dtype)


def _outputs(tensors: int, sums: int) -> Outputs:
    def outputs(case: Case) -> tuple[TensorSpec, ...]:
        x = case.inputs[0]
        return (TensorSpec(x.shape, x.dtype),) * tensors + (TensorSpec(x.shape[-1:]),) * sums

    return outputs


OPERATORS = (
    planned(
        "AddLayerNormGrad", add_layer_norm_grad, baseline=add_layer_norm_grad_of_torch,
        expert=beside(__file__, "add_layer_norm_grad.cpp"),
        summary=("dx = rstd * (g - mean(g) - s * mean(g * s)) (+ dsum), g = dy * gamma, s = (x1 + x2 - mean) * rstd; "
                 "inputs dy, x1, x2, rstd, mean, gamma and, with dsum, what is added; outputs dx, dgamma = sum of "
                 "dy * s, dbeta = "
                 "sum of dy over all rows, both float32."),
        shapes=_SHAPES, inputs=_add_inputs, outputs=_outputs(1, 2), dtypes=("float32", "float16", "bfloat16"),
        accumulation=row_or_column, variants={"": {"dsum": 0}, "dsum": {"dsum": 1}},
        traps=(_ROWS, _GIVEN, "The gradient of the sum is added to dx after the norm's own, not before."),
        full=dense_full(((128, 256), "float16"), ((48, 128, 1024), "float32"), ((8, 64), "bfloat16")),
    ),
    planned(
        "DeepNormGrad", deep_norm_grad, baseline=deep_norm_grad_of_torch, expert=beside(__file__, "deep_norm_grad.cpp"),
        summary=("dgx = rstd * (g - mean(g) - s * mean(g * s)), g = dy * gamma, s = (alpha * x + gx - mean) * rstd; "
                 "dx = alpha * dgx; inputs dy, x, gx, gamma, mean, rstd; outputs dx, dgx, dbeta, dgamma, the last two "
                 "float32 and summed over all rows."),
        shapes=_SHAPES, inputs=_deep_inputs, outputs=_outputs(2, 2), accumulation=row_or_column,
        variants={"": {"alpha": 0.3}}, traps=(_ROWS, _GIVEN, "dbeta comes before dgamma."),
        full=dense_full(((128, 512), "float16"), ((256, 8192), "float32"), ((64, 2048), "float16")),
    ),
    planned(
        "RmsNormGrad", rms_norm_grad, expert=beside(__file__, "rms_norm_grad.cpp"),
        summary=("dx = rstd * (g - s * mean(g * s)), g = dy * gamma, s = x * rstd; inputs dy, x, rstd, gamma; outputs "
                 "dx, dgamma = sum of dy * s over all rows, float32."),
        shapes=_SHAPES, inputs=_rms_inputs, outputs=_outputs(1, 1), dtypes=("float32", "float16", "bfloat16"),
        accumulation=row_or_column, traps=(_ROWS, _GIVEN, "The mean of g is not taken off: nothing was subtracted."),
        full=dense_full(((128, 256), "float16"), ((48, 128, 4096), "bfloat16"), ((64, 64), "float16")),
    ),
)  # fmt: skip
