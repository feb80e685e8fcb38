"""Losses and their gradients; reduction is 0 (none), 1 (mean) or 2 (sum)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed, odd, prime, tail
from device.operators.npukernelbench.level2.plan import Attributes, Shapes, dense_full, like, planned, rows, same_as

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_KINDS = ("none", "mean", "sum")
_MEAN = "The mean divides by the number of elements, or by the sum of the weights in use, not by the number of rows."
_LONG = "One float32 accumulator over all elements loses digits; a sum of half numbers does at once."
_IGNORED = "A row whose target is ignore_index adds nothing to the loss, nor to what the mean divides by."
_REDUCTIONS: dict[str, Attributes] = {"none": {"reduction": 0}, "mean": {"reduction": 1}, "sum": {"reduction": 2}}


def mse_loss(x: Tensor, target: Tensor, *, reduction: float) -> tuple[Tensor, ...]:
    """Square the differences; keep all, or take their mean or sum."""
    square = (wide(x) - wide(target)).square()
    reduced = square if reduction == 0 else square.sum() / (square.numel() if reduction == 1 else 1)
    return (reduced.to(x.dtype),)


def mse_loss_of_torch(x: Tensor, target: Tensor, *, reduction: float) -> tuple[Tensor, ...]:
    """Call torch's own loss."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.mse_loss(wide(x), wide(target), reduction=_KINDS[int(reduction)]).to(x.dtype),)


def mse_loss_grad(x: Tensor, target: Tensor, dout: Tensor, *, reduction: float) -> tuple[Tensor, ...]:
    """Take 2 (x - target) dout, divided by the number of elements for the mean."""
    g = 2 * (wide(x) - wide(target)) * wide(dout)
    return ((g / (x.numel() if reduction == 1 else 1)).to(x.dtype),)


def mse_loss_grad_of_torch(x: Tensor, target: Tensor, dout: Tensor, *, reduction: float) -> tuple[Tensor, ...]:
    """Call torch's own backward of the loss."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    g = torch.ops.aten.mse_loss_backward(wide(dout), wide(x), wide(target), int(reduction))
    return (g.to(x.dtype),)


def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor, *, ignore_index: float, label_smoothing: float, reduction: float
) -> tuple[Tensor, ...]:
    """Take -w[t] log p[t] of each row, p = softmax(x); a share goes to the mean of -w log p over all classes.

    The mean divides by the sum of w[t] over rows that are not ignored. The second output is log p.
    """
    a, w, share = wide(x), wide(weight), label_smoothing
    shifted = a - a.amax(dim=1, keepdim=True)
    log_p = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
    used = (target != int(ignore_index)).to(a.dtype)
    picked = log_p.gather(1, target[:, None])[:, 0]
    loss = -used * ((1 - share) * w[target] * picked + share * (log_p * w).sum(dim=1) / x.shape[1])
    if reduction:
        loss = loss.sum() / ((used * w[target]).sum() if reduction == 1 else 1)
    return loss.to(x.dtype), log_p.to(x.dtype)


def cross_entropy_of_torch(
    x: Tensor, target: Tensor, weight: Tensor, *, ignore_index: float, label_smoothing: float, reduction: float
) -> tuple[Tensor, ...]:
    """Call torch's own loss and its log_softmax."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    a, kind = wide(x), _KINDS[int(reduction)]
    loss = functional.cross_entropy(
        a, target, wide(weight), ignore_index=int(ignore_index), label_smoothing=label_smoothing, reduction=kind
    )
    return loss.to(x.dtype), a.log_softmax(dim=1).to(x.dtype)


def cross_entropy_grad(
    dloss: Tensor,
    log_p: Tensor,
    target: Tensor,
    weight: Tensor,
    *,
    ignore_index: float,
    label_smoothing: float,
    reduction: float,
) -> tuple[Tensor, ...]:
    """Pass dloss back through the loss and log_p = log_softmax(x), to x."""
    lp, w, share = wide(log_p), wide(weight), label_smoothing
    used = (target != int(ignore_index)).to(lp.dtype)
    g = wide(dloss) * used
    if reduction == 1:
        g = g / (used * w[target]).sum()
    classes = lp.shape[1]
    hit = target.new_tensor(range(classes)) == target[:, None]
    dlog_p = -g[:, None] * ((1 - share) * hit.to(lp.dtype) * w[target][:, None] + share / classes * w)
    dx = dlog_p - lp.exp() * dlog_p.sum(dim=1, keepdim=True)
    return (dx.to(log_p.dtype),)


def _pair(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return like(first, dtype), like(first, dtype, dense=True)


def _three(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return like(first, dtype), like(first, dtype), like(first, dtype, dense=True)


def _reduced(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    return (TensorSpec(() if case.attributes["reduction"] else x.shape, x.dtype),)


def _all_elements(case: Case) -> int:
    return case.inputs[0].elements if case.attributes["reduction"] else 1


def _classes(rng: Generator) -> Mapping[str, TensorSpec]:
    return {
        "prime": TensorSpec((prime(rng, 17, 80), prime(rng, 17, 300))),
        "two": TensorSpec((odd(rng, 30, 99), 2)),
        "few-rows": TensorSpec((3, odd(rng, 3, 99))),
        "long-row": TensorSpec((5, odd(rng, 20_000, 40_000))),
        "tail": TensorSpec((odd(rng, 3, 30), tail(rng, 16, 2, 40))),
    }


CLASSES: Shapes[TensorSpec] = Shapes(
    {"rows": TensorSpec((512, 1000)), "long-rows": TensorSpec((32, 16000))},
    {"tail": TensorSpec((13, 131)), "small": TensorSpec((4, 10)), "many-rows": TensorSpec((257, 7))},
    _classes,
)


def _targets(first: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    n, classes = first.shape
    return TensorSpec((n,), "int64", span=(0, classes)), TensorSpec((classes,), values="positive")


def _logits(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return (like(first, dtype), *_targets(first))


def _gradients(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    n = first.shape[0]
    return (TensorSpec((1,) if attributes["reduction"] else (n,), dtype), like(first, dtype), *_targets(first))


def _loss_outputs(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    return TensorSpec(() if case.attributes["reduction"] else x.shape[:1], x.dtype), TensorSpec(x.shape, x.dtype)


def _entropy_length(case: Case) -> int:
    shape = case.inputs[0].shape
    return max(shape) if case.attributes["reduction"] else shape[1]


_FLOATS = ("float32", "float16", "bfloat16")
_ENTROPY: dict[str, Attributes] = {
    "none": {"ignore_index": -100, "label_smoothing": 0.0, "reduction": 0},
    "mean": {"ignore_index": 1, "label_smoothing": 0.0, "reduction": 1},
    "smooth": {"ignore_index": 0, "label_smoothing": 0.2, "reduction": 0},
}

OPERATORS = (
    planned(
        "MseLoss", mse_loss, baseline=mse_loss_of_torch, expert=beside(__file__, "mse_loss.cpp"),
        summary="out = (x - target)^2, all of them (reduction 0), their mean (1) or their sum (2).",
        shapes=rows(), inputs=_pair, outputs=_reduced, variants=_REDUCTIONS, accumulation=_all_elements,
        traps=(_LONG, "Threads must not race for the sum, and its bits must not depend on their turns."),
        full=dense_full(((128,), "float16", "mean"), ((1024, 1024), "float16", "mean"),
                        ((256, 512), "float32", "mean")),
    ),
    planned(
        "MseLossGradV2", mse_loss_grad, baseline=mse_loss_grad_of_torch, expert=beside(__file__, "mse_loss_grad.cpp"),
        summary="out = 2 * (x - target) * dout, divided by the number of elements where reduction is 1 (mean).",
        shapes=rows(), inputs=_three, outputs=same_as(0), dtypes=_FLOATS, family="elementwise", variants=_REDUCTIONS,
        accumulation=nothing_summed, traps=(_MEAN, "Only the mean divides; the sum and none do not."),
        full=dense_full(((48, 128), "float32", "mean"), ((1024, 1024), "bfloat16", "sum"),
                        ((32, 1024), "float16", "none")),
    ),
    planned(
        "CrossEntropyLoss", cross_entropy, baseline=cross_entropy_of_torch, expert=beside(__file__,
        "cross_entropy.cpp"),
        summary=("log p = x - logsumexp(x) of each row; loss = -(1 - e) w[t] log p[t] - e / C * sum of w log p, 0 for "
                 "t = ignore_index; e is label_smoothing; outputs the loss, reduced, and log p; inputs x [n, C], t "
                 "int64 [n], w float32 [C]."),
        shapes=CLASSES, inputs=_logits, outputs=_loss_outputs, dtypes=_FLOATS, variants=_ENTROPY,
        accumulation=_entropy_length, traps=(_MEAN, _IGNORED, "exp of an unshifted row overflows."),
        full=dense_full(((4, 10), "float32", "mean"), ((4096, 32000), "bfloat16", "mean"),
                        ((32, 50), "float32", "mean")),
        conditions=("Targets are within the classes.", "Weights are at least 2^-6."),
    ),
    planned(
        "CrossEntropyLossGrad", cross_entropy_grad, expert=beside(__file__, "cross_entropy_grad.cpp"),
        summary=("g = dloss, 0 where t = ignore_index, over the sum of w[t] in use for the mean; d = -g ((1 - e) w[t] "
                 "[j = t] + e w[j] / C); out = d - exp(log p) * sum of d; inputs dloss, log p [n, C], t, w."),
        shapes=CLASSES, inputs=_gradients, outputs=same_as(1),
        dtypes=_FLOATS, variants=_ENTROPY, accumulation=lambda case: max(case.inputs[1].shape),
        traps=(_MEAN, _IGNORED, "dloss is one number a row, or one number for all where the loss was reduced."),
        full=dense_full(((4, 10), "float32", "mean"), ((4096, 32000), "bfloat16", "mean"),
                        ((16, 100), "float32", "mean")),
        conditions=("Targets are within the classes.", "Weights are at least 2^-6."),
    ),
)  # fmt: skip
