"""Half of each row negated, and unit matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import SHORT
from device.operators.forms import nothing_summed, odd, padded, prime, same, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def negate_second_half(x: Tensor) -> tuple[Tensor, ...]:
    """Keep the first half of the last axis and negate the second."""
    half = x.shape[-1] // 2
    result = x.clone()
    result[..., half:] *= -1
    return (result,)


def negate_of_torch(x: Tensor) -> tuple[Tensor, ...]:
    """Slice, negate and concatenate."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    kept, negated = x.chunk(2, dim=-1)
    return (torch.cat((kept, -negated), dim=-1),)


def _half_case(name: str, x: TensorSpec, dtype: str, *, timed: bool = False, hidden: bool = False) -> Case:
    return Case(f"{name}-{SHORT[dtype]}", (TensorSpec(x.shape, dtype, x.strides),), timed=timed, hidden=hidden)


def half_hidden(rng: Generator) -> tuple[Case, ...]:
    """Even rows of all lengths, views, every dtype."""
    cases = []
    for dtype in ("float16", "float32", "bfloat16"):
        rows, columns = prime(rng, 3, 40), 2 * odd(rng, 9, 120)
        shapes = {
            "pair": TensorSpec((2,)),
            "narrow": TensorSpec((odd(rng, 3, 90), 2)),
            "odd-halves": TensorSpec((2, rows, columns)),
            "swapped": swapped((rows, columns)),
            "padded": padded((rows, columns)),
        }
        cases += [_half_case(name, spec, dtype, hidden=True) for name, spec in shapes.items()]
    return tuple(cases)


def eye(y: Tensor) -> tuple[Tensor, ...]:
    """Put 1 where the last two indices agree and 0 elsewhere; what y holds does not matter."""
    result = y.new_zeros(y.shape)
    result.diagonal(dim1=-2, dim2=-1).fill_(1)
    return (result,)


def eye_of_torch(y: Tensor) -> tuple[Tensor, ...]:
    """Make one unit matrix and copy it for every batch."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    rows, columns = y.shape[-2:]
    return (torch.eye(rows, columns, dtype=y.dtype).expand(y.shape).contiguous(),)


def _eye_case(name: str, shape: tuple[int, ...], dtype: str, *, timed: bool = False, hidden: bool = False) -> Case:
    return Case(f"{name}-{SHORT[dtype]}", (TensorSpec(shape, dtype),), timed=timed, hidden=hidden)


def eye_hidden(rng: Generator) -> tuple[Case, ...]:
    """Wide, tall, thin and batched matrices of every dtype."""
    cases = []
    for dtype in ("float16", "float32", "int32"):
        small, large = prime(rng, 3, 30), prime(rng, 31, 120)
        shapes = {
            "single": (1, 1),
            "wide": (2, small, large),
            "tall": (2, large, small),
            "column": (3, small, 1),
            "batches": (2, 3, small, small),
        }
        cases += [_eye_case(name, shape, dtype, hidden=True) for name, shape in shapes.items()]
    return tuple(cases)


_HALF = ("float16", "float32", "bfloat16")
_EYE_FULL = (
    ((48, 128, 128), "float16"), ((32, 64, 64), "float32"), ((96, 256, 256), "float32"), ((64, 512, 512), "int32"),
    ((32, 16, 32), "float16"), ((48, 256, 512), "int32"),
)  # fmt: skip
_HALF_FULL = (
    ((8, 16, 32, 64), "float16"), ((1, 32, 256, 128), "float16"), ((1, 128, 512, 512), "float32"),
    ((1, 512, 1024, 1024), "float16"), ((1, 64, 1024, 2048), "bfloat16"), ((8, 16, 256, 256), "float32"),
)  # fmt: skip
OPERATORS = (
    Operator(
        name="StridesliceNegConcatV2",
        level=1,
        family="layout",
        summary="out = x with the second half of the last axis negated; the axis is even.",
        cases=(
            _half_case("large", TensorSpec((512, 1024)), "float16", timed=True),
            _half_case("short-rows", TensorSpec((8192, 64)), "float32", timed=True),
            *(_half_case("tail", TensorSpec((5, 134)), dtype) for dtype in _HALF),
            _half_case("deep", TensorSpec((2, 3, 5, 34)), "bfloat16"),
            _half_case("transposed", swapped((37, 54)), "float16"),
        ),
        full_cases=tuple(
            _half_case(f"full-{i}", TensorSpec(shape), dtype) for i, (shape, dtype) in enumerate(_HALF_FULL)
        ),
        reference=negate_second_half,
        baseline=negate_of_torch,
        outputs=same,
        hidden_cases=half_hidden,
        accumulation=nothing_summed,
        dtypes=_HALF,
        expert_file=beside(__file__, "strideslice_neg_concat_v2.cpp"),
        traps=(
            "The halves are those of the last axis, not of the whole tensor.",
            "Half a row need not be a multiple of any vector.",
        ),
        conditions=("The last axis is even.",),
    ),
    Operator(
        name="Eye",
        level=1,
        family="creation",
        summary="out = unit matrices [.., rows, columns] of y's shape and type; the content of y does not matter.",
        cases=(
            _eye_case("batch", (16, 128, 128), "float16", timed=True),
            _eye_case("wide", (2, 256, 512), "int32", timed=True),
            _eye_case("tall", (3, 33, 17), "float32"),
            _eye_case("row", (2, 1, 31), "float16"),
            _eye_case("deep", (2, 3, 5, 5), "int32"),
        ),
        full_cases=tuple(_eye_case(f"full-{i}", shape, dtype) for i, (shape, dtype) in enumerate(_EYE_FULL)),
        reference=eye,
        baseline=eye_of_torch,
        outputs=same,
        hidden_cases=eye_hidden,
        accumulation=nothing_summed,
        dtypes=("float16", "float32", "int32"),
        expert_file=beside(__file__, "eye.cpp"),
        traps=(
            "The diagonal ends with the shorter of the two axes.",
            "One in float16 is 0x3c00, not the bits of an integer.",
        ),
    ),
)
