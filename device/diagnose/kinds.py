"""How a wrong result is wrong: each way a small function, the most telling first.

All look at one tensor: what it should be (float64), what it is, and marks on its wrong elements, of one shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from device.arena import Array

KindName = Literal[
    "unwritten", "zeros", "nan", "infinite", "constant", "negated", "scaled", "shifted by a constant", "transposed",
    "moved", "rounded", "tail of each row", "last rows", "from one element on", "scattered", "everywhere", "partly",
]  # fmt: skip

CLOSE = 1e-3
"""Two numbers that differ by so little of the scale are alike, when a pattern is looked for: a wrong kernel may be both
scaled and rounded."""

SMALL = 1e-2
SOME = 0.01
TAIL = 64
MOST_MOVED = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """One tensor: expected and got in float64, and marks on the wrong elements and on those that were never written."""

    expected: Array
    got: Array
    bad: Array
    unwritten: Array | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to be wrong, in words that name its numbers, and what makes kernels wrong in this way."""

    name: KindName
    words: str
    advice: str
    number: float | None = None


def classify(seen: Seen) -> Kind:
    """Return the most telling way in which the tensor is wrong; some element must be marked."""
    with np.errstate(all="ignore"):
        for look in LOOKS:
            if (kind := look(seen)) is not None:
                return kind
    share = float(seen.bad.mean())
    return Kind("partly", f"{share:.0%} of the elements are wrong, in no pattern known here", "look where it begins")


def unwritten(seen: Seen) -> Kind | None:
    """All wrong elements still hold what was there before the call."""
    if seen.unwritten is None or not bool(seen.unwritten[seen.bad].all()):
        return None
    return Kind(
        "unwritten", "the wrong elements were never written",
        "does the loop cover the last elements, the last rows, each thread's share, each stride?",
    )  # fmt: skip


def zeros(seen: Seen) -> Kind | None:
    """All wrong elements are 0."""
    if seen.got[seen.bad].any():
        return None
    advice = "is this stored before it is computed, multiplied with an empty accumulator, or rounded to 0?"
    return Kind("zeros", "the wrong elements are 0", advice)


def nan(seen: Seen) -> Kind | None:
    """Most wrong elements are NaN."""
    if not _mostly(np.isnan(seen.got[seen.bad])):
        return None
    return Kind(
        "nan", "the wrong elements are NaN",
        "0/0, inf-inf, the root of a negative variance, or memory that was never written?",
    )  # fmt: skip


def infinite(seen: Seen) -> Kind | None:
    """Most wrong elements are infinite."""
    if not _mostly(np.isinf(seen.got[seen.bad])):
        return None
    advice = "an exponential without its maximum taken off, or a division by 0?"
    return Kind("infinite", "the wrong elements are infinite", advice)


def constant(seen: Seen) -> Kind | None:
    """All wrong elements, several and not all meant to be alike, hold one number."""
    wrong = seen.got[seen.bad]
    if wrong.size < 2 or not bool((wrong == wrong[0]).all()) or np.ptp(seen.expected[seen.bad]) == 0:
        return None
    advice = "is the index of the loop used, and is one row's result written to all?"
    return Kind("constant", f"the wrong elements are all {wrong[0]:.6g}", advice, float(wrong[0]))


def rounded(seen: Seen) -> Kind | None:
    """Each is close to what it should be: digits were lost."""
    scale = _scale(seen.expected)
    error = np.abs(seen.got - seen.expected)[seen.bad]
    close = error <= SMALL * np.maximum(np.abs(seen.expected[seen.bad]), 0.1 * scale)
    if not bool(close.all()):
        return None
    worst = float((error / np.maximum(np.abs(seen.expected[seen.bad]), 0.1 * scale)).max())
    return Kind(
        "rounded", f"all are close, within {worst:.1e} of what they should be: digits were lost",
        "sum in blocks or in double, avoid differences of large numbers, approximations and shorter formats", worst,
    )  # fmt: skip


def scaled(seen: Seen) -> Kind | None:
    """All elements are a constant multiple of what they should be."""
    expected, got = _finite(seen)
    weight = float(np.dot(expected, expected))
    if expected.size < 2 or weight == 0 or not _mostly(seen.bad):
        return None
    factor = float(np.dot(got, expected)) / weight
    if abs(factor) < CLOSE or not _alike(got, factor * expected) or _alike(got, expected):
        return None
    if abs(factor + 1) < CLOSE:
        return Kind("negated", "all have the wrong sign", "a difference taken the other way round?", -1.0)
    return Kind(
        "scaled", f"all are {factor:.6g} times what they should be",
        "a factor that is missing or applied twice: a mean's 1/n, 1/sqrt(d), an attribute?", factor,
    )  # fmt: skip


def shifted(seen: Seen) -> Kind | None:
    """All elements are off by one constant."""
    expected, got = _finite(seen)
    if expected.size < 2 or not _mostly(seen.bad) or float(np.std(expected)) < CLOSE * _scale(expected):
        return None
    shift = float(np.median(got - expected))
    if not _alike(got - shift, expected) or abs(shift) <= CLOSE * _scale(expected):
        return None
    advice = "a bias, an eps or a maximum that is missing or counted twice?"
    return Kind("shifted by a constant", f"all are off by {shift:.6g}", advice, shift)


def transposed(seen: Seen) -> Kind | None:
    """The numbers are right in the order of the last two axes exchanged."""
    if seen.expected.ndim < 2 or min(seen.expected.shape[-2:]) < 2:
        return None
    *outer, rows, columns = seen.expected.shape
    turned = seen.got.reshape(*outer, columns, rows).swapaxes(-1, -2)
    if not _alike(turned.reshape(-1), seen.expected.reshape(-1)):
        return None
    advice = "rows and columns, or the strides of an input, are exchanged"
    return Kind("transposed", "the right numbers, with the last two axes exchanged", advice)


def moved(seen: Seen) -> Kind | None:
    """The right numbers a few places away, in memory order."""
    expected, got = seen.expected.reshape(-1), seen.got.reshape(-1)
    for by in range(1, min(MOST_MOVED, expected.size // 4) + 1):
        for sign in (by, -by):
            here, there = (got[by:], expected[:-by]) if sign > 0 else (got[:-by], expected[by:])
            if np.ptp(there) > 0 and _alike(here, there):
                words = f"the right numbers, {abs(sign)} places too {'late' if sign > 0 else 'early'}"
                return Kind("moved", words, "an index or a stride that is off by a few elements", float(sign))
    return None


def tail_of_rows(seen: Seen) -> Kind | None:
    """Only the last columns are wrong, in most rows."""
    if seen.bad.ndim == 0 or seen.bad.shape[-1] < 2:
        return None
    columns = seen.bad.reshape(-1, seen.bad.shape[-1]).any(axis=0)
    first, count = int(columns.argmax()), columns.size
    if first == 0 or count - first > min(TAIL, count // 2):
        return None
    return Kind(
        "tail of each row", f"only columns {first} to {count - 1} of {count} are wrong",
        "the elements that fill no whole vector or tile need a loop or a mask of their own", float(first),
    )  # fmt: skip


def last_rows(seen: Seen) -> Kind | None:
    """Only the last rows are wrong, and these wholly."""
    if seen.bad.ndim < 2:
        return None
    rows = seen.bad.reshape(-1, seen.bad.shape[-1])
    first, count = int(rows.any(axis=1).argmax()), len(rows)
    if first == 0 or rows[first:].mean() < 1 - SOME:
        return None
    return Kind(
        "last rows", f"only rows {first} to {count - 1} of {count} are wrong, and these wholly",
        "the rows that fill no whole tile, or the share of the last thread, are left out", float(first),
    )  # fmt: skip


def from_one_on(seen: Seen) -> Kind | None:
    """All is right up to one element, and all after it is wrong."""
    flat = seen.bad.reshape(-1)
    first = int(flat.argmax())
    if first == 0 or flat[first:].mean() < 1 - SOME:
        return None
    words = f"all is right up to element {first} of {flat.size}, and wrong from there"
    return Kind("from one element on", words, "the loop ends early, or a block is worked on twice", float(first))


def scattered(seen: Seen) -> Kind | None:
    """A few elements here and there are wrong."""
    share = float(seen.bad.mean())
    if share > SOME or seen.bad.size < 100:
        return None
    count = int(seen.bad.sum())
    advice = "special values, the borders of blocks, ties, or a race between threads"
    return Kind("scattered", f"{count} of {seen.bad.size} elements are wrong", advice, share)


def everywhere(seen: Seen) -> Kind | None:
    """Almost all is wrong."""
    if not _mostly(seen.bad):
        return None
    expected, got = _finite(seen)
    related = float(np.corrcoef(expected, got)[0, 1]) if expected.size > 2 and np.ptp(got) and np.ptp(expected) else 0.0
    return Kind(
        "everywhere", f"wrong everywhere; correlation with what it should be {related:.2f}",
        "the formula, an attribute, or the stage before", related,
    )  # fmt: skip


LOOKS: tuple[Callable[[Seen], Kind | None], ...] = (
    unwritten, zeros, nan, infinite, rounded, scaled, shifted, transposed, moved, constant, tail_of_rows, last_rows,
    from_one_on, scattered, everywhere,
)  # fmt: skip


def region(bad: Array) -> tuple[tuple[int, int], ...]:
    """The wrong box that begins at the first wrong element: for each axis its begin and its end, exclusive.

    It is grown along the last axis as far as elements are wrong, then along each axis before as far as all of it is.
    """
    first = np.unravel_index(int(np.argmax(bad.reshape(-1))), bad.shape)
    spans = [slice(int(at), int(at) + 1) for at in first]
    for axis in reversed(range(bad.ndim)):
        while spans[axis].stop < bad.shape[axis]:
            beside = list(spans)
            beside[axis] = slice(spans[axis].stop, spans[axis].stop + 1)
            if not bool(bad[tuple(beside)].all()):
                break
            spans[axis] = slice(spans[axis].start, spans[axis].stop + 1)
    return tuple((span.start, span.stop) for span in spans)


def _mostly(marks: Array) -> bool:
    return bool(marks.size) and float(marks.mean()) > 1 - SOME


def _finite(seen: Seen) -> tuple[Array, Array]:
    both = np.isfinite(seen.expected) & np.isfinite(seen.got)
    return seen.expected[both].astype(np.float64), seen.got[both].astype(np.float64)


def _scale(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0


def _alike(one: Array, other: Array) -> bool:
    """Whether almost all elements are as close as a pattern needs."""
    return _mostly(np.abs(one - other) <= CLOSE * np.maximum(np.abs(other), 0.1 * _scale(other)))
