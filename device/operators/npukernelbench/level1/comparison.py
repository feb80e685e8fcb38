"""Comparisons and conditions: bool out of numbers of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import beside
from device.operators.pointwise import pointwise

if TYPE_CHECKING:
    from torch import Tensor

_SPANS = {"int8": (-128, 128), "uint8": (0, 256), "int32": (-(2**31), 2**31), "int64": (-(2**62), 2**62)}
_FEW = {"int8": (-3, 4), "uint8": (0, 5), "int32": (-2, 3)}
_FLAT = (1, 3, 224, 224)


def equal(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Tell where two numbers are the same: neither is smaller. NaN equals nothing, 0 equals -0."""
    return ((a <= b) & (a >= b),)


def less(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Tell where a is smaller than b; nothing is smaller than NaN, nor NaN than anything."""
    return (a < b,)


def is_finite(x: Tensor) -> tuple[Tensor, ...]:
    """Tell where x is neither infinite nor NaN: only then is x times zero zero."""
    return (x * 0 == 0,)


OPERATORS = (
    pointwise(
        "Equal",
        equal,
        level=1,
        summary="out = (a == b), bool, element by element.",
        dtypes=("float16", "float32", "bfloat16", "int32", "int8", "uint8"),
        values=("whole", "whole"),
        spans=_FEW,
        output="bool",
        baseline=lambda a, b: (a.eq(b),),
        full=(((4, 3), "float16"), ((32, 64, 512), "float16"), ((512, 2048), "float32"), ((128, 512), "bfloat16"),
              ((1024, 2048), "int8"), ((16, 32, 512), "uint8"), ((4, 128), "int32")),
        expert=beside(__file__, "equal.cpp"),
        traps=(
            "Bits do not decide: 0 and -0 are equal and differ in bits, NaN has the bits of NaN and differs.",
            "The output holds 0 or 1; a byte of 255 is no bool.",
        ),
    ),
    pointwise(
        "Less",
        less,
        level=1,
        summary="out = (a < b), bool, element by element.",
        dtypes=("float16", "float32", "bfloat16", "int32", "int64", "int8", "uint8"),
        values=("any", "nans"),
        spans=_SPANS,
        output="bool",
        baseline=lambda a, b: (a.lt(b),),
        full=(((48, 128, 256), "float16"), (_FLAT, "bfloat16"), (_FLAT, "float32"), (_FLAT, "int32"),
              (_FLAT, "int64"), (_FLAT, "int8"), (_FLAT, "uint8")),
        expert=beside(__file__, "less.cpp"),
        traps=(
            "The sign of a difference is not the order: a - b overflows for int32 and int64.",
            "int64 beyond 2^53 does not survive a detour over floating point.",
            "uint8 200 is not below 100, as it would be for int8.",
            "A comparison with NaN is false, so not (a >= b) is another function.",
        ),
    ),
    pointwise(
        "IsFinite",
        is_finite,
        level=1,
        summary="out = x is neither infinite nor NaN, bool, element by element.",
        dtypes=("float16", "float32"),
        values=("nonfinite",),
        output="bool",
        baseline=lambda x: (x.isfinite(),),
        full=(((48, 128, 512), "float16"), ((96, 64, 1024), "float16"), ((32, 32, 768), "float32"),
              ((48, 8192), "float32")),
        expert=beside(__file__, "is_finite.cpp"),
        traps=(
            "Under -ffast-math the compiler takes every number for finite; look at the exponent bits.",
            "Half precision has five exponent bits, float32 eight.",
        ),
    ),
)  # fmt: skip
