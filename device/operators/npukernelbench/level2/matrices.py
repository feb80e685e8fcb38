"""Triangles of matrices, and the vector product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from device.operators.base import TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed, odd, padded, prime, swapped
from device.operators.npukernelbench.level2.plan import Attributes, Shapes, dense_full, like, planned, same_as

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_VIEWS = "A view's flat index is not its position in memory."
_ZERO = "What is cut off is 0, not NaN times 0: a product with a mask of ones keeps infinities as NaN."


def tril(x: Tensor, *, diagonal: float) -> tuple[Tensor, ...]:
    """Keep the elements with j <= i + diagonal in each matrix, zeros elsewhere."""
    rows, columns = x.shape[-2:]
    i, j = x.new_tensor(range(rows))[:, None].long(), x.new_tensor(range(columns)).long()
    return (x.where(j <= i + int(diagonal), x.new_zeros(())),)


def triu(x: Tensor, *, diagonal: float) -> tuple[Tensor, ...]:
    """Keep the elements with j >= i + diagonal in each matrix, zeros elsewhere."""
    rows, columns = x.shape[-2:]
    i, j = x.new_tensor(range(rows))[:, None].long(), x.new_tensor(range(columns)).long()
    return (x.where(j >= i + int(diagonal), x.new_zeros(())),)


def cross(a: Tensor, b: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Take the vector product of the triples along dim: out[k] = a[k + 1] b[k + 2] - a[k + 2] b[k + 1], k mod 3."""
    axis, x, y = int(dim), wide(a), wide(b)
    product = x.roll(-1, axis) * y.roll(-2, axis) - x.roll(-2, axis) * y.roll(-1, axis)
    return (product.to(a.dtype),)


def cross_of_torch(a: Tensor, b: Tensor, *, dim: float) -> tuple[Tensor, ...]:
    """Call torch's own vector product."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return (torch.linalg.cross(wide(a), wide(b), dim=int(dim)).to(a.dtype),)


def _matrices(rng: Generator) -> Mapping[str, TensorSpec]:
    rows, columns = prime(rng, 17, 80), prime(rng, 17, 120)
    return {
        "prime": TensorSpec((rows, columns)),
        "single": TensorSpec((1, 1)),
        "tall": TensorSpec((odd(rng, 99, 200), 3)),
        "flat": TensorSpec((3, odd(rng, 99, 200))),
        "batch": TensorSpec((2, 3, odd(rng, 3, 30), odd(rng, 3, 30))),
        "swapped": swapped((rows, columns)),
        "padded": padded((rows, columns)),
    }


MATRICES: Shapes[TensorSpec] = Shapes(
    {"large": TensorSpec((512, 1024)), "batch": TensorSpec((64, 100, 100))},
    {
        "tail": TensorSpec((13, 31)),
        "square": TensorSpec((33, 33)),
        "column": TensorSpec((9, 1)),
        "batch-small": TensorSpec((2, 3, 5, 7)),
        "transposed": swapped((31, 45)),
        "sliced": padded((21, 35)),
    },
    _matrices,
)


def _plain(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return (like(first, dtype),)


def _triples(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    shape = list(first.shape)
    shape[int(attributes["dim"])] = 3
    made = TensorSpec(tuple(shape))
    if first.strides is not None:
        made = padded(made.shape) if first.strides[-1] == 1 else swapped(made.shape)
    span = {"int32": (-9999, 10000), "int8": (-7, 8)}.get(dtype)
    return like(made, dtype, span=span), like(made, dtype, span=span, dense=True)


_DIAGONALS: dict[str, Attributes] = {"": {"diagonal": 0}, "up": {"diagonal": 2}, "down": {"diagonal": -3}}
_TRIANGLE_TRAPS = (
    _VIEWS,
    _ZERO,
    "The diagonal counts from the upper left corner, also where the matrix is not square.",
)

OPERATORS = (
    planned(
        "Cross", cross, baseline=cross_of_torch, expert=beside(__file__, "cross.cpp"), family="elementwise",
        summary="out[k] = a[k + 1] * b[k + 2] - a[k + 2] * b[k + 1] along the axis dim, which has size 3, k modulo 3.",
        shapes=replace(MATRICES, timed={"large": TensorSpec((80_000, 3)), "batch": TensorSpec((64, 1500, 3))}),
        inputs=_triples, outputs=same_as(0), dtypes=("float32", "float16", "int32", "int8"),
        variants={"": {"dim": -1}, "first": {"dim": 0}, "second": {"dim": 1}}, accumulation=nothing_summed,
        traps=(_VIEWS, "The axis of size 3 may be any: its elements may lie far apart.",
               "The difference of two products cancels; half numbers are subtracted in float32."),
        full=dense_full(((48, 3, 480), "float32", "second"), ((3, 512, 1024), "float16", "first"),
                        ((48, 1024, 3), "int32")),
    ),
    planned(
        "Tril", tril, baseline=lambda x, *, diagonal: (x.tril(int(diagonal)),), expert=beside(__file__, "tril.cpp"),
        summary="out[.., i, j] = x[.., i, j] where j <= i + diagonal, else 0.",
        family="layout", shapes=MATRICES, inputs=_plain, outputs=same_as(0), variants=_DIAGONALS,
        accumulation=nothing_summed, traps=_TRIANGLE_TRAPS,
        full=dense_full(((48, 64), "float32"), ((1024, 2048), "float16"), ((256, 256), "float32")),
    ),
    planned(
        "Triu", triu, baseline=lambda x, *, diagonal: (x.triu(int(diagonal)),), expert=beside(__file__, "triu.cpp"),
        summary="out[.., i, j] = x[.., i, j] where j >= i + diagonal, else 0.",
        family="layout", shapes=MATRICES, inputs=_plain, outputs=same_as(0), variants=_DIAGONALS,
        accumulation=nothing_summed, traps=_TRIANGLE_TRAPS,
        full=dense_full(((48, 32), "float32"), ((1024, 2048), "float16"), ((256, 256), "float32", "up")),
    ),
)  # fmt: skip
