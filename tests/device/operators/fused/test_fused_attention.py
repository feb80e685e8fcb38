"""Fused attention: against numpy loops, by hand, and by its properties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.device.operators.references import agree, reference, torch


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def by_hand_sparse(q, k, v, picked, counts):
    hidden = np.full((len(q), len(k)), -np.inf)
    for i, count in enumerate(counts):
        hidden[i, picked[i, :count]] = 0
    scores = np.einsum("shd,td->sht", q, k) / math.sqrt(q.shape[2])
    return np.einsum("sht,td->shd", softmax(scores + hidden[:, None]), v)


def by_hand_paged(q, k, v, table, lengths):
    out = np.empty_like(q)
    size, group = k.shape[1], q.shape[1] // k.shape[2]
    for i in range(len(q)):
        places = [(table[i, j // size], j % size) for j in range(lengths[i])]
        for head in range(q.shape[1]):
            keys, values = (np.array([cache[b, r, head // group] for b, r in places]) for cache in (k, v))
            out[i, head] = softmax(keys @ q[i, head] / math.sqrt(q.shape[2])) @ values
    return out


def by_hand_infer(q, k, v, lengths, scale):
    steps, group = q.shape[1], q.shape[2] // k.shape[2]
    keys, values = (np.repeat(x, group, axis=2) for x in (k, v))
    scores = scale * np.einsum("bshd,bthd->bhst", q, keys)
    last = lengths[:, None] - steps + np.arange(steps)
    scores[np.broadcast_to((np.arange(k.shape[1]) > last[..., None])[:, None], scores.shape)] = -np.inf
    return np.einsum("bhst,bthd->bshd", softmax(scores), values)


def by_hand_masked(q, k, v, mask):
    scores = np.einsum("bnsd,bntd->bnst", q, k) / math.sqrt(q.shape[3])
    seen = ~mask
    seen[:, 0] = True
    most = np.where(seen, scores, -np.inf).max(axis=-1)
    weights = np.where(seen, np.exp(scores - most[..., None]), 0)
    total = weights.sum(axis=-1)
    return np.einsum("bnst,bntd->bnsd", weights / total[..., None], v), most, total


def by_hand_latent(q, q_rope, c, k_rope, to_key, to_value, scale):
    # The absorbed form: queries are taken to the latent space, and the average is expanded afterwards.
    absorbed = np.einsum("shn,hrn->shr", q, to_key)
    scores = scale * (np.einsum("shr,tr->hst", absorbed, c) + np.einsum("shd,td->hst", q_rope, k_rope))
    late = np.arange(len(c)) > np.arange(len(q))[:, None] + len(c) - len(q)
    weights = softmax(np.where(late, -np.inf, scores))
    return np.einsum("hst,tr,hrv->shv", weights, c, to_value, optimize=True)


def by_hand_indexer(q, k, weight, k_best):
    scores = np.einsum("sh,sht->st", weight, np.maximum(np.einsum("shd,td->sht", q, k), 0))
    order = np.array([sorted(range(len(k)), key=lambda j, row=row: (-row[j], j)) for row in scores])[:, : int(k_best)]
    return order.astype(np.int32), np.take_along_axis(scores, order, axis=1)


BY_HAND = {
    "SparseFlashAttention": by_hand_sparse,
    "PagedFlashAttention": by_hand_paged,
    "FusedInferAttentionScore": by_hand_infer,
    "FusionAttention": by_hand_masked,
    "MultiHeadLatentAttention": by_hand_latent,
    "LightningIndexer": by_hand_indexer,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-10."""
    agree(name, BY_HAND[name], largest=120_000)


def test_picking_all_keys_is_plain_attention() -> None:
    """With every key picked, in any order, sparse attention is torch's own."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 2, 8)), rng.standard_normal((5, 8)), rng.standard_normal((5, 8))
    picked = np.array([rng.permutation(5) for _ in range(3)], dtype=np.int32)
    (got,) = reference("SparseFlashAttention", q, k, v, picked, np.full(3, 5, dtype=np.int32))
    plain = torch.nn.functional.scaled_dot_product_attention(*(torch.from_numpy(x) for x in (q, k, v)))
    np.testing.assert_allclose(got, plain.numpy(), atol=1e-14)


def test_one_pick_gives_its_value() -> None:
    """A single key takes all weight; the picks behind it do not matter."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal((5, 8))
    picked, one = np.array([[3, 0, 1]], dtype=np.int32), np.ones(1, dtype=np.int32)
    (got,) = reference("SparseFlashAttention", rng.standard_normal((1, 2, 8)), v, v, picked, one)
    np.testing.assert_allclose(got[0], np.tile(v[3], (2, 1)), rtol=1e-15)


def test_keys_behind_the_length_do_not_matter() -> None:
    """Decoding one query with length 3 of 6 keys: the last three may hold anything."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((1, 1, 4, 8)), rng.standard_normal((1, 6, 2, 8))
    lengths = np.array([3])
    (plain,) = reference("FusedInferAttentionScore", q, k, k, lengths, scale=0.3)
    k[:, 3:] = 1e9
    (again,) = reference("FusedInferAttentionScore", q, k, k, lengths, scale=0.3)
    assert np.array_equal(plain, again)


def test_the_kept_softmax_rebuilds_its_weights() -> None:
    """exp(score - largest) / sum gives weights that sum to one over the keys seen, and hidden keys have none."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((1, 1, 3, 8)), rng.standard_normal((1, 1, 5, 8))
    mask = np.array([[True, False, True, False, False]] * 3)
    out, most, total = reference("FusionAttention", q, k, np.eye(5, 8)[None, None], mask)
    weights = np.exp(q[0, 0] @ k[0, 0].T / math.sqrt(8) - most[0, 0][:, None]) / total[0, 0][:, None]
    np.testing.assert_allclose(out[0, 0, :, :5], np.where([1, 1, 0, 1, 1], weights, 0), atol=1e-14)
    np.testing.assert_allclose(out.sum(axis=-1), 1, rtol=1e-14)


def test_the_first_latent_query_sees_one_row() -> None:
    """With as many queries as rows the first one's answer is the first row's value."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((3, 2, 4), (3, 2, 2), (3, 5), (3, 2), (2, 5, 4), (2, 5, 6))]
    (out,) = reference("MultiHeadLatentAttention", *arrays, scale=0.2)
    np.testing.assert_allclose(out[0], arrays[2][0] @ arrays[5], rtol=1e-13)


def test_the_indexer_keeps_the_order_of_equals() -> None:
    """Scores 0, 2, 2, 0 by hand: a product below 0 counts as 0, and of the equal ones the lower index is first."""
    q, k = np.array([[[1.0, 0]]]), np.array([[-1.0, 5], [2, 0], [2, 1], [0, 0]])
    indices, scores = reference("LightningIndexer", q, k, np.ones((1, 1)), k_best=4)
    assert (indices.tolist(), scores.tolist()) == ([[1, 2, 0, 3]], [[2, 2, 0, 0]])
    indices, scores = reference("LightningIndexer", q, k, -np.ones((1, 1)), k_best=3)
    assert (indices.tolist(), scores.tolist()) == ([[0, 3, 1]], [[0, 0, -2]])
