"""Whether a problem asks something fair: the sizes of its answers, and errors beside what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from device.arena import Array
from device.compare import Expectation
from device.operators.base import TensorSpec

RESIDUE = 2.0**-24
"""An output whose root mean square is below this share of its inputs' is what rounding leaves of larger numbers: of a
saturated softmax's gradient, 1e-12 beside inputs of 30, torch may be right by luck and an honest kernel that sums in
another order be wrong. Such a problem is left out; the cases as given never are."""

LARGEST = {"float16": 65504.0, "float32": float(np.finfo(np.float32).max)}
"""A case whose answer does not fit into the output's format is no evidence either."""


def fits(expected: Sequence[Expectation]) -> bool:
    """Whether every answer fits into the format of its output."""
    sizes = ((e, np.abs(e.reference[np.isfinite(e.reference)])) for e in expected)
    return all(bool(size.max(initial=0.0) <= LARGEST.get(e.dtype, math.inf)) for e, size in sizes)


def stands_out(expected: Sequence[Expectation], inputs: Sequence[Array]) -> bool:
    """Whether every real output is more than the residue of the real inputs; one that is zero throughout is none."""
    scale = max(map(_rms, inputs), default=0.0)
    sizes = [_rms(e.reference) for e in expected if e.tolerance is not None]
    return all(size == 0.0 or size >= RESIDUE * scale for size in sizes)


def worst(
    expected: Sequence[Expectation], answers: Sequence[Sequence[Array]], outputs: Sequence[TensorSpec], *,
    exact: bool = True,
) -> float:  # fmt: skip
    """Return the largest error of some answers, in units of what is allowed; with or without outputs that are exact.

    Of rounded numbers half a unit is allowed from the start, and says nothing about the condition.
    """
    told = ((e, a, s) for each in answers for e, a, s in zip(expected, each, outputs, strict=True))
    return max((e.worst(a) for e, a, s in told if not s.rounded and (exact or e.tolerance is not None)), default=0.0)


def _rms(values: Array) -> float:
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
