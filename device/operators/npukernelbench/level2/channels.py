"""Norms of images: over the batch for each channel, or over groups of channels for each image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, padded, prime
from device.operators.npukernelbench.level2.plan import Attributes, Shapes, dense_full, like, planned

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_MEAN = "E[x^2] - E[x]^2 loses the digits of a channel far from 0: take the variance about the mean."
_FLOATS = ("float32", "float16", "bfloat16")


def batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, *, training: float, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """Normalise each channel (axis 1), by its own statistics in training, else by those given (arXiv 1502.03167).

    Outputs: the norm, the running mean and variance (moved towards the batch's by momentum, its variance unbiased), and
    the mean and 1 / sqrt(variance + eps) that were used.
    """
    a = wide(x).movedim(1, 0).flatten(1)
    used, spread = mean, var
    new_mean, new_var = mean.clone(), var.clone()
    if training:
        count = a.shape[1]
        used = a.mean(dim=1)
        spread = (a - used[:, None]).square().mean(dim=1)
        new_mean = (1 - momentum) * mean + momentum * used
        new_var = (1 - momentum) * var + momentum * spread * count / (count - 1)
    rstd = 1 / (spread + eps).sqrt()
    y = (a - used[:, None]) * (rstd * wide(gamma))[:, None] + wide(beta)[:, None]
    shape = (x.shape[1], x.shape[0], *x.shape[2:])
    return y.reshape(shape).movedim(0, 1).contiguous().to(x.dtype), new_mean, new_var, used * 1, rstd


def batch_norm_of_torch(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, *, training: float, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """Call torch's own batch norm, on copies of the running statistics."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    new_mean, new_var = mean.clone(), var.clone()
    parameters = (wide(gamma), wide(beta), new_mean, new_var)
    y, used, rstd = torch.native_batch_norm(wide(x), *parameters, bool(training), momentum, eps)
    if not training:
        used, rstd = mean * 1, (var + eps).rsqrt()
    return y.to(x.dtype), new_mean, new_var, used, rstd


def group_norm_swish(
    x: Tensor, gamma: Tensor, beta: Tensor, *, num_groups: float, eps: float, activate_swish: float, swish_scale: float
) -> tuple[Tensor, ...]:
    """Normalise groups of channels of each image (arXiv 1803.08494), then y * sigmoid(swish_scale * y) if asked for."""
    a = wide(x).reshape(x.shape[0], int(num_groups), -1)
    mean = a.mean(dim=2, keepdim=True)
    rstd = 1 / ((a - mean).square().mean(dim=2, keepdim=True) + eps).sqrt()
    each = (-1, *(1,) * (x.dim() - 2))
    y = ((a - mean) * rstd).reshape(x.shape) * wide(gamma).reshape(each) + wide(beta).reshape(each)
    y = y / (1 + (-swish_scale * y).exp()) if activate_swish else y
    return y.to(x.dtype), mean[:, :, 0], rstd[:, :, 0]


def group_norm_swish_of_torch(
    x: Tensor, gamma: Tensor, beta: Tensor, *, num_groups: float, eps: float, activate_swish: float, swish_scale: float
) -> tuple[Tensor, ...]:
    """Call torch's own group norm and sigmoid."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    n, c = x.shape[:2]
    each, groups = x.numel() // (n * c), int(num_groups)
    call = torch.ops.aten.native_group_norm
    y, mean, rstd = call(wide(x).contiguous(), wide(gamma), wide(beta), n, c, each, groups, eps)
    y = y * (swish_scale * y).sigmoid() if activate_swish else y
    return y.to(x.dtype), mean, rstd


def _images(rng: Generator) -> Mapping[str, TensorSpec]:
    return {
        "prime": TensorSpec((3, 4 * odd(rng, 1, 5), prime(rng, 3, 20), prime(rng, 3, 20))),
        "flat": TensorSpec((odd(rng, 30, 90), 4 * odd(rng, 3, 20))),
        "line": TensorSpec((2, 8, odd(rng, 100, 900))),
        "long": TensorSpec((1, 4, odd(rng, 10_000, 20_000))),
        "many": TensorSpec((odd(rng, 3, 9), 4 * odd(rng, 20, 60), 2)),
        "padded": padded((2, 4, 5, prime(rng, 3, 20))),
    }


IMAGES: Shapes[TensorSpec] = Shapes(
    {"image": TensorSpec((4, 32, 32, 32)), "deep": TensorSpec((8, 256, 8, 8))},
    {
        "tail": TensorSpec((2, 4, 5, 7)),
        "flat": TensorSpec((20, 16)),
        "line": TensorSpec((3, 8, 33)),
        "small": TensorSpec((2, 4, 3)),
        "sliced": padded((2, 8, 4, 9)),
    },
    _images,
)


def _batch_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    each = (first.shape[1],)
    given = (TensorSpec(each, dtype), TensorSpec(each, dtype), TensorSpec(each), TensorSpec(each, values="positive"))
    return like(first, dtype), *given


def _batch_outputs(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    return TensorSpec(x.shape, x.dtype), *(TensorSpec((x.shape[1],)),) * 4


def _group_inputs(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    each = (first.shape[1],)
    return like(first, dtype), TensorSpec(each, dtype), TensorSpec(each, dtype)


def _group_outputs(case: Case) -> tuple[TensorSpec, ...]:
    x = case.inputs[0]
    statistic = TensorSpec((x.shape[0], int(case.attributes["num_groups"])))
    return TensorSpec(x.shape, x.dtype), statistic, statistic


def _channel(case: Case) -> int:
    return case.inputs[0].elements // case.inputs[0].shape[1]


def _group(case: Case) -> int:
    return case.inputs[0].elements // (case.inputs[0].shape[0] * int(case.attributes["num_groups"]))


def _grouped(groups: int, swish: int, scale: float) -> Attributes:
    return {"num_groups": groups, "eps": 1e-5, "activate_swish": swish, "swish_scale": scale}


OPERATORS = (
    planned(
        "BatchNormV3", batch_norm, baseline=batch_norm_of_torch, expert=beside(__file__, "batch_norm.cpp"),
        summary=("y = (x - mean) * rstd * gamma + beta for each channel (axis 1), rstd = 1 / sqrt(variance + eps), "
                 "of the "
                 "batch in training, else the running ones; inputs x, gamma, beta, running mean, running variance "
                 "(float32); outputs y, both running ones moved by momentum, mean, rstd."),
        shapes=IMAGES, inputs=_batch_inputs, outputs=_batch_outputs, dtypes=_FLOATS, accumulation=_channel,
        variants={"": {"training": 1, "momentum": 0.1, "eps": 1e-5}, "given": {"training": 0, "momentum": 0.1,
        "eps": 1e-5}},
        traps=(_MEAN, "The running variance takes the unbiased one (n - 1), the norm the biased one (n).",
               "Outside training the running statistics are passed on as they are."),
        full=dense_full(((1, 2, 4), "float32"), ((32, 64, 56, 56), "float32"), ((8, 16, 16, 16), "float16")),
        conditions=("A channel has at least two elements.", "The running variance is at least 2^-6."),
    ),
    planned(
        "GroupNormSwish", group_norm_swish, baseline=group_norm_swish_of_torch,
        expert=beside(__file__, "group_norm_swish.cpp"),
        summary=("y = (x - mean) * rstd * gamma + beta, mean and rstd over each of num_groups groups of channels "
                 "(axis 1) "
                 "of each image; with activate_swish, out = y * sigmoid(swish_scale * y); outputs out, mean, rstd "
                 "(float32 [n, groups]); inputs x, gamma, beta."),
        shapes=IMAGES, inputs=_group_inputs, outputs=_group_outputs, dtypes=_FLOATS, accumulation=_group,
        variants={"": _grouped(4, 1, 1.0), "plain": _grouped(2, 0, 1.0), "scaled": _grouped(4, 1, 2.0)},
        traps=(_MEAN, "gamma and beta belong to channels, the statistics to groups of them.",
               "exp(-y) overflows for y far below 0; the answer there is 0."),
        full=dense_full(((1, 32, 10, 10), "float32"), ((16, 320, 32, 32), "float16", "scaled"), ((200, 128),
        "float16")),
    ),
)  # fmt: skip
