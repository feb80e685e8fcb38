"""Values worked out by hand and properties that hold whatever the numbers are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device.operators import get
from tests.device.operators.level2.kit import run

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(8)
seeds = st.integers(0, 2**32 - 1)


def of(name, *arrays, **attributes):
    return run(get(name), *arrays, **attributes)


def test_every_place_of_a_list_gets_its_own_scalar() -> None:
    """X = [[1], [1, 2]] and s = [10, 20] give [[11], [21, 22]]."""
    one, two = of("ForeachAddScalarList", [1], [1, 2], [10, 20])
    assert (one.tolist(), two.tolist()) == ([11], [21, 22])
    one, two = of("ForeachAddcmulScalarList", [1], [1, 2], [2], [3, 4], [5], [6, 7], [10, 100])
    assert (one.tolist(), two.tolist()) == ([101], [1801, 2802])


def test_lists_follow_each_other() -> None:
    """The inputs of x + alpha * y are all of x, then all of y."""
    one, two = of("ForeachAddList", [1], [2, 3], [10], [20, 30], alpha=2)
    assert (one.tolist(), two.tolist()) == ([21], [42, 63])
    assert [out.tolist() for out in of("ForeachDivList", [1], [6, 9], [4], [3, 2])] == [[0.25], [2, 4.5]]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (1, [2, 4, -2, -4, 2, -1, 0, 0, 0]),
        (2, [2, 3, -3, -4, 2, -2, 0, -1, 0]),
        (3, [3, 4, -2, -3, 3, -1, 1, 0, 1]),
        (4, [3, 4, -3, -4, 2, -1, 1, -1, 0]),
        (5, [2, 3, -2, -3, 2, -1, 0, 0, 0]),
    ],
)
def test_rounding_modes_differ_on_ties(mode, expected) -> None:
    """Of 2.5, 3.5, -2.5, -3.5, 2.1, -1.2, 0.5, -0.5 and the number below 0.5."""
    (got,) = of(
        "ForeachRoundOffNumber", [2.5, 3.5, -2.5, -3.5, 2.1, -1.2, 0.5, -0.5, np.nextafter(0.5, 0)], round_mode=mode
    )
    assert got.tolist() == expected


def test_norms_of_a_list() -> None:
    """(3, 4) has the norm 5, or 7 by absolute values; the shape does not matter."""
    assert [float(x) for x in of("ForeachNorm", [3, 4], [[3], [4]], [-2], order=2)] == [5, 5, 2]
    assert [float(x) for x in of("ForeachNorm", [3, 4], [[3], [4]], [-2], order=1)] == [7, 7, 2]


def test_the_larger_of_two_is_nan_where_one_is() -> None:
    """On either side; equal infinities stay."""
    (got,) = of("ForeachMaximumList", [1, np.nan, 2, np.inf], [2, 1, np.nan, np.inf])
    assert np.array_equal(got, [2, np.nan, np.nan, np.inf], equal_nan=True)


@given(seeds)
@settings(max_examples=15)
def test_a_lower_and_an_upper_triangle_make_the_matrix(seed) -> None:
    """Whatever the diagonal, the rest of one is the other."""
    rng = np.random.default_rng(seed)
    x, d = rng.standard_normal(tuple(rng.integers(1, 9, 3))), int(rng.integers(-9, 9))
    assert np.array_equal(of("Tril", x, diagonal=d)[0] + of("Triu", x, diagonal=d + 1)[0], x)


def test_a_vector_product_stands_upright_on_both() -> None:
    """e1 x e2 = e3; a x b is orthogonal to a and b, and turns its sign with their order."""
    assert of("Cross", [1, 0, 0], [0, 1, 0], dim=0)[0].tolist() == [0, 0, 1]
    a, b = RNG.standard_normal((2, 3, 9))
    (c,) = of("Cross", a, b, dim=0)
    np.testing.assert_allclose([(a * c).sum(0), (b * c).sum(0)], 0, atol=1e-13)
    np.testing.assert_allclose(of("Cross", b, a, dim=0)[0], -c)


@given(seeds)
@settings(max_examples=15)
def test_reversing_twice_changes_nothing(seed) -> None:
    """Within the same lengths; a length of 1 is no change at all."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((3, 5, 2))
    lengths = rng.integers(0, 6, 3)
    (once,) = of("ReverseSequence", x, lengths, seq_dim=1, batch_dim=0)
    assert np.array_equal(of("ReverseSequence", once, lengths, seq_dim=1, batch_dim=0)[0], x)
    assert np.array_equal(of("ReverseSequence", x, np.ones(3, dtype=np.int64), seq_dim=1, batch_dim=0)[0], x)


def test_rows_are_repeated_and_filled_up() -> None:
    """Counts 0, 1 and 2 of rows a, b and c in five rows give b, c, c, 0, 0."""
    (got,) = of("FeedsRepeat", [[1, 2], [3, 4], [5, 6]], np.array([0, 1, 2]), output_feeds_size=5)
    assert got.tolist() == [[3, 4], [5, 6], [5, 6], [0, 0], [0, 0]]


def test_a_slice_is_written_into_a_copy() -> None:
    """Rows 1 and 3, columns 0 and 1 of a 4 by 3 matrix; the matrix itself stays."""
    var = np.arange(12.0).reshape(4, 3)
    names = ("begin0", "end0", "step0", "begin1", "end1", "step1")
    (got,) = of("StridedSliceAssignV2", var, -np.ones((2, 2)), **dict(zip(names, (1, 4, 2, 0, 2, 1), strict=True)))
    assert got.tolist() == [[0, 1, 2], [-1, -1, 5], [6, 7, 8], [-1, -1, 11]]
    assert var[1, 0] == 3


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_layer_norms_give_mean_zero_and_variance_one(shift) -> None:
    """Whatever the rows' own mean, in every form that has gamma 1 and beta 0."""
    a, b, one, zero = RNG.standard_normal((5, 64)) * 7 + shift, RNG.standard_normal((5, 64)), np.ones(64), np.zeros(64)
    outputs = [
        of("LayerNormV4", a, eps=0, affine=0)[0],
        of("AddLayerNorm", a, b, one, zero, eps=0, additional_out=0)[0],
        of("PreLayerNorm", a, b, one, zero, eps=0)[0],
        of("DeepNorm", a, b, zero, one, alpha=2, eps=0)[2],
        of("MulMulReduceMeanDTwice", a, b, [2], [0], one[None], zero[None])[0],
    ]
    for y in outputs:
        np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-12)
        np.testing.assert_allclose(y.var(axis=-1), 1, rtol=1e-10)


def test_rms_norms_agree_and_give_mean_square_one() -> None:
    """Adding zeros changes nothing; the cast form gives the same number twice."""
    x, one = RNG.standard_normal((5, 64)) * 9, np.ones(64)
    y, rstd = of("RmsNorm", x, one, eps=0)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1, rtol=1e-12)
    for name, places in (("AddRmsNorm", (0, 1, 2)), ("AddRmsNormCast", (1, 2, 3))):
        out = of(name, x, np.zeros_like(x), one, eps=0)
        for place, expected in zip(places, (y, rstd, x), strict=True):
            np.testing.assert_allclose(out[place], expected, rtol=1e-13)


def test_running_statistics_move_towards_the_batch() -> None:
    """A channel of 1, 3 with momentum 0.1 moves 0 to 0.2 and 1 to 0.9 + 0.1 * 2; outside training they stay."""
    x, one, zero = np.array([[[1.0, 3.0]]]), np.ones(1), np.zeros(1)
    y, mean, var, used, rstd = of("BatchNormV3", x, one, zero, zero, one, training=1, momentum=0.1, eps=0)
    assert (y.tolist(), used.tolist(), rstd.tolist()) == ([[[-1, 1]]], [2], [1])
    assert (mean[0], var[0]) == pytest.approx((0.2, 1.1))
    y, mean, var, _, _ = of("BatchNormV3", x, one, zero, zero, one, training=0, momentum=0.1, eps=0)
    assert (y.tolist(), mean.tolist(), var.tolist()) == ([[[1, 3]]], [0], [1])


def test_one_group_is_a_layer_norm_of_the_image() -> None:
    """And as many groups as channels make each channel's own."""
    x, one, zero = RNG.standard_normal((2, 4, 3, 5)), np.ones(4), np.zeros(4)
    shape = {1: (2, 60), 4: (2, 4, 15)}
    for groups, flat in shape.items():
        plain = {"num_groups": groups, "eps": 1e-5, "activate_swish": 0, "swish_scale": 1.0}
        got = of("GroupNormSwish", x, one, zero, **plain)[0]
        np.testing.assert_allclose(
            got.reshape(flat), of("LayerNormV4", x.reshape(flat), eps=1e-5, affine=0)[0], rtol=1e-12
        )


def test_softmax_rows_sum_to_one_and_ignore_a_shift() -> None:
    """Also where numbers are chosen from two inputs; what is not chosen has no part in it."""
    x = RNG.standard_normal((4, 9)) * 20
    (y,) = of("InplaceAttnSoftmax", x)
    np.testing.assert_allclose(y.sum(axis=-1), 1, rtol=1e-13)
    np.testing.assert_allclose(of("InplaceAttnSoftmax", x + 700)[0], y, rtol=1e-10)
    chosen = np.ones((4, 9), dtype=bool)
    assert np.array_equal(of("SelectReduceMaxDSubExpReduceSumDRealDiv", chosen, x, np.full((4, 9), np.inf))[0], y)


def test_cross_entropy_of_equal_logits_is_the_logarithm_of_their_number() -> None:
    """With or without smoothing; the mean is weighted, an ignored row is left out."""
    x, weight, target = np.zeros((3, 8)), np.arange(1.0, 9.0), np.array([0, 5, 7])
    plain = {"ignore_index": -100, "label_smoothing": 0.0, "reduction": 1}
    assert of("CrossEntropyLoss", x, target, weight, **plain)[0] == pytest.approx(math.log(8))
    rows = of("CrossEntropyLoss", x, target, weight, **{**plain, "reduction": 0, "ignore_index": 5})[0]
    np.testing.assert_allclose(rows, [math.log(8), 0, 8 * math.log(8)])
    ones = np.ones(8)
    assert of("CrossEntropyLoss", x, target, ones, **{**plain, "label_smoothing": 0.4})[0] == pytest.approx(math.log(8))


def test_dynamic_bytes_reach_127_and_come_back_within_half_a_step() -> None:
    """For gelu and for the gated form, whatever the scale of a row."""
    x = RNG.standard_normal((6, 40)) * np.logspace(-3, 3, 6)[:, None]
    q, step = of("GeluQuant", x, np.ones(40), approximate=1, dynamic=1)
    np.testing.assert_allclose(np.abs(q).max(axis=-1), 127)
    np.testing.assert_allclose(np.rint(q) * step, of("Gelu", x)[0], atol=0.5 * step.max(axis=0)[0] + 1e-12)
    sums = RNG.integers(1, 3000, (6, 40))
    q, step = of(
        "DequantSwigluQuant", sums, np.full(40, 0.001), np.ones((6, 1)), np.ones(20), activate_left=1, dynamic=1
    )
    np.testing.assert_allclose(np.rint(q) * step, of("SwiGlu", sums * 0.001, dim=-1)[0], atol=0.5 * step.max() + 1e-12)


def test_bytes_stop_at_their_limits() -> None:
    """10 * 100 + 1 stays 127, and far below it stays -128."""
    (q,) = of("GeluQuant", [[10.0, 0.0]], [100, 1], [1, -500], approximate=0, dynamic=0)
    assert q.tolist() == [[127, -128]]
    q, total = of("AddRmsNormQuant", [[3.0, 4.0]], [[0, 0]], [1, 1], [0.001, 100], np.array([5, 5]), eps=0, div_mode=1)
    assert (q[0, 0], q[0, 1]) == pytest.approx((127, 5 + 4 / math.sqrt(12.5) / 100))
    assert total.tolist() == [[3, 4]]


def test_the_first_step_of_adam_has_the_size_of_the_rate() -> None:
    """From empty moments each parameter moves by lr against the sign of its gradient; maximising turns it."""
    zero, g = np.zeros(3), np.array([0.5, -3.0, 1e-2])
    settings_ = {
        "lr": 0.1,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0,
        "eps": 0,
        "amsgrad": 0,
        "maximize": 0,
        "step": 1,
    }
    var, m, v = of("ApplyAdamWV2", zero, zero, zero, g, **settings_)
    np.testing.assert_allclose(var, -0.1 * np.sign(g))
    np.testing.assert_allclose([m, v], [0.1 * g, 0.01 * g**2])
    np.testing.assert_allclose(of("ApplyAdamWV2", zero, zero, zero, g, **{**settings_, "maximize": 1})[0], -var)


def test_two_forms_of_weight_decay() -> None:
    """Without a gradient the decoupled form shrinks by lr * decay; the other takes it for a gradient, of full size."""
    zero, x = np.zeros(2), np.array([2.0, -4.0])
    names = {
        "lr": 0.1,
        "ema_decay": 0.75,
        "beta1": 0.9,
        "beta2": 0.99,
        "eps": 0.0,
        "bias_correction": 1,
        "weight_decay": 0.5,
    }
    var, _, _, s = of("ApplyFusedEmaAdam", zero, x, zero, zero + 1, zero, np.array([1]), mode=1, **names)
    np.testing.assert_allclose(var, x * 0.95)
    np.testing.assert_allclose(s, 0.25 * var)
    var = of("ApplyFusedEmaAdam", zero, x, zero, zero, zero, np.array([1]), mode=0, **names)[0]
    np.testing.assert_allclose(var, x - 0.1 * np.sign(x))


def test_a_gate_at_zero_is_one_half_and_doubled_from_its_threshold_on() -> None:
    """sigmoid(0) = 1/2 stays below 0.6, and is doubled where the threshold is 1/2 itself."""
    x1, x2 = np.zeros((2, 6)), np.arange(6.0).reshape(1, 2, 3)
    (below,) = of("MulSigmoid", x1, x2, t1=1, t2=0.6, t3=10)
    assert np.array_equal(below, np.tile(5 * x2, (2, 1, 1)))
    assert np.array_equal(of("MulSigmoid", x1, x2, t1=1, t2=0.5, t3=10)[0], 2 * below)


def test_a_chain_of_ones_counts_the_middle_axis() -> None:
    """sigmoid(0) = 1/2, six times; and sigmoid(0) * 4 + 1 = 3."""
    zero = np.zeros((2, 6, 3))
    (got,) = of("AddSigmoidMulReduceSumD", zero, np.zeros((1, 1, 3)), [5], np.ones((2, 6, 1)), zero + 1)
    assert got.tolist() == [[3] * 3] * 2
    assert of("MulSigmoidMulAddCustom", [[0.0]], [7], [4], [1])[0] == 3


def test_expanded_rows_are_memory_of_their_own() -> None:
    """Twelve rows of the same int64, none lost beyond 2^53."""
    x = torch.tensor([2**53 + 1, -(2**62)])
    (got,) = get("ExpandV2").reference(x, rows=12)
    assert got.tolist() == [x.tolist()] * 12
    assert got.is_contiguous()
