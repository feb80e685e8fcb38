"""What an input must hold beyond the numbers that the judge draws, e.g. equal elements for argmax, indices in range."""

from __future__ import annotations

from typing import Any

import numpy as np

from device.operators.base import TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]

_SPAN = (0, 100)
_WHOLE_LIMIT = 4
_LEAST = 2.0**-6


def settle(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:
    """Return `drawn` (of the spec's shape, from any distribution) with what `spec.values` asks for.

    | values | what comes back |
    |---|---|
    | `any` | `drawn` itself |
    | `ties` | five different elements of it, many times |
    | `nans` | about one in fifty NaN, and at least one |
    | `nonfinite` | about one in nine each NaN, infinity and minus infinity |
    | `whole` | the nearest whole numbers, held within -4 and 4: sums of products are exact in every format |
    | `positive` | absolute values of at least 2^-6 |
    | `small` | the same times 2^-10, as the steps of a quantisation are |
    | `distinct` | no two elements along any axis equal, every number exact in half formats up to 4096 an axis |
    | `partition` | ascending ends of consecutive parts; the last end is the span's, some parts are empty |
    """
    special = _SPECIAL.get(spec.values)
    return drawn if special is None else special(spec, drawn, rng)


def whole_numbers(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Draw an input of whole numbers from its span, [0, 100) by default, with what `spec.values` asks for."""
    low, high = spec.span or _SPAN
    return settle(spec, rng.integers(low, high, spec.shape), rng)


def _ties(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001  (one form for all)
    kept: Array = rng.choice(drawn.reshape(-1)[:5], size=drawn.shape)
    return kept


def _nans(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001  (one form for all)
    count = max(1, drawn.size // 50)
    result = drawn.copy()
    result.reshape(-1)[rng.choice(drawn.size, size=count, replace=False)] = np.nan
    return result


def _nonfinite(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:
    kind = rng.integers(0, 9, spec.shape)
    kind.reshape(-1)[:1] = 0
    return np.select([kind == 0, kind == 1, kind == 2], [np.inf, -np.inf, np.nan], drawn).astype(drawn.dtype)


def _whole(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001  (one form for all)
    kept: Array = np.clip(np.rint(drawn), -_WHOLE_LIMIT, _WHOLE_LIMIT) + 0  # + 0 makes -0 a plain zero
    return kept


def _positive(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001  (one form for all)
    kept: Array = np.maximum(np.abs(drawn), drawn.dtype.type(_LEAST))
    return kept


def _small(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:
    kept: Array = _positive(spec, drawn, rng) * drawn.dtype.type(2.0**-10)
    return kept


def _distinct(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:
    """Draw whole rows without repetition from a span; else make a Latin pattern of eighths of the scale of `drawn`."""
    if spec.span is not None:
        low, high = spec.span
        rows = [rng.permutation(high - low)[: spec.shape[-1]] + low for _ in range(drawn.size // spec.shape[-1])]
        return np.array(rows, dtype=np.int64).reshape(spec.shape)
    size = max(spec.shape)
    pattern = np.zeros(spec.shape, dtype=np.int64)
    for axis, length in enumerate(spec.shape):
        line = rng.permutation(size)[:length]
        pattern += line.reshape(-1, *(1,) * (len(spec.shape) - axis - 1))
    step = 2.0 ** np.floor(np.log2(max(float(np.abs(drawn).mean()), 2.0**-20))) / 8
    kept: Array = ((pattern % size - size // 2) * step).astype(drawn.dtype)
    return kept


def _partition(spec: TensorSpec, drawn: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001  (one form for all)
    low, high = spec.span or _SPAN
    ends = np.sort(rng.integers(low, high, spec.shape), axis=-1)
    ends[..., -1] = high - 1
    if ends.shape[-1] > 2:
        ends[..., 1] = ends[..., 0]  # one part without anything in it
    return ends


_SPECIAL = {
    "ties": _ties,
    "nans": _nans,
    "nonfinite": _nonfinite,
    "whole": _whole,
    "positive": _positive,
    "small": _small,
    "distinct": _distinct,
    "partition": _partition,
}
