"""Gradients: of attention, and a loss together with its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.forms import odd, prime
from device.operators.fused.attention import SHIFT
from device.operators.fused.forms import Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def attention_gradient(q: Tensor, k: Tensor, v: Tensor, d_out: Tensor) -> tuple[Tensor, ...]:
    """Give the gradients of sum(out * d_out), out = softmax(q k^T / sqrt(d)) v, for q, k and v.

    FlashAttention-2 (arXiv 2307.08691), section 2.2: dS = P (dP - rowsum(P dP)).
    """
    scale = q.shape[-1] ** -0.5
    scores = scale * (q @ k.transpose(-1, -2))
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    d_weights = d_out @ v.transpose(-1, -2)
    d_scores = weights * (d_weights - (weights * d_weights).sum(dim=-1, keepdim=True))
    return (
        scale * (d_scores @ k),
        scale * (d_scores.transpose(-1, -2) @ q),
        weights.transpose(-1, -2) @ d_out,
    )


def attention_gradient_magnitudes(q: Tensor, k: Tensor, v: Tensor, d_out: Tensor) -> tuple[Tensor, ...]:
    """Give the size of the terms in each gradient: P |dP| and P rowsum(P |dP|) cancel where one weight is nearly 1."""
    scale = q.shape[-1] ** -0.5
    weights = (scale * (q @ k.transpose(-1, -2))).softmax(dim=-1)
    d_weights = d_out.abs() @ v.abs().transpose(-1, -2)
    d_scores = weights * (d_weights + (weights * d_weights).sum(dim=-1, keepdim=True))
    return (
        scale * (d_scores @ k.abs()),
        scale * (d_scores.transpose(-1, -2) @ q.abs()),
        weights.transpose(-1, -2) @ d_out.abs(),
    )


def attention_gradient_of_torch(q: Tensor, k: Tensor, v: Tensor, d_out: Tensor) -> tuple[Tensor, ...]:
    """Let torch differentiate its own attention."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    with torch.enable_grad():
        query, key, value = (x.detach().requires_grad_() for x in (q, k, v))
        out = functional.scaled_dot_product_attention(query, key, value)
        return torch.autograd.grad(out, (query, key, value), d_out)


def attention_inputs(n: int, s: int, t: int, d: int) -> tuple[TensorSpec, ...]:
    """Describe n heads, s queries, t keys."""
    return (TensorSpec((n, s, d)), TensorSpec((n, t, d)), TensorSpec((n, t, d)), TensorSpec((n, s, d)))


def attention_hidden(rng: Generator) -> Table:
    """One query, prime and thin sizes."""
    s, t, d = prime(rng, 5, 40), prime(rng, 17, 60), prime(rng, 11, 40)
    return {
        "pair": (1, 1, 2, 1),
        "one-query": (2, 1, t, d),
        "prime": (3, s, t, d),
        "thin": (2, s, odd(rng, 3, 20), 1),
        "wide": (1, 5, t, odd(rng, 100, 200)),
    }


def cross_entropy(x: Tensor, target: Tensor, *, smoothing: float, factor: float) -> tuple[Tensor, ...]:
    """Give each row's cross-entropy with its smoothed target, and `factor` times its gradient for the row.

    The target puts 1 - smoothing on one class and smoothing / classes on all (Szegedy et al., arXiv 1512.00567).
    """
    classes = x.shape[1]
    shifted = x - x.amax(dim=1, keepdim=True)
    logs = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
    wanted = x.new_full(x.shape, smoothing / classes)
    wanted[range(len(x)), target] += 1 - smoothing
    return (-(wanted * logs).sum(dim=1), factor * (logs.exp() - wanted))


def cross_entropy_of_torch(x: Tensor, target: Tensor, *, smoothing: float, factor: float) -> tuple[Tensor, ...]:
    """Let torch differentiate its own loss."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        loss = functional.cross_entropy(leaf, target, reduction="none", label_smoothing=smoothing)
        (gradient,) = torch.autograd.grad(loss, leaf, torch.full_like(loss, factor))
    return (loss.detach(), gradient)


def loss_inputs(n: int, classes: int) -> tuple[TensorSpec, ...]:
    """Describe n rows of that many classes, and their targets."""
    return (TensorSpec((n, classes)), TensorSpec((n,), "int64", span=(0, classes)))


def loss_outputs(x: TensorSpec, *_: TensorSpec, **__: float) -> tuple[TensorSpec, ...]:
    """A loss for each row, and a gradient of the shape of x."""
    return (TensorSpec(x.shape[:1], x.dtype), TensorSpec(x.shape, x.dtype))


def loss_hidden(rng: Generator) -> Table:
    """Two classes, many, one row."""
    return {
        "two-classes": (odd(rng, 30, 300), 2),
        "one-row": (1, prime(rng, 100, 900)),
        "prime": (prime(rng, 5, 60), prime(rng, 31, 300)),
        "tail": (3, 64 * int(rng.integers(1, 9)) + 1),
        "many-classes": (2, odd(rng, 20_000, 40_000)),
    }


OPERATORS = (
    fused(
        "FlashAttentionGrad",
        family="attention",
        summary=(
            "q and d_out [n, s, d], k and v [n, t, d]: the gradients of sum(out * d_out) for q, k and v, where "
            "out = softmax(q k^T / sqrt(d)) v."
        ),
        expert=beside(__file__, "flash_attention_grad.cpp"),
        reference=attention_gradient,
        baseline=attention_gradient_of_torch,
        magnitudes=attention_gradient_magnitudes,
        make=attention_inputs,
        outputs=lambda q, k, v, d_out: tuple(TensorSpec(x.shape, x.dtype) for x in (q, k, v)),  # noqa: ARG005
        accumulation=lambda q, k, v, d_out: sum((*q.shape[1:], k.shape[1])),  # noqa: ARG005
        visible={
            "heads": (4, 96, 96, 64),
            "long": (1, 64, 384, 64),
            "tail": (2, 13, 37, 19),
            "one-query": (3, 1, 65, 32),
        },
        hidden=attention_hidden,
        full=((16, 2048, 2048, 128), (8, 4096, 4096, 64)),
        traps=(
            SHIFT,
            "The row sum of P dP is that over all keys, not over one block of them.",
            "dq sums over keys, dk and dv over queries: threads that share out one must not race on the others.",
            "The factor 1 / sqrt(d) comes once into dq and dk, and not into dv.",
        ),
        dtypes=("float32",),
    ),
    fused(
        "CrossEntropyLossWithGrad",
        family="reduction",
        summary=(
            "x [n, classes], target int64 [n]: loss[i] = -sum_j w_ij log softmax(x_i)_j with w = (1 - smoothing) at "
            "the target plus smoothing / classes at every class, and grad = factor (softmax(x) - w)."
        ),
        expert=beside(__file__, "cross_entropy_loss_with_grad.cpp"),
        reference=cross_entropy,
        baseline=cross_entropy_of_torch,
        make=loss_inputs,
        outputs=loss_outputs,
        accumulation=lambda x, target: x.shape[1],  # noqa: ARG005
        visible={"rows": (256, 1000), "many-classes": (16, 32000), "tail": (5, 131), "two-classes": (65, 2)},
        hidden=loss_hidden,
        full=((4096, 32000), (8192, 128256)),
        attributes=lambda sizes: {"smoothing": 0.1, "factor": round(1 / sizes[0], 6)},
        traps=(
            SHIFT,
            "The logarithm of a weight that underflows is minus infinity; the shifted score is not.",
            "One pass may keep a running maximum, which rescales the running sum.",
            "Smoothing puts a share on the target's own class as well.",
        ),
        dtypes=("float32", "int64"),
        conditions=("Targets lie within [0, classes).",),
    ),
)
