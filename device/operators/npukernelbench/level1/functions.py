"""Functions of one number, and conversion from one type to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import DTYPES, Case, Operator, TensorSpec, beside
from device.operators.formats import SHORT, wide
from device.operators.forms import nothing_summed, odd, padded, prime, swapped
from device.operators.pointwise import Pointwise, pointwise

if TYPE_CHECKING:
    import torch
    from numpy.random import Generator
    from torch import Tensor

_FLAT = (1, 3, 224, 224)


def magnitude(x: Tensor) -> tuple[Tensor, ...]:
    """Give the distance from zero; of a complex number the root of the sum of both squares, a real number."""
    if x.is_complex():
        return ((x.real.square() + x.imag.square()).sqrt(),)
    return (x.where(x >= 0, -x),)


def cosine(x: Tensor) -> tuple[Tensor, ...]:
    """Take the cosine of an angle in radians."""
    return (wide(x).cos().to(x.dtype),)


def reciprocal_root(x: Tensor) -> tuple[Tensor, ...]:
    """Divide 1 by the square root."""
    return ((1 / wide(x).sqrt()).to(x.dtype),)


def cast(x: Tensor, *, dtype: float) -> tuple[Tensor, ...]:
    """Convert to the type of that code; fractions are cut off, whole numbers wrap around, all but 0 is true."""
    import torch  # noqa: PLC0415  (torch loads when a reference runs)

    kind: torch.dtype = getattr(torch, CODES[int(dtype)])
    return (x if x.dtype == torch.float64 and kind.is_floating_point else x.to(kind),)


CODES = {code: name for name, code in DTYPES.items()}
CASTS = (
    ("float16", "float32"),
    ("float32", "int32"),
    ("int32", "int8"),
    ("int8", "bool"),
    ("bool", "int8"),
    ("bfloat16", "float32"),
    ("float32", "float16"),
    ("float32", "bfloat16"),
)
_SPANS = {"int32": (-(2**31), 2**31), "int8": (-3, 4)}


def _cast_case(name: str, x: TensorSpec, pair: tuple[str, str], *, timed: bool = False, hidden: bool = False) -> Case:
    source, target = pair
    inputs = (TensorSpec(x.shape, source, x.strides, span=_SPANS.get(source)),)
    label = f"{name}-{SHORT[source]}-{SHORT[target]}"
    return Case(label, inputs, {"dtype": DTYPES[target]}, timed, hidden)


def cast_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of the input's shape, in the type that the attribute names."""
    return (TensorSpec(case.inputs[0].shape, CODES[int(case.attributes["dtype"])]),)


def cast_hidden(rng: Generator) -> tuple[Case, ...]:
    """Every pair of types in odd shapes and views."""
    cases = []
    for number, pair in enumerate(CASTS):
        rows, columns = odd(rng, 3, 50), prime(rng, 17, 240)
        view = (swapped, padded)[number % 2]
        cases.append(_cast_case("prime", TensorSpec((rows, columns)), pair, hidden=True))
        cases.append(_cast_case("view", view((rows, columns)), pair, hidden=True))
    return tuple(cases)


def _magnitude_outputs(case: Case) -> tuple[TensorSpec, ...]:
    dtype = case.inputs[0].dtype
    return (TensorSpec(case.inputs[0].shape, "float32" if dtype == "complex64" else dtype),)


_MAGNITUDE = ("float16", "complex64", "float32", "bfloat16", "int32", "int64")
_MAGNITUDES = Pointwise(("any",), {"int32": (-(2**31) + 1, 2**31), "int64": (-(2**62), 2**62)})

OPERATORS = (
    Operator(
        name="AbsMath",
        level=1,
        family="elementwise",
        summary="out = |x|; of complex64 the modulus, float32.",
        cases=_MAGNITUDES.cases(_MAGNITUDE),
        full_cases=tuple(
            _MAGNITUDES.case(f"full-{number}", TensorSpec(shape), dtype)
            for number, (shape, dtype) in enumerate((
                ((48, 128, 256), "float16"), ((512, 3), "float16"), (_FLAT, "bfloat16"), (_FLAT, "float32"),
                (_FLAT, "int32"), (_FLAT, "int64"), (_FLAT, "complex64"),
            ))
        ),
        reference=magnitude,
        baseline=lambda x: (x.abs(),),
        outputs=_magnitude_outputs,
        hidden_cases=_MAGNITUDES.hidden(_MAGNITUDE),
        accumulation=nothing_summed,
        dtypes=_MAGNITUDE,
        expert_file=beside(__file__, "abs_math.cpp"),
        traps=(
            "Of -0 the answer is 0.",
            "An absolute value of int64 taken through floating point loses digits beyond 2^53.",
            "A complex number is two floats in one element: shapes and strides count pairs.",
        ),
        conditions=("The smallest int32 and int64, which have no positive counterpart, do not occur.",),
    ),
    pointwise(
        "CosMath",
        cosine,
        level=1,
        summary="out = cos(x), x in radians.",
        dtypes=("float16", "float32", "bfloat16"),
        baseline=lambda x: (x.cos(),),
        full=(((1,), "float16"), ((512, 3), "float16"), (_FLAT, "float16"), (_FLAT, "bfloat16"), (_FLAT, "float32")),
        expert=beside(__file__, "cos_math.cpp"),
        traps=(
            "Taking off a multiple of 2 pi in one float32 product loses the digits; split pi into parts.",
            "Near the zeros of the cosine an absolute error of 1e-7 is all that is left.",
            "Angles go to a hundred and more, not only to pi.",
        ),
        conditions=("Angles are below 10^4 in size.",),
    ),
    pointwise(
        "Rsqrt",
        reciprocal_root,
        level=1,
        summary="out = 1 / sqrt(x).",
        dtypes=("float16", "float32", "bfloat16"),
        values=("positive",),
        baseline=lambda x: (x.rsqrt(),),
        full=(((48, 128, 512), "float16"), ((96, 64, 1024), "float16"), ((32, 32, 768), "float32"),
              ((48, 32, 4096), "bfloat16"), ((48, 8192), "float32")),
        expert=beside(__file__, "rsqrt.cpp"),
        traps=(
            "The processor's estimate has 12 or 14 bits; float32 needs a Newton step after it.",
            "Half formats are computed in float32 and rounded once.",
        ),
        conditions=("x is at least 2^-6.",),
    ),
    Operator(
        name="CastMath",
        level=1,
        family="elementwise",
        summary="out = x converted to the type whose code of sagebook_kernel.h is the attribute.",
        cases=(
            _cast_case("large", TensorSpec((512, 1024)), ("float16", "float32"), timed=True),
            _cast_case("large", TensorSpec((512, 1024)), ("float32", "int32"), timed=True),
            *(_cast_case("tail", TensorSpec((5, 131)), pair) for pair in CASTS),
            _cast_case("transposed", swapped((37, 53)), ("float32", "bfloat16")),
        ),
        full_cases=tuple(
            _cast_case("full", TensorSpec((size,)), pair)
            for size, pair in zip((1536, 16, 32, 128, 256, 512), CASTS, strict=False)
        ),
        reference=cast,
        baseline=cast,
        outputs=cast_outputs,
        hidden_cases=cast_hidden,
        accumulation=nothing_summed,
        dtypes=("float16", "float32", "int32", "int8", "bool", "bfloat16"),
        attributes=("dtype",),
        expert_file=beside(__file__, "cast_math.cpp"),
        traps=(
            "A fraction is cut off towards zero, not rounded: -1.7 becomes -1.",
            "int32 to int8 keeps the low eight bits; it does not stop at 127.",
            "Every number but 0 becomes true, and true is stored as 1.",
            "float32 to a half format rounds to nearest, ties to even.",
        ),
        conditions=("Floating numbers that become whole ones fit into them.",),
    ),
)  # fmt: skip
