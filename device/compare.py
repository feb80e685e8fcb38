"""The compare step: three named rules, each a tolerance for every element of an output.

| rule | an element passes when | source |
|---|---|---|
| `literal` | error <= 1e-3 and error <= 1e-3 |ref| | the words of the method: both maxima within 1e-3 |
| `npukernelbench` | error <= 1e-3 or error <= 1e-3 (|ref| + 1e-7), and it is finite | the benchmark's code |
| `hardened` | error <= s u G(L) (|ref| + rms(ref) + u), and it passes `npukernelbench` or is within one place | below |

`hardened`: u is the unit roundoff of the output's dtype (float64 2^-53, float32 2^-24, float16 2^-11, bfloat16 2^-8),
L the length of the longest accumulation behind one element, rms(ref) the root mean square of the finite reference,
and G(L) = 16 + 8 log2(L). The worst case of a pairwise or blocked sum grows with log2(L) u (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 4.2); that of a single running sum grows with L u, which over a
long row is outside. Rounding inputs to a shorter format is outside, too: 2^-11 is 8192 u of float32. s is 1, and more
for a case that is badly conditioned: where torch itself, in the operator's dtype, errs by a share e > 1/2 of the
bound, s = 2 e, and where the float64 answer moves by a share m > 1/6 of it under inputs moved by 8 u, s = 6 m
(device/oracle.py), so that no honest kernel pays for a cancellation that the formula asks for.
bfloat16 cannot hold 1e-3 of a result, so there the distance of the two numbers round the reference is allowed: either
of them is right (faithful rounding), a third is not. In every other format that is less than
1e-3 |ref|. A kernel that works in float32 and rounds once is within half of it, and what float32 adds.
Whole numbers and bool are exact, but for those that are `rounded` from real ones: half a unit and the bound around
the real number. A complex number is two real ones. The last u is a floor far below any output: where the float64
formula itself rounds to zero (x (1 + erf(x)) far out), a kernel that keeps the true 1e-28 is not wrong. The element's
scale comes from the output, so that zeros cannot pass for small numbers; a case that zeros or a constant would pass
is no evidence, and the judge counts only the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from device.errors import UnknownMode
from device.types import Comparison, RuleName, Tile

Array = np.ndarray[Any, np.dtype[Any]]

UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "complex64": 2.0**-24,
}
ROUNDED_FROM = "float32"
"""What whole numbers are taken to be computed in before they are rounded."""
CLASSES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0, 4.0, 64.0, math.inf)
"""Upper ends of the classes into which errors are sorted, in units of what is allowed; above 1 they are wrong."""
THRESHOLD = 1e-3
_TINY = 1e-7


def growth(accumulation: int) -> float:
    """G(L) = 16 + 8 log2(L), in unit roundoffs; L = 1 where nothing is summed."""
    return 16.0 + 8.0 * math.log2(max(1, accumulation))


def _literal(size: Array, dtype: str, accumulation: int, slack: float) -> Array:  # noqa: ARG001  (the form of a rule)
    return np.minimum(THRESHOLD, THRESHOLD * size)


def _npukernelbench(size: Array, dtype: str, accumulation: int, slack: float) -> Array:  # noqa: ARG001  (the form of a rule)
    return np.maximum(THRESHOLD, THRESHOLD * (size + _TINY))


def _hardened(size: Array, dtype: str, accumulation: int, slack: float) -> Array:
    finite = size[np.isfinite(size)]
    scale = math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0
    unit = UNIT_ROUNDOFF[dtype]
    bound = slack * unit * growth(accumulation) * (size + scale + unit)
    return np.minimum(bound, np.maximum(_npukernelbench(size, dtype, accumulation, slack), last_place(size, dtype)))


def last_place(size: Array, dtype: str) -> Array:
    """Distance of the two numbers of a format between which each size lies: 2^e * 2 u for sizes from 2^e to 2^(e+1)."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(size)
        return np.where(np.isfinite(size) & (size > 0), np.ldexp(2.0 * UNIT_ROUNDOFF[dtype], exponent - 1), 0.0)


RULES: dict[RuleName, Callable[[Array, str, int, float], Array]] = {
    "hardened": _hardened,
    "npukernelbench": _npukernelbench,
    "literal": _literal,
}
"""For each rule, the largest error allowed, from |reference| (float64), dtype, length of accumulation and slack."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one output must be: the float64 (or whole) reference, row-major, and the error allowed for each element."""

    reference: Array
    tolerance: Array | None
    dtype: str
    rule: RuleName
    steady: bool
    """Whether all elements are alike: then zeros or a constant would pass, and the case is no evidence."""
    slack: float = 1.0
    """How much the bound was widened, because the case is badly conditioned."""

    def worst(self, got: Array) -> float:
        """Return the largest error in units of what is allowed; infinite where something is not finite or not equal."""
        return float(self.shares(got).max(initial=0.0))

    def shares(self, got: Array) -> Array:
        """Return each element's error in units of what is allowed."""
        if self.tolerance is None:
            return np.where(got == self.reference, 0.0, math.inf)
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - self.reference)
            ratio = np.where(error == 0, 0.0, error / self.tolerance)
        same = np.isnan(got) & np.isnan(self.reference) | (got == self.reference)
        ratio[same] = 0.0
        ratio[np.isnan(ratio)] = math.inf
        return ratio


def expect(
    reference: Array, dtype: str, accumulation: int, rule: RuleName, *, rounded: bool = False, slack: float = 1.0
) -> Expectation:
    """Work out what is allowed around a reference (float64 for floating and `rounded` outputs, else whole numbers).

    `slack` widens the hardened bound for a badly conditioned case; it never passes what `npukernelbench` refuses.
    """
    if rule not in RULES:
        raise UnknownMode("rule", rule, tuple(RULES))
    if dtype not in UNIT_ROUNDOFF and not rounded:
        steady = bool((reference == reference.reshape(-1)[0]).all())
        return Expectation(reference, None, dtype, rule, steady)
    # An array, also of no axes, where the output has none.
    tolerance = np.array(RULES[rule](np.abs(reference), ROUNDED_FROM if rounded else dtype, accumulation, slack))
    tolerance += 0.5 if rounded else 0.0
    tolerance[~np.isfinite(reference)] = 0.0  # only the same infinity, or a NaN, is right there
    with np.errstate(all="ignore"):
        middle = (float(np.min(reference)) + float(np.max(reference))) / 2
        alike = np.abs(reference - middle) <= tolerance
        zero = np.abs(reference) <= tolerance
    steady = bool(alike.all()) or bool(zero.all())
    return Expectation(reference, tolerance, dtype, rule, steady, slack)


def histogram(shares: Array) -> tuple[int, ...]:
    """Count the errors, in units of what is allowed, in each class of `CLASSES`."""
    counts = np.bincount(np.searchsorted(CLASSES, shares.reshape(-1)), minlength=len(CLASSES))
    return tuple(int(count) for count in counts)


def first_tile(good: Array) -> Tile:
    """Find the box of wrong elements round the first of them; `good` marks those that pass, one at least does not.

    From the first wrong element on it grows along each axis, the last one first, as long as at least half of what it
    would take in is wrong: a wrong tile with some elements right by chance is still one.
    """
    bad = np.atleast_1d(~good)
    first = np.unravel_index(int(bad.reshape(-1).argmax()), bad.shape)
    start, stop = [int(i) for i in first], [int(i) + 1 for i in first]
    for axis in reversed(range(bad.ndim)):
        box = tuple(slice(low, high) for low, high in zip(start, stop, strict=True))
        for step, edge in ((-1, 0), (1, bad.shape[axis])):
            while (start[axis] if step < 0 else stop[axis]) != edge:
                at = start[axis] - 1 if step < 0 else stop[axis]
                place: Any = (*box[:axis], at, *box[axis + 1 :])
                slab = bad[place]
                if 2 * np.count_nonzero(slab) < slab.size:
                    break
                start[axis] -= step < 0
                stop[axis] += step > 0
    box = tuple(slice(low, high) for low, high in zip(start, stop, strict=True))
    tail = tuple(axis for axis, size in enumerate(bad.shape) if stop[axis] == size and start[axis] > 0)
    axes = good.ndim
    return Tile(tuple(start[:axes]), tuple(stop[:axes]), int(np.count_nonzero(bad[box])), tail[:axes])


def passing(expectation: Expectation, got: Array) -> Array:
    """Mark the elements that pass; `got` has the reference's shape and real or whole elements."""
    reference = expectation.reference
    with np.errstate(all="ignore"):
        if expectation.tolerance is None:
            return np.asarray(got == reference)
        error = np.abs(got.astype(np.float64) - reference)
        good: Array = np.asarray(error <= expectation.tolerance)
        if expectation.rule == "npukernelbench":
            good &= np.isfinite(got)
        else:
            good |= (np.isnan(got) & np.isnan(reference)) | (got == reference)
        return good


def compare(expectation: Expectation, got: Array, poison: Array | None = None, output: int = 0) -> Comparison:
    """Hold an output against what is expected; `got` has the reference's shape and real or whole elements.

    `poison` marks elements whose bits are still those that were there before the call: never written.
    """
    good = passing(expectation, got)
    if good.all():
        return Comparison(ok=True)
    return _describe(expectation, got, good, poison, output)


def _describe(expectation: Expectation, got: Array, good: Array, poison: Array | None, output: int) -> Comparison:
    reference = expectation.reference
    first = int(np.argmin(good.reshape(-1)))
    index = tuple(int(i) for i in np.unravel_index(first, reference.shape))
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - reference.astype(np.float64))
        relative = np.where(error == 0, 0.0, error / np.abs(reference.astype(np.float64)))
    expected, value = float(reference.reshape(-1)[first]), float(got.reshape(-1)[first])
    bad = int(good.size - np.count_nonzero(good))
    message = f"output {output} at {list(index)}: expected {expected:.9g}, got {value:.9g}"
    if poison is not None and bool(poison.reshape(-1)[first]):
        message += " (never written)"
    elif expectation.tolerance is not None:
        message += f" (allowed error {float(expectation.tolerance.reshape(-1)[first]):.3g})"
    return Comparison(
        ok=False,
        message=f"{message}; {bad} of {good.size} elements are wrong",
        index=index,
        expected=expected,
        got=value,
        max_abs_error=float(np.nanmax(error)) if not np.isnan(error).all() else math.nan,
        max_rel_error=float(np.nanmax(relative)) if not np.isnan(relative).all() else math.nan,
        tile=first_tile(good),
        errors=histogram(expectation.shares(got)),
    )
