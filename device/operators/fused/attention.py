"""Attention over picked keys, over a paged cache, over ragged batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime
from device.operators.fused.forms import Sizes, Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

HALF, BRAIN = "float16", "bfloat16"
SHIFT = "exp overflows unless the largest score of the row is taken off first."
SINGLE = "Weights and sums are kept in float32; only the result is rounded."


def softmax_average(scores: Tensor, values: Tensor) -> Tensor:
    """Average the values by exp(scores), the row's maximum taken off first; minus infinity weighs nothing."""
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return (weights @ values) / weights.sum(dim=-1, keepdim=True)


def sparse(q: Tensor, k: Tensor, v: Tensor, picked: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """Let query i attend, with all heads, to the keys picked[i, :counts[i]] only."""
    out = q.new_empty(q.shape)
    for i, count in enumerate(counts.tolist()):
        rows = picked[i, :count].long()
        scores = wide(q[i]) @ wide(k[rows]).T / q.shape[-1] ** 0.5
        out[i] = softmax_average(scores, wide(v[rows])).to(q.dtype)
    return (out,)


def sparse_of_torch(q: Tensor, k: Tensor, v: Tensor, picked: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """Gather the keys of each query and call torch's own attention under a mask."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    rows = picked.long()
    seen = torch.arange(rows.shape[1]) < counts[:, None]
    out = functional.scaled_dot_product_attention(wide(q), wide(k)[rows], wide(v)[rows], attn_mask=seen[:, None])
    return (out.to(q.dtype),)


def sparse_inputs(s: int, h: int, d: int, t: int, p: int) -> tuple[TensorSpec, ...]:
    """Describe s queries of h heads, t keys, p picks for each query."""
    return (
        TensorSpec((s, h, d), HALF),
        TensorSpec((t, d), HALF),
        TensorSpec((t, d), HALF),
        TensorSpec((s, p), "int32", values="distinct", span=(0, t)),
        TensorSpec((s,), "int32", span=(1, p + 1)),
    )


def sparse_hidden(rng: Generator) -> Table:
    """One pick, all keys picked, prime and wide sizes."""
    t, d = prime(rng, 31, 90), prime(rng, 11, 60)
    return {
        "single": (1, 1, 1, 1, 1),
        "one-pick": (odd(rng, 3, 9), 3, d, t, 1),
        "all-picked": (3, 2, d, t, t),
        "prime": (prime(rng, 3, 20), 5, d, t, odd(rng, 5, 29)),
        "wide": (3, 4, odd(rng, 100, 300), t, 17),
        "many-keys": (5, 2, 16, odd(rng, 1000, 3000), odd(rng, 100, 300)),
    }


def paged(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Let each sequence's heads attend to its rows in the cache, found through its table; groups share a key head."""
    size, group = k.shape[1], q.shape[1] // k.shape[2]
    out = q.new_empty(q.shape)
    for i, length in enumerate(lengths.tolist()):
        places = [int(table[i, j // size]) * size + j % size for j in range(length)]
        keys, values = wide(k.flatten(0, 1)[places]), wide(v.flatten(0, 1)[places])
        for head in range(q.shape[1]):
            scores = keys[:, head // group] @ wide(q[i, head]) / q.shape[2] ** 0.5
            out[i, head] = softmax_average(scores[None], values[:, head // group])[0].to(q.dtype)
    return (out,)


def paged_of_torch(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Gather each sequence's blocks and call torch's own attention with grouped heads."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    outs = []
    for query, blocks, length in zip(q, table.long(), lengths.tolist(), strict=True):
        keys, values = (wide(cache[blocks]).flatten(0, 1)[:length].transpose(0, 1)[None] for cache in (k, v))
        outs.append(functional.scaled_dot_product_attention(wide(query)[None, :, None], keys, values, enable_gqa=True))
    return (torch.cat(outs)[:, :, 0].to(q.dtype),)


def paged_inputs(b: int, h: int, groups: int, d: int, blocks: int, size: int, columns: int) -> tuple[TensorSpec, ...]:
    """Describe b sequences of one query each, h heads in groups of h / groups, a cache and a table into it."""
    cache = TensorSpec((blocks, size, groups, d), HALF)
    return (
        TensorSpec((b, h, d), HALF),
        cache,
        cache,
        TensorSpec((b, columns), "int32", values="distinct", span=(0, blocks)),
        TensorSpec((b,), "int32", span=(1, columns * size + 1)),
    )


def paged_hidden(rng: Generator) -> Table:
    """Blocks of odd size, one group, as many groups as heads."""
    d = prime(rng, 11, 60)
    return {
        "single": (1, 1, 1, 1, 1, 1, 1),
        "one-group": (3, 6, 1, d, 9, 8, 4),
        "all-groups": (2, 5, 5, d, 11, 7, 5),
        "prime": (odd(rng, 1, 5), 6, 3, d, 17, prime(rng, 3, 13), 6),
        "blocks-of-one": (2, 4, 2, d, 40, 1, odd(rng, 9, 30)),
        "wide": (1, 4, 2, odd(rng, 100, 200), 8, 16, 3),
    }


def infer(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Let query i of a sequence see the keys up to lengths - s + i; heads of a group share keys."""
    batch, steps, heads, _ = q.shape
    group = heads // k.shape[2]
    out = q.new_empty(q.shape)
    for b in range(batch):
        for i in range(steps):
            seen = int(lengths[b]) - steps + i + 1
            for head in range(heads):
                scores = scale * (wide(k[b, :seen, head // group]) @ wide(q[b, i, head]))
                out[b, i, head] = softmax_average(scores[None], wide(v[b, :seen, head // group]))[0].to(q.dtype)
    return (out,)


def infer_of_torch(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Call torch's own attention under a mask for each batch, with grouped heads."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    steps = torch.arange(q.shape[1])
    last = lengths[:, None] - q.shape[1] + steps
    seen = torch.arange(k.shape[1]) <= last[..., None]
    out = functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), seen[:, None], scale=scale, enable_gqa=True
    )
    return (out.transpose(1, 2).contiguous(),)


def infer_inputs(b: int, s: int, h: int, groups: int, d: int, t: int) -> tuple[TensorSpec, ...]:
    """Describe b sequences of s queries and up to t keys."""
    keys = TensorSpec((b, t, groups, d), BRAIN)
    return (TensorSpec((b, s, h, d), BRAIN), keys, keys, TensorSpec((b,), "int64", span=(s, t + 1)))


def infer_hidden(rng: Generator) -> Table:
    """One query and several, as many queries as keys, odd widths."""
    d = prime(rng, 11, 40)
    return {
        "single": (1, 1, 1, 1, 1, 1),
        "decode": (odd(rng, 1, 5), 1, 4, 2, d, prime(rng, 11, 60)),
        "several": (2, 3, 4, 1, d, prime(rng, 11, 60)),
        "square": (1, 13, 2, 2, d, 13),
        "prime": (2, 5, 6, 3, odd(rng, 17, 60), prime(rng, 11, 40)),
    }


def like_first(q: TensorSpec, *_: TensorSpec, **__: float) -> tuple[TensorSpec, ...]:
    """One dense output of the first input's shape and type."""
    return (TensorSpec(q.shape, q.dtype),)


def _scale(sizes: Sizes) -> dict[str, float]:
    return {"scale": round(1.2 / sizes[4] ** 0.5, 6)}


OPERATORS = (
    fused(
        "SparseFlashAttention",
        family="attention",
        summary=(
            "q [s, h, d], k and v [t, d], picked int32 [s, p], counts int32 [s]: query i attends with all heads to "
            "the keys picked[i, :counts[i]] only; out = softmax(q k^T / sqrt(d)) v, float16."
        ),
        expert=beside(__file__, "sparse_flash_attention.cpp"),
        reference=sparse,
        baseline=sparse_of_torch,
        make=sparse_inputs,
        outputs=like_first,
        accumulation=lambda q, k, v, picked, counts: q.shape[2] + picked.shape[1],  # noqa: ARG005
        visible={
            "few": (32, 16, 64, 512, 64),
            "many": (16, 8, 128, 1024, 128),
            "tail": (5, 3, 19, 37, 7),
            "one-query": (1, 4, 32, 65, 20),
        },
        hidden=sparse_hidden,
        full=((1, 128, 512, 4096, 2048), (64, 64, 512, 8192, 2048)),
        traps=(
            SHIFT,
            SINGLE,
            "Picks behind counts[i] hold numbers of keys too; they weigh nothing.",
            "Picks come in no order.",
        ),
        dtypes=(HALF, "int32"),
        conditions=("Picks of a query differ and lie within [0, t); counts are at least 1.",),
    ),
    fused(
        "PagedFlashAttention",
        family="attention",
        summary=(
            "q [b, h, d], k and v [blocks, size, groups, d], table int32 [b, columns], lengths int32 [b]: row j of "
            "sequence i is place j % size of block table[i, j // size]; head n uses key head n // (h / groups); "
            "out = softmax(q k^T / sqrt(d)) v over lengths[i] rows, float16."
        ),
        expert=beside(__file__, "paged_flash_attention.cpp"),
        reference=paged,
        baseline=paged_of_torch,
        make=paged_inputs,
        outputs=like_first,
        accumulation=lambda q, k, v, table, lengths: q.shape[2] + table.shape[1] * k.shape[1],  # noqa: ARG005
        visible={
            "groups": (8, 8, 2, 64, 64, 16, 8),
            "long": (2, 8, 8, 64, 48, 16, 16),
            "tail": (3, 4, 2, 19, 9, 5, 3),
            "one": (1, 6, 1, 32, 4, 16, 2),
        },
        hidden=paged_hidden,
        full=((32, 32, 8, 128, 2048, 128, 32), (8, 64, 8, 128, 4096, 128, 256)),
        traps=(
            SHIFT,
            SINGLE,
            "Blocks lie in any order, and the last one of a sequence is only partly in use.",
            "Heads of one group share a key head; which is a division, not a remainder.",
        ),
        dtypes=(HALF, "int32"),
        conditions=("Lengths are at least 1; a table names each block at most once in a row.",),
    ),
    fused(
        "FusedInferAttentionScore",
        family="attention",
        summary=(
            "q [b, s, h, d], k and v [b, t, groups, d], lengths int64 [b]: query i of sequence b sees the keys "
            "0 .. lengths[b] - s + i; head n uses key head n // (h / groups); out = softmax(scale q k^T) v, bfloat16."
        ),
        expert=beside(__file__, "fused_infer_attention_score.cpp"),
        reference=infer,
        baseline=infer_of_torch,
        make=infer_inputs,
        outputs=like_first,
        accumulation=lambda q, k, v, lengths: q.shape[3] + k.shape[1],  # noqa: ARG005
        visible={
            "decode": (8, 1, 8, 2, 64, 256),
            "prefill": (1, 24, 4, 2, 64, 96),
            "tail": (2, 3, 4, 2, 19, 37),
            "square": (1, 9, 2, 1, 16, 9),
        },
        hidden=infer_hidden,
        full=((32, 1, 32, 8, 128, 4096), (1, 2048, 32, 8, 128, 2048)),
        attributes=_scale,
        traps=(
            SHIFT,
            SINGLE,
            "The queries are the last s rows of a sequence: what they see ends at lengths, not at t.",
            "Keys behind the length hold numbers; they weigh nothing.",
        ),
        dtypes=(BRAIN, "int64"),
        conditions=("Lengths lie within [s, t].",),
    ),
)
