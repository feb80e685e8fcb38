"""Latent attention with its projections, and the indexer that picks keys for sparse attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime
from device.operators.fused.attention import BRAIN, SHIFT, SINGLE, softmax_average
from device.operators.fused.forms import Sizes, Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def latent(
    q: Tensor, q_rope: Tensor, c: Tensor, k_rope: Tensor, to_key: Tensor, to_value: Tensor, *, scale: float
) -> tuple[Tensor, ...]:
    """Expand the latent rows into keys and values of each head, and attend causally.

    DeepSeek-V2 (arXiv 2405.04434), section 2.1, equations 9 to 19: a key is c to_key beside the shared rotary part.
    """
    steps, rows = q.shape[0], c.shape[0]
    out = q.new_empty((steps, q.shape[1], to_value.shape[2]))
    for h in range(q.shape[1]):
        keys, values = wide(c) @ wide(to_key[h]), wide(c) @ wide(to_value[h])
        scores = scale * (wide(q[:, h]) @ keys.T + wide(q_rope[:, h]) @ wide(k_rope).T)
        late = scores.new_ones(scores.shape).triu(rows - steps + 1).bool()
        out[:, h] = softmax_average(scores.masked_fill(late, -float("inf")), values).to(q.dtype)
    return (out,)


def latent_of_torch(
    q: Tensor, q_rope: Tensor, c: Tensor, k_rope: Tensor, to_key: Tensor, to_value: Tensor, *, scale: float
) -> tuple[Tensor, ...]:
    """Project, concatenate and call torch's own attention under a mask; products in float32 as in the definition."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    keys, values = (wide(c) @ wide(weight) for weight in (to_key, to_value))
    turned = wide(k_rope).expand(len(keys), *k_rope.shape)
    query = wide(torch.cat((q, q_rope), dim=-1)).transpose(0, 1)
    seen = torch.ones(q.shape[0], c.shape[0], dtype=torch.bool).tril(c.shape[0] - q.shape[0])
    out = functional.scaled_dot_product_attention(query, torch.cat((keys, turned), -1), values, seen, scale=scale)
    return (out.transpose(0, 1).to(q.dtype).contiguous(),)


def latent_inputs(s: int, h: int, t: int, r: int, dn: int, dr: int, dv: int) -> tuple[TensorSpec, ...]:
    """Describe s queries of h heads, t latent rows of r numbers, widths of the plain, rotary and value parts."""
    shapes = ((s, h, dn), (s, h, dr), (t, r), (t, dr), (h, r, dn), (h, r, dv))
    return tuple(TensorSpec(shape, BRAIN) for shape in shapes)


def _scale(sizes: Sizes) -> dict[str, float]:
    _, _, _, r, dn, dr, _ = sizes
    return {"scale": round(1 / (r**0.5 * (dn + dr) ** 0.5), 6)}


def latent_hidden(rng: Generator) -> Table:
    """One query, one latent number, prime widths."""
    r, d = prime(rng, 11, 60), prime(rng, 11, 40)
    return {
        "single": (1, 1, 1, 1, 1, 1, 1),
        "decode": (1, 4, prime(rng, 17, 90), r, d, 8, d),
        "nearly-square": (prime(rng, 11, 30), 2, 31, r, d, odd(rng, 3, 15), 16),
        "prime": (prime(rng, 5, 20), 3, prime(rng, 23, 60), r, d, 7, odd(rng, 9, 40)),
        "thin": (7, 2, 19, 1, 3, 1, 2),
    }


def indexer(q: Tensor, k: Tensor, weight: Tensor, *, k_best: float) -> tuple[Tensor, ...]:
    """Score each key by sum over heads of weight times max(0, q k), and name the best, the lower index among equals.

    The index score of DeepSeek sparse attention (DeepSeek-V3.2-Exp report, equation 1).
    """
    products = (wide(q) @ wide(k).T).clamp(min=0)
    scores = (wide(weight)[..., None] * products).sum(dim=1)
    values, indices = scores.sort(dim=-1, descending=True, stable=True)
    return (indices[:, : int(k_best)].int().contiguous(), values[:, : int(k_best)].contiguous())


def indexer_inputs(s: int, h: int, d: int, t: int, best: int) -> tuple[TensorSpec, ...]:
    """Describe s queries of h heads and t keys, whole numbers within -4 and 4."""
    del best
    return tuple(TensorSpec(shape, BRAIN, values="whole") for shape in ((s, h, d), (t, d), (s, h)))


def indexer_outputs(q: TensorSpec, *_: TensorSpec, k_best: float) -> tuple[TensorSpec, ...]:
    """Indices in int32 and scores in float32, both [s, k_best]."""
    shape = (q.shape[0], int(k_best))
    return (TensorSpec(shape, "int32"), TensorSpec(shape))


def indexer_hidden(rng: Generator) -> Table:
    """One key, all keys, ties in plenty."""
    t, d = prime(rng, 31, 200), prime(rng, 11, 60)
    return {
        "single": (1, 1, 1, 1, 1),
        "best-only": (prime(rng, 3, 30), 4, d, t, 1),
        "all": (3, 2, d, t, t),
        "prime": (prime(rng, 3, 20), 3, d, t, odd(rng, 5, 29)),
        "ties": (9, 2, 2, odd(rng, 200, 600), 20),
        "many-keys": (2, 3, 16, odd(rng, 1000, 3000), odd(rng, 100, 300)),
    }


OPERATORS = (
    fused(
        "MultiHeadLatentAttention",
        family="attention",
        summary=(
            "q [s, h, dn], q_rope [s, h, dr], c [t, r], k_rope [t, dr], to_key [h, r, dn], to_value [h, r, dv], "
            "bfloat16. For each head: keys = c to_key, values = c to_value, scores = scale (q keys^T + q_rope "
            "k_rope^T), query i sees rows 0 .. t - s + i, out [s, h, dv] = softmax(scores) values."
        ),
        expert=beside(__file__, "multi_head_latent_attention.cpp"),
        reference=latent,
        baseline=latent_of_torch,
        make=latent_inputs,
        outputs=lambda q, *rest, scale: (  # noqa: ARG005
            TensorSpec((*q.shape[:2], rest[-1].shape[2]), q.dtype),
        ),
        accumulation=lambda q, q_rope, c, *_: sum((q.shape[2], q_rope.shape[2], *c.shape)),
        visible={
            "prefill": (64, 4, 96, 128, 64, 32, 64),
            "decode": (4, 8, 256, 128, 64, 32, 64),
            "tail": (5, 3, 13, 19, 7, 3, 11),
            "square": (9, 2, 9, 16, 8, 4, 8),
        },
        hidden=latent_hidden,
        full=((2048, 128, 2048, 512, 128, 64, 128), (4, 128, 4096, 512, 128, 64, 128)),
        attributes=_scale,
        traps=(
            SHIFT,
            SINGLE,
            "The rotary part of a key is one for all heads.",
            "q to_key^T may be worked out once and the latent rows used as keys: the same sum in another order.",
            "The queries are the last s rows: what they see is shifted by t - s.",
        ),
        dtypes=(BRAIN,),
        conditions=("t is at least s.",),
    ),
    fused(
        "LightningIndexer",
        family="sort",
        summary=(
            "q [s, h, d], k [t, d], weight [s, h] bfloat16: score[i, j] = sum_h weight[i, h] max(0, q[i, h] k[j]); out "
            "int32 [s, k_best] the indices of the best keys, best first, the lower among equals, and float32 their "
            "scores."
        ),
        expert=beside(__file__, "lightning_indexer.cpp"),
        reference=indexer,
        baseline=indexer,
        make=indexer_inputs,
        outputs=indexer_outputs,
        accumulation=lambda q, *_: q.shape[1] * q.shape[2],
        visible={
            "few": (32, 8, 64, 512, 64),
            "long": (8, 8, 64, 2048, 128),
            "tail": (5, 3, 19, 37, 7),
            "one-query": (1, 4, 32, 65, 20),
        },
        hidden=indexer_hidden,
        full=((1, 64, 128, 16384, 2048), (128, 64, 128, 8192, 2048)),
        attributes=lambda sizes: {"k_best": sizes[4]},
        traps=(
            "Equal scores are common; the lower index comes first among them.",
            "A head's product is cut at 0 before it is weighted, and a weight may be negative.",
            "A start value of 0 hides keys of negative score.",
        ),
        dtypes=(BRAIN, "int32", "float32"),
        conditions=("Inputs are whole numbers within -4 and 4, so that scores are exact in float32.",),
    ),
)
