"""What special inputs hold, in every type that an operator may ask for."""

from __future__ import annotations

import numpy as np
import pytest

from device.errors import InvalidOperator
from device.operators import TensorSpec
from device.operators.base import DTYPES
from device.operators.check import draw
from device.operators.values import settle, whole_numbers

RNG_SEED = 3


def settled(shape, values, dtype="float32", **more):
    rng = np.random.default_rng(RNG_SEED)
    return settle(TensorSpec(shape, dtype, values=values, **more), rng.standard_normal(shape) * 3, rng)


def test_not_finite_numbers_come_in_all_three_kinds() -> None:
    """NaN and both infinities, each about one in nine, and one at least in a single element."""
    x = settled((90, 10), "nonfinite")
    for kind in (np.isnan(x), np.isposinf(x), np.isneginf(x)):
        assert 50 < kind.sum() < 150
    assert not np.isfinite(settled((1,), "nonfinite")).any()


def test_whole_and_positive_and_small_numbers() -> None:
    """Whole numbers stay within -4 and 4 and carry no -0; positive ones reach 2^-6; small ones are 2^10 times less."""
    whole = settled((1000,), "whole")
    assert set(whole.tolist()) == set(range(-4, 5))
    assert not np.signbit(whole[whole == 0]).any()
    positive = settled((1000,), "positive")
    assert positive.min() >= 2.0**-6
    np.testing.assert_array_equal(settled((1000,), "small"), positive / 1024)


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 131), (512, 256), (8, 16, 32)])
def test_distinct_numbers_differ_along_every_axis_in_half_precision(shape) -> None:
    """Sorted along any axis no neighbours are equal, also after rounding to float16."""
    x = settled(shape, "distinct").astype(np.float16)
    for axis in range(len(shape)):
        assert (np.diff(np.sort(x, axis=axis), axis=axis) != 0).all()


def test_distinct_whole_numbers_are_drawn_without_repetition() -> None:
    """Each row of a table names a block at most once."""
    spec = TensorSpec((20, 6), "int32", values="distinct", span=(2, 9))
    rows = whole_numbers(spec, np.random.default_rng(0))
    assert all(len(set(row)) == 6 for row in rows.tolist())
    assert rows.min() == 2
    assert rows.max() == 8


def test_a_partition_ends_where_its_span_does_and_has_an_empty_part() -> None:
    """Ends do not fall; the last is the span's; of three parts and more the second is empty."""
    for seed in range(20):
        spec = TensorSpec((5,), "int64", values="partition", span=(0, 41))
        ends = whole_numbers(spec, np.random.default_rng(seed))
        assert (np.diff(ends) >= 0).all()
        assert ends[-1] == 40
        assert ends[1] == ends[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_input_of_every_type_is_drawn(dtype) -> None:
    """In the type itself, bfloat16 as float32 numbers that fit into sixteen bits; whole numbers within their span."""
    span = (-5, 6) if dtype.startswith("int") else None
    x = draw(TensorSpec((40, 50), dtype, span=span), np.random.default_rng(0))
    if dtype == "bfloat16":
        assert not (np.ascontiguousarray(x).view(np.uint32) & 0xFFFF).any()
    elif dtype != "float64":
        assert x.dtype == dtype
    if span:
        assert (x.min(), x.max()) == (-5, 5)
    assert len(np.unique(x)) > 1


@pytest.mark.parametrize(
    ("dtype", "more", "message"),
    [
        ("float32", {"span": (0, 4)}, "span"),
        ("int32", {"span": (4, 4)}, "the first smaller"),
        ("float16", {"rounded": True}, "rounded"),
    ],
)
def test_an_impossible_tensor_is_refused(dtype, more, message) -> None:
    """Only whole numbers have a span or are rounded, and a span holds something."""
    with pytest.raises(InvalidOperator, match=message):
        TensorSpec((3,), dtype, **more)
