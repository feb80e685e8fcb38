"""Attention under a mask, its softmax kept for a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime
from device.operators.fused.attention import HALF, SHIFT, SINGLE
from device.operators.fused.forms import Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    """Attend where mask is not set (key 0 always is seen); give each row's largest score and sum of weights as well."""
    hidden = mask.clone()
    hidden[:, 0] = False
    scores = (wide(q) @ wide(k).transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(hidden, -float("inf"))
    most = scores.amax(dim=-1, keepdim=True)
    weights = (scores - most).exp()
    total = weights.sum(dim=-1, keepdim=True)
    return ((weights @ wide(v) / total).to(q.dtype), most[..., 0], total[..., 0])


def masked_inputs(b: int, n: int, s: int, t: int, d: int) -> tuple[TensorSpec, ...]:
    """Describe b batches of n heads, s queries, t keys and one mask for all."""
    keys = TensorSpec((b, n, t, d), HALF)
    return (TensorSpec((b, n, s, d), HALF), keys, keys, TensorSpec((s, t), "bool"))


def masked_outputs(q: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    """Averages in q's type, largest scores and sums in float32."""
    rows = TensorSpec(q.shape[:-1])
    return (TensorSpec(q.shape, q.dtype), rows, rows)


def masked_hidden(rng: Generator) -> Table:
    """One query, one key, prime and long."""
    s, t, d = prime(rng, 5, 40), prime(rng, 17, 90), prime(rng, 11, 60)
    return {
        "one-query": (2, 2, 1, t, d),
        "one-key": (1, 3, s, 1, d),
        "prime": (1, 3, s, t, d),
        "batches": (3, 1, s, odd(rng, 5, 30), 8),
        "many-keys": (1, 1, 3, odd(rng, 1000, 3000), 16),
    }


OPERATORS = (
    fused(
        "FusionAttention",
        family="attention",
        summary=(
            "q [b, n, s, d], k and v [b, n, t, d] float16, mask bool [s, t] (set: not seen; key 0 is seen by all): "
            "out = softmax(q k^T / sqrt(d)) v, and float32 [b, n, s] the largest score of each row and the sum of "
            "exp(score - largest)."
        ),
        expert=beside(__file__, "fusion_attention.cpp"),
        reference=masked,
        baseline=masked,
        make=masked_inputs,
        outputs=masked_outputs,
        accumulation=lambda q, k, v, mask: q.shape[3] + k.shape[2],  # noqa: ARG005
        visible={
            "heads": (1, 4, 96, 96, 64),
            "batches": (4, 2, 48, 64, 64),
            "tail": (2, 3, 13, 37, 19),
            "one-query": (1, 2, 1, 65, 32),
        },
        hidden=masked_hidden,
        full=((1, 8, 4096, 4096, 128), (2, 16, 2048, 2048, 64)),
        traps=(
            SHIFT,
            SINGLE,
            "The largest score is that of the keys that are seen.",
            "A row whose first block is hidden starts with a maximum of minus infinity; no NaN may follow.",
        ),
        dtypes=(HALF, "bool", "float32"),
    ),
)
