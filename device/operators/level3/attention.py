"""Scaled dot-product attention of one head."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import odd, padded, prime, swapped, tail

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Average the rows of v by softmax(q k^T / sqrt(d)) (Vaswani et al., arXiv 1706.03762, equation 1), row by row."""
    out = q.new_empty((q.shape[0], v.shape[1]))
    for i in range(q.shape[0]):
        scores = (k * q[i]).sum(dim=-1) / q.shape[1] ** 0.5
        weights = (scores - scores.amax()).exp()
        out[i] = (weights[:, None] * v).sum(dim=0) / weights.sum()
    return (out,)


def baseline(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own attention, as a batch of one with one head."""
    from torch.nn import functional  # noqa: PLC0415  (torch loads when a baseline runs)

    return (functional.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0],)


def scores(q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # noqa: ARG001  (the form of a stage)
    """Take q k^T / sqrt(d), [s, t]."""
    result: Tensor = q @ k.T / q.shape[1] ** 0.5
    return result


def maximum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Take the largest score of each query, [s]."""
    return scores(q, k, v).amax(dim=-1)


def exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Take exp(score - maximum), [s, t], before it is divided by the sum."""
    return (scores(q, k, v) - maximum(q, k, v)[:, None]).exp()


def row_sum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add each query's exponentials up, [s]."""
    return exponentials(q, k, v).sum(dim=-1)


def weighted(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Take exponentials times v, [s, d], before it is divided by the sum."""
    return exponentials(q, k, v) @ v


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [s, d] output; raises InvalidOperator when q [s, d], k [t, d] and v [t, d] do not fit."""
    q, k, v = case.inputs
    if any(len(spec.shape) != 2 for spec in case.inputs) or k.shape != v.shape or q.shape[1] != k.shape[1]:
        raise InvalidOperator(f"case {case.name}", f"{list(q.shape)}, {list(k.shape)}, {list(v.shape)} do not attend")
    return (TensorSpec(q.shape, q.dtype),)


def accumulation(case: Case) -> int:
    """Return d + t: a weight sums d products, an output element t weighted values."""
    q, k, _ = case.inputs
    return q.shape[1] + k.shape[0]


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """One query, one key, thin and prime heads, tails, many keys, views."""
    s, t, d = prime(rng, 5, 100), prime(rng, 17, 200), prime(rng, 11, 100)
    sizes: dict[str, tuple[int, int, int]] = {
        "single": (1, 1, 1),
        "one-query": (1, t, d),
        "one-key": (s, 1, d),
        "one-wide": (s, t, 1),
        "prime": (s, t, d),
        "tail": (tail(rng, 12, 1, 9), tail(rng, 32, 1, 8), tail(rng, 16, 1, 6)),
        "many-keys": (odd(rng, 3, 9), odd(rng, 5_000, 12_000), odd(rng, 9, 33)),
        "swapped": (s, t, d),
        "padded": (s, t, d),
    }
    cases = []
    for name, (queries, keys, width) in sizes.items():
        make = {"swapped": swapped, "padded": padded}.get(name, TensorSpec)
        cases.append(Case(name, _inputs(queries, keys, width, make), hidden=True))
    return tuple(cases)


def _inputs(
    queries: int, keys: int, width: int, make: Callable[[tuple[int, ...]], TensorSpec] = TensorSpec
) -> tuple[TensorSpec, ...]:
    return (make((queries, width)), make((keys, width)), make((keys, width)))


OPERATORS = (
    Operator(
        name="attention",
        level=3,
        family="attention",
        summary=(
            "out = softmax(q k^T / sqrt(d)) v, softmax along the keys, no mask. "
            "q is [s, d], k is [t, d], v is [t, d], out is [s, d]."
        ),
        cases=(
            Case("square", _inputs(256, 256, 64), timed=True),
            Case("many-keys", _inputs(64, 2048, 64), timed=True),
            Case("tail", _inputs(13, 37, 19)),
            Case("one-query", _inputs(1, 65, 32)),
            Case("one-key", _inputs(7, 1, 16)),
            Case("transposed", _inputs(21, 30, 24, swapped)),
            Case("sliced", _inputs(21, 30, 24, padded)),
        ),
        reference=reference,
        baseline=baseline,
        stages={
            "scores": scores,
            "maximum": maximum,
            "exponentials": exponentials,
            "sum": row_sum,
            "weighted": weighted,
        },
        outputs=outputs,
        hidden_cases=hidden_cases,
        accumulation=accumulation,
        expert_file=beside(__file__, "attention.cpp"),
        traps=(
            "The scores are divided by sqrt(d) before the softmax, and d is the width, not the number of keys.",
            "exp overflows unless the largest score of the row is taken off, also when scores come block by block.",
            "A running maximum that grows must rescale both the sum and the output gathered so far.",
            "The number of queries and of keys differ; the tail of the keys must not add weight.",
        ),
    ),
)
