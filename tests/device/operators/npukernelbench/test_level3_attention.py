"""Level 3, attention and selection: against numpy loops, by hand, and by their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.device.operators.references import agree, reference


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def by_hand_mla(q, q_rope, cache, cache_rope, table, lengths):
    out = np.empty_like(q)
    size, steps = cache.shape[1], len(q) // len(table)
    for token in range(len(q)):
        i = token // steps
        flat = [(table[i, j // size], j % size) for j in range(lengths[i])]
        values = np.array([cache[block, row, 0] for block, row in flat])
        keys = np.hstack([values, np.array([cache_rope[block, row, 0] for block, row in flat])])
        for head in range(q.shape[1]):
            scores = keys @ np.concatenate([q[token, head], q_rope[token, head]]) / math.sqrt(keys.shape[1])
            out[token, head] = softmax(scores) @ values
    return out


def by_hand_top(x, k, dim, largest):
    x = np.moveaxis(x, int(dim), -1)
    order = np.argsort(-x if largest else x, axis=-1)[..., : int(k)]
    values = np.take_along_axis(x, order, axis=-1)
    return np.moveaxis(values, -1, int(dim)), np.moveaxis(order, -1, int(dim))


BY_HAND = {
    "FlashAttentionScoreWithLargeHeadDim": lambda q, k, v, scale: np.einsum(
        "bst,btd->bsd", softmax(scale * np.einsum("bsd,btd->bst", q, k)), v
    ),
    "Mla": by_hand_mla,
    "TopKV3": by_hand_top,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-10."""
    agree(name, BY_HAND[name])


def test_attention_of_equal_keys_averages_and_a_far_score_takes_all() -> None:
    """Equal keys share the weight; scores of a thousand do not overflow; the order of keys does not matter."""
    name = "FlashAttentionScoreWithLargeHeadDim"
    rng = np.random.default_rng(0)
    q, v = rng.standard_normal((1, 3, 8)), rng.standard_normal((1, 5, 8))
    (even,) = reference(name, q, np.ones((1, 5, 8)), v, scale=0.5)
    np.testing.assert_allclose(even, np.broadcast_to(v.mean(axis=1, keepdims=True), even.shape), atol=1e-14)
    far = np.zeros((1, 5, 8))
    far[0, 2] = 1000 * q[0, 0]
    (taken,) = reference(name, q[:, :1], far, v, scale=10.0)
    np.testing.assert_allclose(taken[0, 0], v[0, 2], atol=1e-14)
    order = rng.permutation(5)
    k = rng.standard_normal((1, 5, 8))
    mixed, plain = (reference(name, q, k[:, i], v[:, i], scale=0.3)[0] for i in (order, np.arange(5)))
    np.testing.assert_allclose(mixed, plain, atol=1e-13)


def test_a_paged_cache_may_be_shuffled() -> None:
    """Blocks moved in memory, with the table moved along, change nothing; rows behind the length do not matter."""
    rng = np.random.default_rng(0)
    q, q_rope = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 3, 2))
    cache, rope = rng.standard_normal((5, 4, 1, 6)), rng.standard_normal((5, 4, 1, 2))
    table, lengths = np.array([[0, 3], [4, 1]], dtype=np.int32), np.array([5, 8], dtype=np.int32)
    (plain,) = reference("Mla", q, q_rope, cache, rope, table, lengths)
    order = rng.permutation(5)
    moved = np.argsort(order)[table].astype(np.int32)
    (shuffled,) = reference("Mla", q, q_rope, cache[order], rope[order], moved, lengths)
    np.testing.assert_allclose(shuffled, plain, atol=1e-14)
    cache[3, 1:], cache[2] = 1e9, 1e9  # sequence 0 uses one row of block 3, nobody block 2
    (same,) = reference("Mla", q, q_rope, cache, rope, table, lengths)
    np.testing.assert_allclose(same, plain, atol=1e-14)


def test_one_row_of_cache_is_the_answer_of_every_head() -> None:
    """With a length of 1 the weight is 1."""
    rng = np.random.default_rng(0)
    cache = rng.standard_normal((1, 4, 1, 6))
    out = reference(
        "Mla", rng.standard_normal((1, 3, 6)), rng.standard_normal((1, 3, 2)), cache, np.ones((1, 4, 1, 2)),
        np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=np.int32),
    )[0]  # fmt: skip
    np.testing.assert_allclose(out[0], np.tile(cache[0, 0, 0], (3, 1)), rtol=1e-15)


def test_selection_of_a_known_row() -> None:
    """The two largest of 3, -1, 7, 5 are 7 and 5 at 2 and 3; the two smallest -1 and 3 at 1 and 0."""
    x = np.array([[3.0, -1, 7, 5]])
    values, indices = reference("TopKV3", x, k=2, dim=1, largest=1)
    assert (values.tolist(), indices.tolist()) == ([[7, 5]], [[2, 3]])
    values, indices = reference("TopKV3", x, k=2, dim=1, largest=0)
    assert (values.tolist(), indices.tolist()) == ([[-1, 3]], [[1, 0]])
