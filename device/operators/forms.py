"""The forms that most operators share: where an output gets its shape, how long a sum is, which sizes are hard.

An operator that fits these needs little text of its own. Random sizes come from the generator that the judge seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, TensorSpec

if TYPE_CHECKING:
    from numpy.random import Generator


def odd(rng: Generator, low: int, high: int) -> int:
    """Draw an odd size within [low, high]."""
    return 2 * int(rng.integers(low // 2, (high + 1) // 2)) + 1


def prime(rng: Generator, low: int, high: int) -> int:
    """Draw a prime size within [low, high]."""
    sizes = [size for size in range(max(low, 2), high + 1) if all(size % d for d in range(2, math.isqrt(size) + 1))]
    return int(rng.choice(sizes))


def tail(rng: Generator, block: int, low: int, high: int) -> int:
    """Draw a size one above or one below a multiple of `block`, the multiple being within [low, high] blocks."""
    return block * int(rng.integers(low, high + 1)) + (1 if rng.integers(2) else -1)


def swapped(shape: tuple[int, ...]) -> TensorSpec:
    """Describe a view of that shape whose last two axes were transposed: the last axis is not the dense one."""
    *outer, rows, columns = shape
    layout = TensorSpec((*outer, columns, rows)).layout
    return TensorSpec(shape, strides=(*layout[:-2], layout[-1], layout[-2]))


def padded(shape: tuple[int, ...], gap: int = 3) -> TensorSpec:
    """Describe a view of that shape whose rows lie `gap` elements apart, as a slice of a wider tensor does."""
    *outer, columns = shape
    return TensorSpec(shape, strides=TensorSpec((*outer, columns + gap)).layout)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all broadcast to by torch's rule: aligned at the last axis, an axis of size 1 stretches.

    Raises InvalidOperator when two sizes differ and neither is 1.
    """
    result: list[int] = []
    for axis in range(1, max(map(len, shapes)) + 1):
        sizes = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(sizes) > 1:
            raise InvalidOperator(f"shapes {shapes}", f"sizes {sorted(sizes)} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def same(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of the first input's shape and dtype."""
    return (TensorSpec(case.inputs[0].shape, case.inputs[0].dtype),)


def broadcasted(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of the shape that all inputs broadcast to, in the first input's dtype."""
    return (TensorSpec(broadcast(*(spec.shape for spec in case.inputs)), case.inputs[0].dtype),)


def without_last_axis(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of the first input's shape less its last axis."""
    return (TensorSpec(case.inputs[0].shape[:-1], case.inputs[0].dtype),)


def nothing_summed(case: Case) -> int:  # noqa: ARG001  (the form is Operator.accumulation)
    """1: each output element comes from one element of each input."""
    return 1


def last_axis(case: Case) -> int:
    """Return the length of the first input's last axis."""
    return case.inputs[0].shape[-1]


def hidden_rows(
    rng: Generator,
    *,
    inputs: Callable[[TensorSpec], tuple[TensorSpec, ...]] = lambda spec: (spec,),
    attributes: Mapping[str, float] | None = None,
    multiple: int = 1,
) -> tuple[Case, ...]:
    """Hard shapes for an operator that works along the last axis of its first input: short, odd, prime, long, strided.

    `inputs` makes all inputs out of the first, `multiple` divides the length of the last axis.
    """
    rows: dict[str, tuple[int, ...]] = {
        "single": (1, 1),
        "one-column": (odd(rng, 3, 99), 1),
        "one-row": (1, prime(rng, 100, 359)),
        "narrow": (odd(rng, 100, 300), int(rng.integers(2, 16))),
        "prime": (prime(rng, 3, 40), prime(rng, 30, 359)),
        "tail": (odd(rng, 3, 30), tail(rng, 16, 2, 40)),
        "vector": (odd(rng, 500, 3000),),
        "long-row": (2, odd(rng, 60_000, 120_000)),
        "deep": (2, 3, odd(rng, 3, 9), prime(rng, 17, 120)),
        "swapped": (prime(rng, 17, 60), odd(rng, 33, 130)),
        "padded": (odd(rng, 5, 40), prime(rng, 17, 240)),
    }
    cases = []
    for name, (*outer, columns) in rows.items():
        shape = (*outer, columns * multiple)
        first = {"swapped": swapped, "padded": padded}.get(name, TensorSpec)(shape)
        cases.append(Case(name, inputs(first), attributes or {}, hidden=True))
    return tuple(cases)
