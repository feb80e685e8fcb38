"""Level 1, one formula an element: against numpy, by hand, and by their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.operators import get
from tests.device.operators.references import agree, reference, torch


def by_hand_cast(x, dtype):
    code = int(dtype)
    if code in {0, 7, 8}:  # floating targets keep the float64 value
        return x
    return x.astype({2: np.int32, 4: np.int8, 6: np.bool_}[code])


BY_HAND = {
    "Equal": np.equal,
    "Less": np.less,
    "IsFinite": np.isfinite,
    "AbsMath": np.abs,
    "AddCustom": np.add,
    "Addcdiv": lambda x, a, b, value: x + value * (a / b),
    "Addcmul": lambda x, a, b, value: x + a * b * value,
    "Lerp": lambda a, b, w: (1 - w) * a + w * b,
    "ClipByValue": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "CosMath": lambda x: np.real(np.exp(1j * x)),
    "Rsqrt": lambda x: x**-0.5,
    "CastMath": by_hand_cast,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-10."""
    agree(name, BY_HAND[name])


def test_comparisons_of_special_numbers() -> None:
    """NaN equals nothing and is not less; zeros of both signs are equal; large int64 are told apart."""
    nan, inf = math.nan, math.inf
    a, b = np.array([0.0, nan, inf, 1, -inf]), np.array([-0.0, nan, inf, 2, inf])
    assert reference("Equal", a, b)[0].tolist() == [True, False, True, False, False]
    assert reference("Less", a, b)[0].tolist() == [False, False, False, True, True]
    big = np.array([2**53, 2**53 + 1, -(2**62)])
    assert reference("Less", big, big + 1)[0].all()
    assert reference("IsFinite", np.array([0.0, nan, inf, -inf, 1e300]))[0].tolist() == [
        True,
        False,
        False,
        False,
        True,
    ]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-1e3, 1e3))
def test_a_total_order_has_exactly_one_outcome(values, other) -> None:
    """Of a < b, b < a and a == b exactly one holds for numbers."""
    a, b = np.array(values), np.full(len(values), other)
    outcomes = [reference("Less", a, b)[0], reference("Less", b, a)[0], reference("Equal", a, b)[0]]
    assert (sum(outcome.astype(int) for outcome in outcomes) == 1).all()


def test_magnitudes() -> None:
    """|3 + 4i| = 5, real; |-2^62| stays exact; |-0| is 0 without a sign."""
    (modulus,) = reference("AbsMath", np.array([3 + 4j, -5j, 0]))
    assert modulus.tolist() == [5, 5, 0]
    assert modulus.dtype == np.float64
    assert reference("AbsMath", np.array([-(2**62) - 1]))[0].tolist() == [2**62 + 1]
    assert torch.equal(get("AbsMath").reference(torch.tensor([-3, 4]))[0], torch.tensor([3, 4]))


def test_clipping_where_the_limits_cross() -> None:
    """High wins: with low 5 above high 2 everything becomes 2."""
    x = np.array([-9.0, 3.0, 9.0])
    assert reference("ClipByValue", x, np.array([-1.0]), np.array([4.0]))[0].tolist() == [-1, 3, 4]
    assert reference("ClipByValue", x, np.array([5.0]), np.array([2.0]))[0].tolist() == [2, 2, 2]


def test_linear_interpolation_reaches_both_ends_and_beyond() -> None:
    """Weights 0, 1, 1/2, 2 and -1 between 10 and 20."""
    a, b = np.full(5, 10.0), np.full(5, 20.0)
    assert reference("Lerp", a, b, np.array([0, 1, 0.5, 2, -1.0]))[0].tolist() == [10, 20, 15, 30, 0]


@given(st.floats(-1e4, 1e4))
def test_cosine_is_even_and_bounded(x) -> None:
    """cos(-x) = cos(x), cos^2(x) + cos^2(x - pi/2) = 1."""
    there, back, shifted = reference("CosMath", np.array([x, -x, x - math.pi / 2]))[0]
    assert there == back
    assert there**2 + shifted**2 == pytest.approx(1, abs=1e-11)


def test_reciprocal_root_undoes_a_square() -> None:
    """1 / sqrt(1 / x^2) = x; 4 gives 1/2."""
    x = np.linspace(0.1, 30, 50)
    np.testing.assert_allclose(reference("Rsqrt", 1 / x**2)[0], x, rtol=1e-13)
    assert reference("Rsqrt", np.array([4.0, 0.25]))[0].tolist() == [0.5, 2]


def test_casts_cut_off_wrap_and_round() -> None:
    """-1.7 becomes -1, 300 becomes 44 in eight bits, -3 is true, and 1 + 2^-11 rounds to the even half number 1."""
    assert reference("CastMath", np.array([-1.7, 1.7, 0.2]), dtype=2)[0].tolist() == [-1, 1, 0]
    assert reference("CastMath", np.array([300, -129], dtype=np.int32), dtype=4)[0].tolist() == [44, 127]
    assert reference("CastMath", np.array([-3, 0, 1], dtype=np.int8), dtype=6)[0].tolist() == [True, False, True]
    (half,) = get("CastMath").reference(torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11]), dtype=7)
    assert half.dtype == torch.float16
    assert half.tolist() == [1, 1 + 2.0**-9]
