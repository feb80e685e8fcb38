"""Mixtures of experts: gate, sort tokens by expert, put their results back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, prime
from device.operators.fused.attention import SHIFT
from device.operators.fused.forms import Sizes, Table, fused

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

HALF = "float16"


def gate(x: Tensor, *, k: float, factor: float) -> tuple[Tensor, ...]:
    """Name each token's k largest logits, best first, with their softmax weights scaled to sum to `factor`."""
    values, experts = x.sort(dim=-1, descending=True)
    best = values[:, : int(k)]
    # The denominator of the softmax over all experts is common to the weights and cancels.
    weights = (best - best[:, :1]).exp()
    return (factor * weights / weights.sum(dim=-1, keepdim=True), experts[:, : int(k)].int().contiguous())


def gate_of_torch(x: Tensor, *, k: float, factor: float) -> tuple[Tensor, ...]:
    """Call torch's own softmax and topk."""
    weights, experts = x.softmax(dim=-1).topk(int(k), dim=-1)
    best = x.topk(int(k), dim=-1).indices  # weights that underflow are equal; logits are not
    return (factor * weights / weights.sum(dim=-1, keepdim=True), best.to(experts.dtype).int())


def gate_inputs(t: int, experts: int, k: int) -> tuple[TensorSpec, ...]:
    """Describe t tokens' logits, no two of a token equal."""
    del k
    return (TensorSpec((t, experts), values="distinct"),)


def gate_outputs(x: TensorSpec, *, k: float, factor: float) -> tuple[TensorSpec, ...]:
    """Weights and int32 experts, both [tokens, k]."""
    del factor
    shape = (x.shape[0], int(k))
    return (TensorSpec(shape), TensorSpec(shape, "int32"))


def gate_hidden(rng: Generator) -> Table:
    """One expert of many, all, odd numbers of experts."""
    experts = prime(rng, 11, 90)
    return {
        "one-best": (odd(rng, 30, 200), experts, 1),
        "all": (prime(rng, 3, 20), 7, 7),
        "prime": (prime(rng, 5, 60), experts, 5),
        "one-token": (1, odd(rng, 100, 300), 8),
        "pair": (odd(rng, 300, 900), 2, 2),
    }


def scatter_tokens(x: Tensor, experts: Tensor, *, count: float) -> tuple[Tensor, ...]:
    """Copy tokens in the order of their experts, equal ones as they come; say where each went, where experts end."""
    flat = experts.flatten()
    order = flat.argsort(stable=True)
    places = order.argsort().int()
    ends = (flat[:, None] <= flat.new_tensor(range(int(count)))).sum(dim=0)
    return (x[order // experts.shape[1]], places.reshape(experts.shape), ends)


def scatter_of_torch(x: Tensor, experts: Tensor, *, count: float) -> tuple[Tensor, ...]:
    """Sort, index and count with torch's own calls."""
    flat = experts.flatten()
    order = flat.argsort(stable=True)
    places = order.new_empty(order.shape).int()
    places[order] = places.new_tensor(range(len(order)))
    ends = flat.bincount(minlength=int(count)).cumsum(0)
    return (x.index_select(0, order // experts.shape[1]), places.reshape(experts.shape), ends)


def scatter_inputs(t: int, d: int, k: int, count: int) -> tuple[TensorSpec, ...]:
    """Describe t tokens of d numbers, each going to k of `count` experts."""
    return (TensorSpec((t, d), HALF), TensorSpec((t, k), "int32", span=(0, count)))


def scatter_outputs(x: TensorSpec, experts: TensorSpec, *, count: float) -> tuple[TensorSpec, ...]:
    """Rows [t k, d], int32 places [t, k], int64 ends [count]."""
    return (
        TensorSpec((experts.elements, x.shape[1]), x.dtype),
        TensorSpec(experts.shape, "int32"),
        TensorSpec((int(count),), "int64"),
    )


def scatter_hidden(rng: Generator) -> Table:
    """Few tokens and many experts, and the other way round."""
    d = prime(rng, 11, 90)
    return {
        "pair": (1, d, 2, 3),
        "more-experts": (3, d, 2, odd(rng, 31, 90)),
        "prime": (prime(rng, 31, 90), d, 3, prime(rng, 5, 23)),
        "one-each": (odd(rng, 100, 300), 8, 1, 4),
        "thin": (odd(rng, 30, 90), 1, 4, 6),
    }


def combine(y: Tensor, places: Tensor, weights: Tensor, shared: Tensor) -> tuple[Tensor, ...]:
    """Add to each token's shared row its k rows of y, found by their places, weighted."""
    tokens, k = weights.shape
    rows = wide(y)[places.long()].reshape(tokens, k, y.shape[1])
    return ((wide(shared) + (weights[..., None] * rows).sum(dim=1)).to(y.dtype),)


def combine_inputs(t: int, d: int, k: int) -> tuple[TensorSpec, ...]:
    """Describe t tokens of d numbers with k rows each; places are a permutation."""
    return (
        TensorSpec((t * k, d), HALF),
        TensorSpec((t * k,), "int32", values="distinct", span=(0, t * k)),
        TensorSpec((t, k)),
        TensorSpec((t, d), HALF),
    )


def combine_hidden(rng: Generator) -> Table:
    """One row a token and many."""
    d = prime(rng, 11, 90)
    return {
        "single": (1, 1, 1),
        "one-each": (odd(rng, 30, 200), d, 1),
        "prime": (prime(rng, 11, 60), d, 3),
        "many": (5, odd(rng, 100, 300), 17),
        "thin": (odd(rng, 100, 300), 1, 4),
    }


def _gate_attributes(sizes: Sizes) -> dict[str, float]:
    return {"k": sizes[2], "factor": 2.5}


OPERATORS = (
    fused(
        "MoeGatingTopK",
        family="sort",
        summary=(
            "x [tokens, experts]: the k largest logits of each token, best first: float32 weights = factor softmax(x) "
            "at them, divided by their sum, and int32 experts."
        ),
        expert=beside(__file__, "moe_gating_top_k.cpp"),
        reference=gate,
        baseline=gate_of_torch,
        make=gate_inputs,
        outputs=gate_outputs,
        accumulation=lambda x: x.shape[1],
        visible={"many": (512, 256, 8), "few": (4096, 16, 2), "tail": (5, 131, 4), "pair": (65, 2, 1)},
        hidden=gate_hidden,
        full=((4096, 256, 8), (16384, 64, 6)),
        attributes=_gate_attributes,
        traps=(
            SHIFT,
            "Experts are picked by logit: softmax weights that underflow to 0 have no order.",
            "The weights are divided by the sum of the picked ones, then scaled.",
        ),
        dtypes=("float32", "int32"),
        conditions=("No two logits of a token are equal.",),
    ),
    fused(
        "MoeInitRouting",
        family="index",
        summary=(
            "x float16 [t, d], experts int32 [t, k]: the t k pairs sorted by expert, equal ones in their order; out "
            "rows [t k, d] = x of each pair's token, places int32 [t, k] = where each pair went, ends int64 [count] = "
            "where each expert's rows end."
        ),
        expert=beside(__file__, "moe_init_routing.cpp"),
        reference=scatter_tokens,
        baseline=scatter_of_torch,
        make=scatter_inputs,
        outputs=scatter_outputs,
        accumulation=lambda x, experts: 1,  # noqa: ARG005
        visible={
            "many": (512, 256, 4, 64),
            "few": (1024, 64, 2, 8),
            "tail": (13, 37, 3, 5),
            "one-token": (1, 30, 6, 4),
        },
        hidden=scatter_hidden,
        full=((4096, 7168, 8, 256), (16384, 2048, 6, 64)),
        attributes=lambda sizes: {"count": sizes[3]},
        traps=(
            "The sort is stable: pairs of one expert keep their order.",
            "An expert without tokens ends where the one before it does.",
        ),
        dtypes=(HALF, "int32", "int64"),
        conditions=("Experts lie within [0, count).",),
    ),
    fused(
        "MoeFinalizeRouting",
        family="index",
        summary=(
            "y float16 [t k, d], places int32 [t k] (a permutation), weights float32 [t, k], shared float16 [t, d]: "
            "out[i] = shared[i] + sum_j weights[i, j] y[places[i k + j]]."
        ),
        expert=beside(__file__, "moe_finalize_routing.cpp"),
        reference=combine,
        baseline=combine,
        make=combine_inputs,
        outputs=lambda y, places, weights, shared: (TensorSpec(shared.shape, y.dtype),),  # noqa: ARG005
        accumulation=lambda y, places, weights, shared: weights.shape[1] + 1,  # noqa: ARG005
        visible={"many": (512, 256, 4), "wide": (64, 2048, 8), "tail": (13, 37, 3), "one-token": (1, 30, 6)},
        hidden=combine_hidden,
        full=((4096, 7168, 8), (16384, 2048, 6)),
        traps=(
            "The sum is gathered in float32 and rounded once.",
            "A place says where a token's row lies, not which token lies there.",
        ),
        dtypes=(HALF, "int32", "float32"),
    ),
)
