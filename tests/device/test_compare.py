"""The three rules on numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.compare import RULES, compare, expect, growth
from device.errors import UnknownMode

U = 2.0**-24


def one(rule: str, reference: float, got: float, accumulation: int = 1) -> bool:
    """Whether an output of that single element passes."""
    expectation = expect(np.array([reference]), "float32", accumulation, rule)  # type: ignore[arg-type]
    return compare(expectation, np.array([got], dtype=np.float64)).ok


@pytest.mark.parametrize(
    ("rule", "reference", "got", "passes"),
    [
        ("literal", 1.0, 1.0009, True),  # 9e-4 absolute and relative
        ("literal", 1.0, 1.0011, False),  # 1.1e-3 both
        ("literal", 0.1, 0.1005, False),  # 5e-4 absolute, 5e-3 relative
        ("literal", 100.0, 100.05, False),  # 0.05 absolute, 5e-4 relative
        ("literal", 0.0, 1e-12, False),  # near a zero every error is infinite relative to it
        ("npukernelbench", 0.1, 0.1005, True),  # one of the two within 1e-3 is enough
        ("npukernelbench", 100.0, 100.05, True),
        ("npukernelbench", 0.1, 0.102, False),  # 2e-3 absolute and 2e-2 relative
        ("npukernelbench", 1e-4, 0.0, True),  # small numbers pass as zeros
        ("hardened", 1e-4, 0.0, False),
        ("hardened", 1.0, 1.0 + 31 * U, True),  # 16 u (1 + rms 1) = 32 u
        ("hardened", 1.0, 1.0 + 33 * U, False),
        ("hardened", 1e6, 1e6 * (1 + 5e-4), False),
    ],
)
def test_one_element_under_a_rule(rule: str, reference: float, got: float, passes: bool) -> None:
    """Each rule passes and refuses at the limits that its words give."""
    assert one(rule, reference, got) is passes


def test_bound_grows_with_the_logarithm_of_the_accumulation() -> None:
    """G(1024) = 16 + 8 * 10 = 96 unit roundoffs, on |ref| + rms = 2."""
    assert growth(1) == 16.0
    assert growth(1024) == 96.0
    assert one("hardened", 1.0, 1.0 + 191 * U, 1024)
    assert not one("hardened", 1.0, 1.0 + 193 * U, 1024)


@given(
    st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=20),
    st.integers(1, 1 << 40),
    st.sampled_from(["float32", "float16", "bfloat16"]),
    st.floats(1.0, 1e6),
)
def test_hardened_is_never_looser_than_both_other_rules(
    values: list[float], accumulation: int, dtype: str, slack: float
) -> None:
    """Whatever length: what `hardened` allows, `npukernelbench` or `literal` allows too, or it is bfloat16's last place."""
    size = np.abs(np.array(values))
    others = np.maximum(RULES["npukernelbench"](size, dtype, 1, 1.0), RULES["literal"](size, dtype, 1, 1.0))
    if dtype == "bfloat16":
        others = np.maximum(others, 2.0**-7 * size + 5e-324)  # where the product is no normal number it is rounded
    assert (RULES["hardened"](size, dtype, accumulation, slack) <= others).all()


@given(st.lists(st.floats(1e-6, 1e20).flatmap(lambda v: st.sampled_from([v, -v])), min_size=2, max_size=20))
def test_zeros_never_pass_the_hardened_rule(values: list[float]) -> None:
    """The largest element is at least as large as the root mean square, far above its bound."""
    expectation = expect(np.array(values), "float32", 1 << 20, "hardened")
    assert not compare(expectation, np.zeros(len(values))).ok


def test_first_bad_element_is_named() -> None:
    """Expected [[1, 2, 3], [4, 5, 6]], got 5.5 and 7: the first is [1, 1], the largest error 1 (1/6 of 6)."""
    reference = np.arange(1.0, 7.0).reshape(2, 3)
    got = reference.copy()
    got[1, 1], got[1, 2] = 5.5, 7.0
    result = compare(expect(reference, "float32", 1, "hardened"), got)
    assert (result.ok, result.index, result.expected, result.got) == (False, (1, 1), 5.0, 5.5)
    assert result.max_abs_error == 1.0
    assert result.max_rel_error == pytest.approx(1 / 6)
    assert "2 of 6 elements are wrong" in result.message


@pytest.mark.parametrize(
    ("reference", "got", "passes"),
    [
        (math.nan, math.nan, True),
        (math.nan, 0.0, False),
        (0.5, math.nan, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.inf, 3e38, False),
        (3e38, math.inf, False),
    ],
)
def test_what_is_not_finite_must_match_exactly(reference: float, got: float, passes: bool) -> None:
    """NaN is no wild card, and an overflow is not close to anything."""
    expectation = expect(np.array([reference, 1.0]), "float32", 1, "hardened")
    assert compare(expectation, np.array([got, 1.0])).ok is passes


def test_not_finite_fails_in_the_benchmarks_rule() -> None:
    """The benchmark's code fails on anything that is not finite, even where the reference is not either."""
    expectation = expect(np.array([math.inf, 1.0]), "float32", 1, "npukernelbench")
    assert not compare(expectation, np.array([math.inf, 1.0])).ok


def test_a_correctly_rounded_half_number_passes() -> None:
    """The middle between two bfloat16 numbers, 1 + 2^-8, passes as either and not as the ones beyond."""
    between = expect(np.array([1 + 2.0**-8, 40.0]), "bfloat16", 1, "hardened")
    for steps, passes in ((0, True), (1, True), (2, False), (-1, False)):
        assert compare(between, np.array([1 + steps * 2.0**-7, 40.0])).ok is passes


def test_rounded_whole_numbers_stand_half_a_unit_from_the_real_one() -> None:
    """Of 2.5 both neighbours are right, of 2.4 only 2; unless rounding is declared, a real number equals no whole one."""
    real = np.array([2.5, 2.4, -7.0])
    expectation = expect(real, "int8", 1, "hardened", rounded=True)
    assert compare(expectation, np.array([2, 2, -7], dtype=np.int8)).ok
    assert compare(expectation, np.array([3, 2, -7], dtype=np.int8)).ok
    assert compare(expectation, np.array([3, 3, -7], dtype=np.int8)).index == (1,)
    assert not compare(expect(real, "int8", 1, "hardened"), np.array([2, 2, -7], dtype=np.int8)).ok


def test_whole_numbers_are_exact() -> None:
    """An index that is one off is wrong, however large."""
    expectation = expect(np.array([1 << 40, 7]), "int64", 1, "npukernelbench")
    assert compare(expectation, np.array([1 << 40, 7])).ok
    result = compare(expectation, np.array([(1 << 40) + 1, 7]))
    assert (result.ok, result.index, result.max_abs_error) == (False, (0,), 1.0)


@pytest.mark.parametrize(
    ("reference", "steady"),
    [([0.0, 0.0], True), ([3.0, 3.0], True), ([1.0], True), ([1.0, 1.0001], False), ([0.0, 1e-3], False)],
)
def test_a_case_that_a_constant_would_pass_is_no_evidence(reference: list[float], steady: bool) -> None:
    """All zeros, or all one number, cannot tell a kernel from a fill."""
    assert expect(np.array(reference), "float32", 1, "hardened").steady is steady


def test_a_rule_that_is_not_there_is_named() -> None:
    """The message lists the rules that are."""
    with pytest.raises(UnknownMode, match="'lax'; known: hardened, npukernelbench, literal"):
        expect(np.zeros(1), "float32", 1, "lax")  # type: ignore[arg-type]


def test_in_bfloat16_either_number_round_the_answer_is_right_and_no_third() -> None:
    """Faithful rounding, from one power of two to the next: 1e-3 of a result can not be held in eight bits."""
    below = np.linspace(1.0, 2.0, 129)[:-1]  # every bfloat16 number from 1 on
    step = 2.0**-7
    reference = below + 0.3 * step
    expected = expect(reference, "bfloat16", 4096, "hardened")
    assert compare(expected, below).ok
    assert compare(expected, below + step).ok
    for third in (below - step, below + 2 * step):
        assert compare(expected, third).errors[-3:] == (128, 0, 0)


def test_a_zero_has_no_last_place() -> None:
    """Among ones, a bfloat16 zero is as exact as 1e-3 asks for."""
    expected = expect(np.array([0.0, 1.0, 1.0]), "bfloat16", 1 << 20, "hardened")
    assert expected.tolerance is not None
    assert expected.tolerance[0] == pytest.approx(1e-3)


def test_one_rounding_to_bfloat16_passes_and_two_do_not() -> None:
    """A product and a sum in float32, rounded once, against the product rounded to bfloat16 before z is added."""
    rng = np.random.default_rng(3)
    x, y, z = rng.standard_normal((3, 4096)).astype(np.float32)
    reference = x.astype(np.float64) * y + z
    expected = expect(reference, "bfloat16", 1, "hardened")
    assert compare(expected, _bfloat16(x * y + z)).ok
    assert not compare(expected, _bfloat16(_bfloat16(x * y) + z)).ok


def _bfloat16(values: Any) -> Any:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return rounded.astype(np.uint32).view(np.float32)
