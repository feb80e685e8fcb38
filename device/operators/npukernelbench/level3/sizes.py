"""Sizes that the products share: the benchmark's, CPU-sized ones and hard ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec
from device.operators.forms import odd, prime, tail

if TYPE_CHECKING:
    from numpy.random import Generator

Sizes = tuple[int, int, int]

FULL: tuple[Sizes, ...] = (
    (128, 256, 512), (640, 512, 210), (256, 128, 1024), (1024, 864, 128), (327, 1152, 554), (1152, 512, 1433),
    (640, 256, 619), (128, 1152, 1152), (512, 512, 512), (1152, 640, 640),
)  # fmt: skip
"""m, k, n of the full-sized products."""

FULL_LONG: tuple[Sizes, ...] = ((128, 1280, 640), *FULL[1:])

GROUPED: tuple[tuple[int, int, int, int], ...] = (
    (128, 1280, 640, 8), (640, 512, 210, 32), (256, 128, 1024, 12), (1024, 864, 128, 24), (327, 1152, 554, 2),
    (1152, 512, 1433, 64), (640, 256, 619, 32), (512, 512, 512, 4),
)  # fmt: skip
"""m, k, n and the number of groups of the full-sized grouped products."""


def hard_sizes(rng: Generator) -> dict[str, Sizes]:
    """Draw m, k, n: single, thin, prime, off by one, a long sum."""
    m, k, n = prime(rng, 17, 60), prime(rng, 17, 120), prime(rng, 17, 80)
    return {
        "single": (1, 1, 1),
        "row": (1, k, odd(rng, 30, 300)),
        "column": (odd(rng, 30, 300), k, 1),
        "outer": (m, 1, n),
        "prime": (m, k, n),
        "tail": (tail(rng, 12, 1, 5), tail(rng, 64, 1, 3), tail(rng, 32, 1, 3)),
        "long-sum": (3, odd(rng, 2000, 5000), odd(rng, 3, 20)),
    }


def product_cases(
    sizes: dict[str, Sizes],
    make: Callable[[Sizes], tuple[TensorSpec, ...]],
    *,
    timed: int = 0,
    hidden: bool = False,
    attributes: dict[str, float] | None = None,
) -> tuple[Case, ...]:
    """Make a case of each size, the first `timed` of them timed."""
    return tuple(
        Case(name, make(size), attributes or {}, timed=number < timed, hidden=hidden)
        for number, (name, size) in enumerate(sizes.items())
    )


def named(sizes: tuple[Sizes, ...]) -> dict[str, Sizes]:
    """Name full-sized products by their sizes."""
    return {f"full-{m}-{k}-{n}": (m, k, n) for m, k, n in sizes}
