"""Lists of tensors: their shapes, and how one call's inputs are the lists one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, Values
from device.operators.forms import odd, padded, prime, swapped, tail
from device.operators.npukernelbench.level2.plan import Attributes, Inputs, Outputs, Shapes

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Specs = tuple[TensorSpec, ...]
ONE: Specs = (TensorSpec((1,)),)
MIXED: Specs = tuple(map(TensorSpec, ((1,), (15,), (512, 3), (128, 512), (1, 3, 64, 64), (24, 1023))))
"""Six tensors, of one number to 65,536."""
WHOLE: Specs = tuple(map(TensorSpec, ((1,), (15,), (512, 3), (1024, 512, 128), (1, 3, 224, 224), (24, 1023))))
"""The six with the sizes that an accelerator has."""
FLAT: Specs = tuple(map(TensorSpec, ((8192,), (2048,), (512, 512), (24, 16, 16, 16))))


def in_lists(tensors: Sequence[Tensor], count: int) -> tuple[Sequence[Tensor], ...]:
    """Split inputs into `count` lists of one length, which follow each other."""
    length = len(tensors) // count
    return tuple(tensors[i * length : (i + 1) * length] for i in range(count))


def _hidden(rng: Generator) -> Mapping[str, Specs]:
    rows, columns = prime(rng, 3, 40), prime(rng, 30, 359)
    return {
        "odd": (TensorSpec((odd(rng, 3, 99),)), TensorSpec((rows, columns)), TensorSpec((2, 3, odd(rng, 3, 50)))),
        "single": ONE,
        "long": (TensorSpec((tail(rng, 64, 100, 800),)), TensorSpec((1,)), TensorSpec((odd(rng, 3, 30), 1))),
        "swapped": (swapped((rows, columns)), swapped((odd(rng, 3, 30), odd(rng, 3, 30)))),
        "padded": (padded((rows, columns)), TensorSpec((tail(rng, 64, 1, 8),))),
        "many": tuple(TensorSpec((int(size),)) for size in rng.integers(1, 200, 9)),
    }


LISTS: Shapes[Specs] = Shapes(
    {"mixed": MIXED, "flat": FLAT},
    {
        "short": tuple(map(TensorSpec, ((1,), (15,), (51, 3), (7, 131)))),
        "one": ONE,
        "views": (swapped((37, 53)), padded((21, 45)), TensorSpec((5,))),
        "rows": (TensorSpec((25,)), TensorSpec((3, 1000))),
        "deep": (TensorSpec((2, 3, 5, 33)),),
    },
    _hidden,
)


def threes(shapes: Shapes[Specs]) -> Shapes[Specs]:
    """Return the same shapes with lists of exactly three tensors."""

    def three(specs: Specs) -> Specs:
        return (specs * 3)[:3]

    return Shapes(
        {name: three(specs[-3:]) for name, specs in shapes.timed.items()},
        {name: three(specs) for name, specs in shapes.small.items()},
        lambda rng: {name: three(specs) for name, specs in shapes.hidden(rng).items()},
    )


def listed(*values: Values, spans: Mapping[str, tuple[int, int]] | None = None, scalars: bool = False) -> Inputs[Specs]:
    """Return a rule for inputs: one list for each of `values`, and, with `scalars`, one number a tensor at the end.

    The scalars are one tensor, float32, or int32 for lists of int32. The last of several lists is dense.
    """

    def inputs(first: Specs, dtype: str, attributes: Attributes) -> Specs:
        del attributes
        span = (spans or {}).get(dtype)
        made = []
        for number, kind in enumerate(values):
            dense = number > 0 and number == len(values) - 1
            kept: Values = "any" if dtype == "int32" else kind
            made += [TensorSpec(one.shape, dtype, None if dense else one.strides, kept, span) for one in first]
        if scalars:
            whole = dtype == "int32"
            made.append(TensorSpec((len(first),), dtype if whole else "float32", span=(-9, 10) if whole else None))
        return tuple(made)

    return inputs


def first_list(count: int, scalars: int = 0) -> Outputs:
    """Return a rule for outputs: dense tensors of the shapes of the first of `count` lists, less trailing scalars."""

    def outputs(case: Case) -> Specs:
        length = (len(case.inputs) - scalars) // count
        return tuple(TensorSpec(spec.shape, spec.dtype) for spec in case.inputs[:length])

    return outputs
