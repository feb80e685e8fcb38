"""What an input must hold beyond the numbers that the judge draws, e.g. equal elements for argmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from device.operators.base import TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]


def settle(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:
    """Return `drawn` (of the spec's shape, from any distribution) with what `spec.values` asks for.

    "any" leaves it, "ties" keeps five different elements of it, "nans" makes about one in fifty NaN, and at least one.
    """
    if spec.values == "ties":
        kept: Array = rng.choice(drawn.reshape(-1)[:5], size=drawn.shape)
        return kept
    if spec.values == "nans":
        count = max(1, drawn.size // 50)
        result = drawn.copy()
        result.reshape(-1)[rng.choice(drawn.size, size=count, replace=False)] = np.nan
        return result
    return drawn
