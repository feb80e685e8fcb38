"""The mistakes that a first draft can make are the real ones: each fails in the way in which an author would see it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agent.search.harness import bundled, compiled_all, composed, kernel

PLAIN = {"layout": "general", "tail": "scalar", "softmax_shift": "max", "variance": "two_pass", "nan": "propagate"}


def test_exp_without_the_shift_overflows(tmp_path):
    """Softmax of 100 and 90 is NaN when the maximum stays in; the others of the row come out as 0."""
    x = np.array([[100.0, 90.0, 0.0]], dtype=np.float32)
    made = kernel(bundled("softmax"), PLAIN | {"softmax_shift": "none"}, tmp_path)
    assert np.isnan(made.run([x], x.shape)).any()


def test_an_ignored_tail_is_never_written(tmp_path):
    """A vector loop without a rest leaves the last 5 of 37 elements as they were."""
    x = np.linspace(-1, 1, 37, dtype=np.float32)[None, :]
    wanted = {"layout": "assume_contiguous", "simd": "vector", "lanes": "8", "tail": "ignored"}
    got = kernel(bundled("gelu"), wanted, tmp_path).run([x], x.shape)
    assert (got[0, 32:] == -777).all()
    assert (got[0, :32] != -777).all()


def test_dense_code_reads_the_wrong_elements_of_a_view(tmp_path):
    """A kernel that takes its input to be dense transposes nothing back."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3).T
    made = kernel(bundled("softmax"), PLAIN | {"layout": "assume_contiguous", "simd": "none"}, tmp_path)
    got = made.run([x], x.shape)
    expected = np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    assert not np.allclose(got, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("wrong", "row", "good", "bad"),
    [({"ties": "last"}, [3, 7, 7, 1], 1, 2), ({"nan": "ignored"}, [3, np.nan, 7, 1], 1, 2)],
)
def test_argmax_mistakes_return_another_index(wrong, row, good, bad, tmp_path):
    """The later of two equal elements, or the greatest number of a row that holds NaN."""
    x = np.array([row], dtype=np.float32)
    sources = [composed(bundled("argmax"), PLAIN | {"ties": "first"} | extra)[2] for extra in ({}, wrong)]
    right, mistaken = compiled_all(sources, tmp_path)
    assert right.run([x], (1,), dtype="int64")[0] == good
    assert mistaken.run([x], (1,), dtype="int64")[0] == bad


@pytest.mark.parametrize(
    ("eps", "expected"), [("inside_root", 1.0 / 2.0), ("outside_root", 1.0 / 4.0), ("ignored", 1e15)]
)
def test_epsilon_goes_where_the_choice_says(eps, expected, tmp_path):
    """For a row of 1e-15: 1 / sqrt(4) inside, 1 / 4 outside, and without epsilon 1 / 1e-15."""
    gamma = np.ones(4, dtype=np.float32)
    about = bundled("rms_norm")
    probe = np.full((1, 4), 1e-15, dtype=np.float32)
    made = kernel(about, PLAIN | {"eps": eps}, tmp_path)
    got = made.run([probe, gamma], (1, 4), attributes=[4.0])[0, 0] / probe[0, 0]
    assert got == pytest.approx(expected)


def test_one_float_accumulator_drifts_over_a_long_row(tmp_path):
    """The mean square of 200 000 times 0.1 is off by more than 1e-5 in one float, and within 1e-6 in blocks or double."""
    x = np.full((1, 200_000), 0.1, dtype=np.float32)
    ways = ("float", "blocked", "double", "kahan")
    sources = [composed(bundled("rms_norm"), PLAIN | {"eps": "inside_root", "accumulator": way})[2] for way in ways]
    gamma = np.ones(200_000, dtype=np.float32)
    error = {}
    for way, made in zip(ways, compiled_all(sources, tmp_path), strict=True):
        error[way] = abs(float(made.run([x, gamma], x.shape, attributes=[0.0])[0, 0]) - 1.0)
    assert error["float"] > 1e-5
    assert max(error["blocked"], error["double"], error["kahan"]) < 1e-6


def test_the_mean_of_squares_cancels_far_from_zero(tmp_path):
    """A row around 1000 with a spread of 1: two passes and the shift keep the variance, the plain difference does not."""
    x = (1000 + np.random.default_rng(1).normal(size=(1, 512))).astype(np.float32)
    one, zero = np.ones(512, dtype=np.float32), np.zeros(512, dtype=np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean()) / wide.std()
    ways = ("sum_of_squares", "two_pass", "shifted")
    sources = [composed(bundled("layer_norm"), PLAIN | {"eps": "inside_root", "variance": way})[2] for way in ways]
    error = {}
    for way, made in zip(ways, compiled_all(sources, tmp_path), strict=True):
        error[way] = np.abs(made.run([x, one, zero], x.shape, attributes=[0.0]) - expected).max()
    assert error["sum_of_squares"] > 0.01 or np.isnan(error["sum_of_squares"])
    assert error["two_pass"] < 1e-3
    assert error["shifted"] < 1e-3


def test_one_plus_erf_loses_small_results(tmp_path):
    """GELU of -6 is -5.9e-9; formed as 1 + erf it comes out as zero, with erfc it keeps its digits."""
    x = np.array([[-6.0]], dtype=np.float32)
    sources = [composed(bundled("gelu"), PLAIN | {"cdf": way})[2] for way in ("erf", "erfc")]
    rounded, kept = (made.run([x], (1, 1))[0, 0] for made in compiled_all(sources, tmp_path))
    assert rounded == 0.0
    assert kept == pytest.approx(-5.919526e-9, rel=1e-5)
