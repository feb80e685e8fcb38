"""Attention over wide heads, and over a paged cache of latent keys that are values as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_SHIFT = "exp overflows unless the largest score of the row is taken off first."


def flash_attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Average the rows of v by softmax(scale q k^T) (Vaswani et al., arXiv 1706.03762, equation 1), for each batch."""
    scores = scale * (wide(q) @ wide(k).transpose(-1, -2))
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return (((weights @ wide(v)) / weights.sum(dim=-1, keepdim=True)).to(q.dtype),)


def attention_of_torch(q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> tuple[Tensor, ...]:
    """Call torch's own attention."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], scale=scale)[:, 0],)


def attention_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of q's shape; raises InvalidOperator when q [b, s, d], k and v [b, t, d] do not fit."""
    q, k, v = case.inputs
    if k.shape != v.shape or q.shape[0] != k.shape[0] or q.shape[2] != k.shape[2]:
        raise InvalidOperator(f"case {case.name}", f"{list(q.shape)}, {list(k.shape)}, {list(v.shape)} do not attend")
    return (TensorSpec(q.shape, q.dtype),)


def attention_sum(case: Case) -> int:
    """Return d + t: a score sums d products, an output element t weighted values."""
    return case.inputs[0].shape[2] + case.inputs[1].shape[1]


def _attention_case(
    name: str, batch: int, s: int, t: int, d: int, scale: float, *, timed: bool = False, hidden: bool = False
) -> Case:
    shapes = ((batch, s, d), (batch, t, d), (batch, t, d))
    return Case(name, tuple(TensorSpec(shape, "float16") for shape in shapes), {"scale": scale}, timed, hidden)


def attention_hidden(rng: Generator) -> tuple[Case, ...]:
    """One query, one key, thin, prime and wide heads."""
    s, t, d = prime(rng, 5, 60), prime(rng, 17, 120), prime(rng, 11, 100)
    return (
        _attention_case("single", 1, 1, 1, 1, 1.0, hidden=True),
        _attention_case("one-query", 2, 1, t, d, 0.1, hidden=True),
        _attention_case("one-key", 2, s, 1, d, 0.1, hidden=True),
        _attention_case("prime", 3, s, t, d, 0.125, hidden=True),
        _attention_case("wide", 1, odd(rng, 3, 9), t, odd(rng, 500, 900), 0.04, hidden=True),
        _attention_case("many-keys", 1, 3, odd(rng, 1000, 3000), odd(rng, 9, 33), 0.2, hidden=True),
    )


def mla(
    q: Tensor, q_rope: Tensor, cache: Tensor, cache_rope: Tensor, table: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Let each query head attend to its sequence's latent rows, which are keys (with a rotary part) and values.

    Weights are softmax((q c^T + q_rope r^T) / sqrt(d + d_rope)), latent attention in its absorbed form (DeepSeek-V2,
    arXiv 2405.04434, section 2.1); row j of sequence i lies in block table[i, j // size], place j % size.
    """
    size, width = cache.shape[1], cache.shape[-1]
    steps = q.shape[0] // table.shape[0]
    out = q.new_empty(q.shape)
    for i, length in enumerate(lengths.tolist()):
        places = [int(table[i, j // size]) * size + j % size for j in range(length)]
        rows = wide(cache.reshape(-1, width)[places])
        turned = wide(cache_rope.reshape(-1, cache_rope.shape[-1])[places])
        part = slice(i * steps, (i + 1) * steps)
        scores = wide(q[part]) @ rows.T + wide(q_rope[part]) @ turned.T
        scores = scores / (width + cache_rope.shape[-1]) ** 0.5
        out[part] = (scores.softmax(dim=-1) @ rows).to(q.dtype)
    return (out,)


def mla_of_torch(
    q: Tensor, q_rope: Tensor, cache: Tensor, cache_rope: Tensor, table: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Gather each sequence's blocks and call torch's own attention in float32."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)
    from torch.nn import functional  # noqa: PLC0415

    outs = []
    parts = zip(q.tensor_split(len(table)), q_rope.tensor_split(len(table)), table, lengths.tolist(), strict=True)
    for nope, rope, blocks, length in parts:
        value = wide(cache[blocks.long()].flatten(0, 1)[:length, 0])
        key = torch.cat((value, wide(cache_rope[blocks.long()].flatten(0, 1)[:length, 0])), dim=-1)
        query = wide(torch.cat((nope, rope), dim=-1)).flatten(0, 1)
        out = functional.scaled_dot_product_attention(query[None], key[None], value[None])[0]
        outs.append(out.reshape(nope.shape).to(q.dtype))
    return (torch.cat(outs),)


def mla_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of q's shape."""
    return (TensorSpec(case.inputs[0].shape, case.inputs[0].dtype),)


def mla_sum(case: Case) -> int:
    """Return the width of a key and the number of rows that a table can name."""
    q, q_rope, cache, _, table, _ = case.inputs
    return q.shape[2] + q_rope.shape[2] + table.shape[1] * cache.shape[1]


def _mla_case(
    name: str,
    sequences: tuple[int, int, int],
    heads: tuple[int, int, int],
    blocks: tuple[int, int],
    dtype: str,
    *,
    timed: bool = False,
    hidden: bool = False,
) -> Case:
    """Make a case of (batch, queries a sequence, longest), (heads, width, rotary width), (blocks, rows a block)."""
    (batch, steps, longest), (count, width, turned), (number, size) = sequences, heads, blocks
    columns = -(-longest // size)
    inputs = (
        TensorSpec((batch * steps, count, width), dtype),
        TensorSpec((batch * steps, count, turned), dtype),
        TensorSpec((number, size, 1, width), dtype),
        TensorSpec((number, size, 1, turned), dtype),
        TensorSpec((batch, columns), "int32", values="distinct", span=(0, number)),
        TensorSpec((batch,), "int32", span=(1, longest + 1)),
    )
    return Case(name, inputs, {}, timed, hidden)


def mla_hidden(rng: Generator) -> tuple[Case, ...]:
    """One head and many, blocks of odd size, tables in any order, both types."""
    width, turned, longest = prime(rng, 11, 60), odd(rng, 3, 20), odd(rng, 17, 60)
    half, brain = "float16", "bfloat16"
    return (
        _mla_case("single", (1, 1, 1), (1, 1, 1), (1, 1), half, hidden=True),
        _mla_case("one-head", (3, 1, longest), (1, width, turned), (20, 8), half, hidden=True),
        _mla_case("prime", (2, 2, longest), (5, width, turned), (17, 7), brain, hidden=True),
        _mla_case("several-queries", (2, 4, longest), (3, width, turned), (16, 16), half, hidden=True),
        _mla_case("wide", (1, 1, 33), (4, 512, 64), (4, 16), brain, hidden=True),
    )


_MLA_FULL = (
    ((2, 1, 2), (128, 512, 64), (16, 128), "float16"), ((2, 2, 64), (16, 512, 64), (48, 128), "bfloat16"),
    ((2, 1, 24), (8, 512, 64), (16, 128), "float16"), ((4, 1, 16), (128, 512, 64), (32, 128), "bfloat16"),
    ((8, 1, 32), (1, 512, 64), (16, 128), "float16"), ((1, 2, 128), (32, 512, 64), (16, 128), "float16"),
)  # fmt: skip
_FLASH_FULL = (
    (2, 2048, 2048, 1024, 0.0625), (1, 4096, 4096, 512, 0.875), (1, 2048, 2048, 1024, 0.0625),
    (2, 4096, 4096, 256, 1.0), (1, 2048, 2048, 512, 0.5),
)  # fmt: skip

OPERATORS = (
    Operator(
        name="FlashAttentionScoreWithLargeHeadDim",
        level=3,
        family="attention",
        summary="out = softmax(scale q k^T) v for each batch; q [b, s, d], k and v [b, t, d] float16, d large.",
        cases=(
            _attention_case("square", 1, 128, 128, 256, 0.0625, timed=True),
            _attention_case("batches", 2, 64, 128, 128, 0.0625, timed=True),
            _attention_case("tail", 2, 13, 37, 19, 0.25),
            _attention_case("one-query", 1, 1, 65, 32, 0.125),
            _attention_case("one-key", 2, 7, 1, 16, 0.5),
        ),
        full_cases=tuple(_attention_case(f"full-{i}", *sizes) for i, sizes in enumerate(_FLASH_FULL)),
        reference=flash_attention,
        baseline=attention_of_torch,
        outputs=attention_outputs,
        hidden_cases=attention_hidden,
        accumulation=attention_sum,
        dtypes=("float16",),
        attributes=("scale",),
        expert_file=beside(__file__, "flash_attention.cpp"),
        traps=(
            _SHIFT,
            "A running maximum that grows must rescale both the sum and the output gathered so far.",
            "Weights are kept in float32; rounded to half precision they lose what a sum of many keys needs.",
            "The scale is an attribute; it is not always 1 / sqrt(d).",
        ),
    ),
    Operator(
        name="Mla",
        level=3,
        family="attention",
        summary=(
            "Decoding over a paged latent cache: q [b s, h, d], q_rope [b s, h, r], cache [blocks, size, 1, d], "
            "cache_rope [blocks, size, 1, r], table int32 [b, columns], lengths int32 [b]. Row j of sequence i is "
            "place j % size of block table[i, j // size]; its d numbers are value and key, with its r rotary ones. "
            "out = softmax((q c^T + q_rope r^T) / sqrt(d + r)) c over the first lengths[i] rows, half precision."
        ),
        cases=(
            _mla_case("heads", (2, 1, 64), (16, 256, 32), (12, 16), "float16", timed=True),
            _mla_case("queries", (4, 2, 96), (8, 128, 32), (32, 16), "bfloat16", timed=True),
            _mla_case("tail", (2, 1, 5), (3, 19, 7), (6, 4), "float16"),
            _mla_case("one-head", (3, 1, 24), (1, 64, 16), (10, 8), "bfloat16"),
        ),
        full_cases=tuple(_mla_case(f"full-{i}", *sizes) for i, sizes in enumerate(_MLA_FULL)),
        reference=mla,
        baseline=mla_of_torch,
        outputs=mla_outputs,
        hidden_cases=mla_hidden,
        accumulation=mla_sum,
        dtypes=("float16", "bfloat16", "int32"),
        expert_file=beside(__file__, "mla.cpp"),
        traps=(
            _SHIFT,
            "Blocks lie in any order, and the last one of a sequence is only partly in use.",
            "The scores are divided by the root of the whole width, d + r.",
            "All heads share one row of the cache: read it once for all of them.",
        ),
        conditions=("Lengths are at least 1; a table names each block at most once in a row.",),
    ),
)
