"""Fused products, routing and layers: against numpy, by hand, and by their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from device.operators import get
from tests.device.operators.references import agree, reference, torch


def by_hand_attention_gradient(q, k, v, d_out):
    scale = 1 / math.sqrt(q.shape[2])
    scores = scale * np.einsum("nsd,ntd->nst", q, k)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    out = np.einsum("nst,ntd->nsd", p, v)
    inner = np.einsum("nsd,ntd->nst", d_out, v) - (d_out * out).sum(axis=-1)[..., None]
    return (
        np.einsum("nst,ntd->nsd", p * inner, k) * scale,
        np.einsum("nst,nsd->ntd", p * inner, q) * scale,
        np.einsum("nst,nsd->ntd", p, d_out),
    )


def by_hand_loss(x, target, smoothing, factor):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    logs = np.log(p)
    loss = -(1 - smoothing) * logs[np.arange(len(x)), target] - smoothing * logs.mean(axis=1)
    wanted = np.full_like(x, smoothing / x.shape[1])
    np.add.at(wanted, (np.arange(len(x)), target), 1 - smoothing)
    return loss, factor * (p - wanted)


def steps(z):
    step = np.abs(z).max(axis=1) / 127
    return np.divide(z, step[:, None], out=np.zeros_like(z), where=step[:, None] > 0), step


def by_hand_swiglu_quant(x, w, w_scale, x_scale, ends):
    group = np.searchsorted(ends, np.arange(len(x)), side="right")
    y = np.einsum("mk,mkn->mn", x.astype(np.int64), w[group].astype(np.int64)) * w_scale[group] * x_scale[:, None]
    first, second = np.split(y, 2, axis=1)
    return steps(first * (1 + np.tanh(first / 2)) / 2 * second)  # sigmoid(a) = (1 + tanh(a / 2)) / 2


def by_hand_weight_quant(x, w, scale, offset):
    return (np.einsum("bmk,kn->bmn", x, w.astype(float)) + x.sum(axis=2, keepdims=True) * offset) * scale


def by_hand_norm(x, residual, gamma, eps):
    t = x + residual
    return (*steps(t * gamma / np.sqrt(np.einsum("mn,mn->m", t, t) / t.shape[1] + eps)[:, None]), t)


def by_hand_gate(x, k, factor):
    order = np.argsort(-x, axis=1)[:, : int(k)]
    p = np.exp(x - x.max(axis=1, keepdims=True))
    best = np.take_along_axis(p, order, axis=1)
    return factor * best / best.sum(axis=1, keepdims=True), order


def by_hand_init(x, experts, count):
    pairs = sorted((expert, i) for i, expert in enumerate(experts.flatten()))
    places = np.empty(experts.size, dtype=np.int32)
    for place, (_, i) in enumerate(pairs):
        places[i] = place
    ends = np.array([sum(expert <= e for expert, _ in pairs) for e in range(int(count))])
    return np.array([x[i // experts.shape[1]] for _, i in pairs]), places.reshape(experts.shape), ends


def by_hand_finalize(y, places, weights, shared):
    out = shared.copy()
    for i, j in np.ndindex(*weights.shape):
        out[i] += weights[i, j] * y[places[i * weights.shape[1] + j]]
    return out


def turned(x, angle):
    half = x.shape[2] // 2
    pairs = (x[..., :half] + 1j * x[..., half:]) * angle[:, None]
    return np.concatenate([pairs.real, pairs.imag], axis=2)


def by_hand_rotary(q, k, v, cosine, sine, slots, k_cache, v_cache):
    keys, values = k_cache.copy(), v_cache.copy()
    for i, slot in enumerate(slots):
        keys[slot], values[slot] = turned(k, cosine + 1j * sine)[i], v[i]
    return turned(q, cosine + 1j * sine), keys, values


def by_hand_lstm(x, h, c, w_x, w_h, bias):
    outs = []
    for row in x:
        i, f, g, o = np.split(np.einsum("bi,ni->bn", row, w_x) + np.einsum("bm,nm->bn", h, w_h) + bias, 4, axis=1)
        c = (1 + np.tanh(f / 2)) / 2 * c + (1 + np.tanh(i / 2)) / 2 * np.tanh(g)
        h = (1 + np.tanh(o / 2)) / 2 * np.tanh(c)
        outs.append(h)
    return np.array(outs), c


def by_hand_ffn(x, w1, b1, w2, b2):
    y = np.einsum("mk,kf->mf", x, w1) + b1
    return np.einsum("mf,fn->mn", y * np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))(y), w2) + b2


BY_HAND = {
    "FlashAttentionGrad": by_hand_attention_gradient,
    "CrossEntropyLossWithGrad": by_hand_loss,
    "GroupedMatmulSwigluQuant": by_hand_swiglu_quant,
    "WeightQuantBatchMatmul": by_hand_weight_quant,
    "QuantMatmulReduceSum": lambda a, b, scale, per_token: np.einsum(
        "bmk,bkn,n,bm->mn", a.astype(float), b.astype(float), scale, per_token, optimize=True
    ),
    "AddRmsNormDynamicQuant": by_hand_norm,
    "MoeGatingTopK": by_hand_gate,
    "MoeInitRouting": by_hand_init,
    "MoeFinalizeRouting": by_hand_finalize,
    "RotaryCacheWrite": by_hand_rotary,
    "Lstm": by_hand_lstm,
    "Ffn": by_hand_ffn,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-9."""
    agree(name, BY_HAND[name], largest=120_000, rtol=1e-9)


@pytest.mark.parametrize("name", ["FlashAttentionGrad", "CrossEntropyLossWithGrad"])
def test_gradients_are_what_small_steps_find(name) -> None:
    """A central difference of the value agrees with the gradient in a random direction."""
    rng = np.random.default_rng(0)
    if name == "FlashAttentionGrad":
        inputs = [rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 4), (2, 3, 4))]
        step = [1e-5 * rng.standard_normal(x.shape) for x in inputs[:3]]

        def value(sign):
            q, k, v = (torch.from_numpy(x + sign * d) for x, d in zip(inputs, step, strict=False))
            return float((torch.nn.functional.scaled_dot_product_attention(q, k, v).numpy() * inputs[3]).sum())

        predicted = sum((g * d).sum() for g, d in zip(reference(name, *inputs), step, strict=True))
    else:
        x, target = rng.standard_normal((4, 7)), np.array([0, 6, 3, 3])
        move = 1e-5 * rng.standard_normal(x.shape)

        def value(sign):
            return float(reference(name, x + sign * move, target, smoothing=0.1, factor=1.0)[0].sum())

        predicted = (reference(name, x, target, smoothing=0.1, factor=1.0)[1] * move).sum()
    assert value(1) - value(-1) == pytest.approx(2 * predicted, rel=1e-6)


def test_the_loss_of_known_rows() -> None:
    """Two equal logits cost log 2 and pull by a half each way; a gradient's row sums to zero."""
    loss, grad = reference("CrossEntropyLossWithGrad", np.array([[3.0, 3]]), np.array([1]), smoothing=0, factor=2)
    assert loss[0] == pytest.approx(math.log(2))
    assert grad[0] == pytest.approx([1, -1])


def test_a_quantised_row_reaches_127_and_unfolds_to_what_it_was() -> None:
    """The largest of a row is 127 steps; steps times units give the norm back, to half a step after rounding."""
    x = np.random.default_rng(0).standard_normal((5, 40))
    units, step, total = reference("AddRmsNormDynamicQuant", x, np.zeros_like(x), np.ones(40), eps=0)
    np.testing.assert_allclose(np.abs(units).max(axis=1), 127)
    np.testing.assert_allclose((units * step[:, None]) ** 2 @ np.ones(40), 40, rtol=1e-12)
    assert np.array_equal(total, x)
    spec = get("AddRmsNormDynamicQuant").outputs(get("AddRmsNormDynamicQuant").cases[0])[0]
    assert (spec.dtype, spec.rounded) == ("int8", True)


def test_routing_there_and_back_is_a_weighted_copy() -> None:
    """Tokens sorted by expert and put back with weights that sum to one are the tokens again."""
    rng = np.random.default_rng(0)
    x, experts = rng.standard_normal((6, 3)), rng.integers(0, 4, (6, 2)).astype(np.int32)
    rows, places, ends = reference("MoeInitRouting", x, experts, count=4)
    assert ends.tolist() == np.cumsum(np.bincount(experts.flatten(), minlength=4)).tolist()
    weights = rng.random((6, 1)) * [1, -1] + [0, 1]
    (back,) = reference("MoeFinalizeRouting", rows, places.flatten(), weights, np.zeros_like(x))
    np.testing.assert_allclose(back, x, atol=1e-14)


def test_gate_weights_sum_to_their_factor_and_ignore_a_shift() -> None:
    """Adding a number to all logits changes nothing; the weights fall and sum to 2.5."""
    x = np.arange(12.0).reshape(2, 6)
    weights, experts = reference("MoeGatingTopK", x, k=3, factor=2.5)
    assert experts.tolist() == [[5, 4, 3]] * 2
    np.testing.assert_allclose(weights.sum(axis=1), 2.5)
    np.testing.assert_allclose(reference("MoeGatingTopK", x + 500, k=3, factor=2.5)[0], weights, rtol=1e-12)


def test_turning_keeps_lengths_and_values_are_not_turned() -> None:
    """A quarter turn takes (1, 0) to (0, 1) half a head apart; unit angles keep the norm; v arrives as it was."""
    one = np.zeros((1, 1, 4))
    one[0, 0, 0] = 1
    zeros, cache = np.zeros((1, 2)), np.zeros((2, 1, 4))
    q, keys, values = reference("RotaryCacheWrite", one, one, one, zeros, zeros + 1, np.array([1]), cache, cache)
    assert q[0, 0].tolist() == [0, 0, 1, 0]
    assert keys[:, 0].tolist() == [[0, 0, 0, 0], [0, 0, 1, 0]]
    assert values[:, 0].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]


def test_a_shut_recurrent_layer_keeps_its_cell() -> None:
    """A forget gate wide open and an input gate shut leave c as it was, whatever comes in; no gate overflows."""
    n = 3
    bias = np.concatenate([np.full(n, -1e3), np.full(n, 1e3), np.zeros(n), np.full(n, 1e3)])
    c = np.array([[0.5, -2, 1.0]])
    x = np.random.default_rng(0).standard_normal((4, 1, 2))
    out, last = reference("Lstm", x, np.zeros((1, n)), c, np.ones((4 * n, 2)), np.zeros((4 * n, n)), bias)
    np.testing.assert_allclose(last, c, rtol=1e-14)
    np.testing.assert_allclose(out, np.tile(np.tanh(c), (4, 1, 1)), rtol=1e-14)
