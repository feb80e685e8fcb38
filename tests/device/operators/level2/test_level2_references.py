"""Every level 2 reference against a formulation of its own in numpy; every operator agrees with itself."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from device.operators import get, names
from device.operators.check import problems
from device.operators.npukernelbench import LEVEL2
from tests.device.operators.level2.by_hand_other import OTHER
from tests.device.operators.level2.by_hand_rows import ROWS
from tests.device.operators.level2.by_hand_simple import SIMPLE
from tests.device.operators.level2.kit import cases_of, drawn, run

BY_HAND = {**SIMPLE, **ROWS, **OTHER}
LOOSE = {"FastGeluGrad": 1e-8, "GeluGrad": 1e-8}
"""Derivatives by differences have fewer digits than the reference."""

LEVEL_2 = [name for name in names("npukernelbench") if get(name).level == 2]


def test_every_operator_has_a_formulation_of_its_own() -> None:
    """No level 2 operator is without one, and none is listed that does not exist."""
    assert set(BY_HAND) == set(LEVEL_2)
    assert len(LEVEL2) == len(set(LEVEL2))


@pytest.mark.parametrize("name", LEVEL_2)
def test_a_reference_agrees_with_a_formulation_of_its_own(name) -> None:
    """In float64 both give the same on visible and hidden cases; whole numbers and bool exactly."""
    operator, rng = get(name), np.random.default_rng(17)
    for case in cases_of(operator):
        arrays = drawn(case, rng)
        expected, got = BY_HAND[name](*arrays, **case.attributes), run(operator, *arrays, **case.attributes)
        assert len(got) == len(expected), case.name
        for a, b in zip(expected, got, strict=True):
            assert np.shape(a) == b.shape, case.name
            if b.dtype.kind != "f":
                assert np.array_equal(a, b), case.name
                continue
            tolerance = LOOSE.get(name, 1e-11)
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * scale, err_msg=case.name)


@pytest.mark.parametrize("name", LEVEL_2)
def test_an_operator_agrees_with_itself(name) -> None:
    """Declared outputs, reference, torch's call, case names and hidden cases fit, in float64 and each case's type."""
    assert problems(get(name), seed=3) == ()


@pytest.mark.parametrize("name", LEVEL_2)
def test_an_author_is_told_what_matters(name) -> None:
    """Two traps at least, a summary with the formula, full-sized cases, and cases of every type it names."""
    operator = get(name)
    assert len(operator.traps) >= 2
    assert all(line.endswith(".") for line in (*operator.traps, *operator.conditions))
    assert "=" in operator.summary
    assert len(operator.full_cases) >= 2
    assert {spec.dtype for case in operator.cases for spec in case.inputs} >= set(operator.dtypes)
    hidden = operator.hidden_cases(np.random.default_rng(1))
    assert hidden == operator.hidden_cases(np.random.default_rng(1))
    assert hidden != operator.hidden_cases(np.random.default_rng(2))
