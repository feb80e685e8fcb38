"""Runs an operator's reference in float64 on drawn cases, and holds it against a formulation of its own in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from device.operators import Case, get
from device.operators.check import draw

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST = 70_000
"""Elements of the largest input that is worked out by hand: loops in Python take their time."""


def wide(array: Array) -> Array:
    """Floats as float64, complex numbers as complex128, others as they are; a dense copy."""
    kind = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)
    return np.array(array, dtype=kind)


def reference(name: str, *arrays: Array, **attributes: float) -> tuple[Array, ...]:
    """Run the reference on these values in float64."""
    tensors = [torch.from_numpy(wide(np.asarray(array))) for array in arrays]
    return tuple(out.numpy() for out in get(name).reference(*tensors, **attributes))


def small_cases(name: str, largest: int = LARGEST) -> list[Case]:
    """Visible and hidden cases whose inputs are not too large."""
    operator = get(name)
    cases = (*operator.cases, *operator.hidden_cases(np.random.default_rng(11)))
    return [case for case in cases if max(spec.elements for spec in case.inputs) <= largest]


def agree(name: str, by_hand: Callable[..., Any], *, largest: int = LARGEST, rtol: float = 1e-10) -> None:
    """Hold the float64 reference against `by_hand` on all small cases: shapes, and every element."""
    operator = get(name)
    rng = np.random.default_rng(5)
    cases = small_cases(name, largest)
    assert len(cases) >= 6, [case.name for case in cases]
    for case in cases:
        arrays = [wide(draw(spec, rng)) for spec in case.inputs]
        expected = by_hand(*arrays, **case.attributes)
        expected = expected if isinstance(expected, tuple) else (expected,)
        got = reference(name, *arrays, **case.attributes)
        specs = operator.outputs(case)
        assert len(got) == len(expected) == len(specs)
        for mine, theirs, spec in zip(expected, got, specs, strict=True):
            assert theirs.shape == spec.shape, case.name
            size = float(np.abs(np.asarray(mine, dtype=np.complex128)).max(initial=1.0))
            np.testing.assert_allclose(theirs, mine, rtol=rtol, atol=rtol * size, err_msg=f"{name}, {case.name}")
