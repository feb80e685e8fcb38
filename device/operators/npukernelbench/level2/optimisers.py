"""One step of an optimiser: parameters and moments in, the new ones out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed
from device.operators.npukernelbench.level2.plan import Attributes, dense_full, like, planned, rows, same_as

if TYPE_CHECKING:
    from torch import Tensor

_FLOATS = ("float32", "float16", "bfloat16")
_POWER = "1 - beta^step is taken once, in double; step by step in float32 it loses digits."
_EPS = "eps is added to the root of the corrected second moment, outside of the root."


def adam_w(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    *most: Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: float,
    maximize: float,
    step: float,
) -> tuple[Tensor, ...]:
    """Take one step of Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2)."""
    g = -wide(grad) if maximize else wide(grad)
    first = beta1 * wide(m) + (1 - beta1) * g
    second = beta2 * wide(v) + (1 - beta2) * g * g
    largest = second.where(second > wide(most[0]), wide(most[0])) if amsgrad else second
    divisor = (largest / (1 - beta2**step)).sqrt() + eps
    updated = wide(var) * (1 - lr * weight_decay) - lr / (1 - beta1**step) * first / divisor
    outputs = (updated, first, second, *([largest] if amsgrad else []))
    return tuple(out.to(var.dtype) for out in outputs)


def adam_w_of_torch(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    grad: Tensor,
    *most: Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: float,
    maximize: float,
    step: float,
) -> tuple[Tensor, ...]:
    """Call torch's own fused step on copies."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    new = [wide(t).clone().contiguous() for t in (var, m, v, *most)]
    call = torch._fused_adamw_
    call(
        [new[0]], [wide(grad).contiguous()], [new[1]], [new[2]], new[3:], [torch.tensor(float(step))],
        lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=bool(amsgrad),
        maximize=bool(maximize),
    )  # fmt: skip
    return tuple(out.to(var.dtype) for out in new)


def ema_adam(
    grad: Tensor,
    var: Tensor,
    m: Tensor,
    v: Tensor,
    s: Tensor,
    step: Tensor,
    *,
    lr: float,
    ema_decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    mode: float,
    bias_correction: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:
    """Take one step of Adam, weight decay in the gradient (mode 0) or decoupled (1), and average var into s."""
    x, g, count = wide(var), wide(grad), float(step[0])
    g = g + weight_decay * x if mode == 0 else g
    first = beta1 * wide(m) + (1 - beta1) * g
    second = beta2 * wide(v) + (1 - beta2) * g * g
    by_first, by_second = (1 - beta1**count, 1 - beta2**count) if bias_correction else (1.0, 1.0)
    update = first / by_first / ((second / by_second).sqrt() + eps)
    x = x - lr * (update + weight_decay * x if mode == 1 else update)
    outputs = (x, first, second, ema_decay * wide(s) + (1 - ema_decay) * x)
    return tuple(out.to(var.dtype) for out in outputs)


def _adam_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    second = like(first, dtype, "positive")
    most = (like(first, dtype, "positive", dense=True),) if attributes["amsgrad"] else ()
    return like(first, dtype), like(first, dtype), second, like(first, dtype, dense=True), *most


def _adam_outputs(case: Case) -> tuple[TensorSpec, ...]:
    return same_as(*range(4 if case.attributes["amsgrad"] else 3))(case)


def _ema_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    tensors = (like(first, dtype), like(first, dtype), like(first, dtype), like(first, dtype, "positive"))
    return (*tensors, like(first, dtype, dense=True), TensorSpec((1,), "int64", span=(1, 300)))


def _adam(amsgrad: int, maximize: int, step: int, weight_decay: float) -> Attributes:
    names = ("lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad", "maximize", "step")
    return dict(zip(names, (0.01, 0.9, 0.99, weight_decay, 1e-6, amsgrad, maximize, step), strict=True))


def _ema(mode: int, bias_correction: int, weight_decay: float) -> Attributes:
    names = ("lr", "ema_decay", "beta1", "beta2", "eps", "mode", "bias_correction", "weight_decay")
    return dict(zip(names, (0.001, 0.995, 0.93, 0.995, 1e-7, mode, bias_correction, weight_decay), strict=True))


OPERATORS = (
    planned(
        "ApplyAdamWV2", adam_w, baseline=adam_w_of_torch, expert=beside(__file__, "adam_w.cpp"), family="elementwise",
        summary=("m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, g negated with maximize; var = var "
                 "(1 - lr "
                 "weight_decay) - lr / (1 - beta1^step) m / (sqrt(v / (1 - beta2^step)) + eps); with amsgrad the "
                 "largest "
                 "v so far, a fifth input and fourth output, stands for v there; inputs var, m, v, g; outputs var, "
                 "m, v."),
        shapes=rows(timed=((128, 1024), (16, 8192))), inputs=_adam_inputs, outputs=_adam_outputs, dtypes=_FLOATS,
        variants={"": _adam(0, 0, 1, 5e-3), "amsgrad": _adam(1, 0, 7, 5e-3), "maximize": _adam(0, 1, 100, 0.0)},
        accumulation=nothing_summed,
        traps=(_POWER, _EPS, "The decay goes by the old parameter and is not part of the moments."),
        full=dense_full(((48, 128, 512), "bfloat16"), ((96, 64, 1024), "float32", "amsgrad"), ((48, 8192), "bfloat16")),
        conditions=("Second moments are at least 2^-6.",),
    ),
    planned(
        "ApplyFusedEmaAdam", ema_adam, expert=beside(__file__, "ema_adam.cpp"), family="elementwise",
        summary=("g += weight_decay var in mode 0; m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2; u = "
                 "(m / c1)"
                 " / (sqrt(v / c2) + eps), c = 1 - beta^step with bias_correction, else 1; var -= lr (u + weight_decay "
                 "var in mode 1); s = ema_decay s + (1 - ema_decay) var; inputs g, var, m, v, s, step; outputs "
                 "var, m, v, "
                 "s."),
        shapes=rows(timed=((128, 1024), (16, 8192))), inputs=_ema_inputs, outputs=same_as(1, 2, 3, 4), dtypes=_FLOATS,
        variants={"": _ema(0, 1, 0.02), "decoupled": _ema(1, 0, 0.03)}, accumulation=nothing_summed,
        traps=(_POWER, _EPS, "The average s takes the new var, not the old one.", "The step is a tensor of one int64."),
        full=dense_full(((48, 128, 512), "float16"), ((48, 8, 16, 32, 64), "bfloat16", "decoupled")),
        conditions=("Second moments are at least 2^-6.", "The step is at least 1."),
    ),
)  # fmt: skip
