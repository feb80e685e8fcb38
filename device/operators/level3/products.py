"""What the operators built on a matrix product share: output shape, length of the sum, hard sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, TensorSpec
from device.operators.forms import odd, padded, prime, swapped, tail

if TYPE_CHECKING:
    from numpy.random import Generator


def product_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [m, n] output; raises InvalidOperator when the factors [m, k] and [k, n] do not fit."""
    a, b = case.inputs[:2]
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise InvalidOperator(f"case {case.name}", f"{list(a.shape)} and {list(b.shape)} do not multiply")
    return (TensorSpec((a.shape[0], b.shape[1]), a.dtype),)


def summed_axis(case: Case) -> int:
    """Return k, the number of products behind one element."""
    return case.inputs[0].shape[1]


def hidden_products(rng: Generator, more: Callable[[int], tuple[TensorSpec, ...]] | None = None) -> tuple[Case, ...]:
    """Hard factors; `more` makes the inputs after them out of the number of output columns."""
    m, k, n = prime(rng, 17, 100), prime(rng, 17, 200), prime(rng, 17, 100)
    sizes: dict[str, tuple[int, int, int]] = {
        "single": (1, 1, 1),
        "few-elements": (3, odd(rng, 900, 4000), 5),
        "row": (1, k, odd(rng, 100, 500)),
        "column": (odd(rng, 100, 500), k, 1),
        "outer": (m, 1, n),
        "prime": (m, k, n),
        "tail": (tail(rng, 12, 1, 9), tail(rng, 64, 1, 5), tail(rng, 32, 1, 4)),
        "long-sum": (odd(rng, 3, 9), odd(rng, 20_000, 40_000), odd(rng, 3, 20)),
        "swapped-left": (m, k, n),
        "swapped-right": (m, k, n),
        "both-swapped": (m, k, n),
        "padded": (m, k, n),
    }
    left = {"swapped-left": swapped, "both-swapped": swapped, "padded": padded}
    right = {"swapped-right": swapped, "both-swapped": swapped, "padded": padded}
    cases = []
    for name, (rows, depth, columns) in sizes.items():
        a = left.get(name, TensorSpec)((rows, depth))
        b = right.get(name, TensorSpec)((depth, columns))
        cases.append(Case(name, (a, b, *(more(columns) if more else ())), hidden=True))
    return tuple(cases)
