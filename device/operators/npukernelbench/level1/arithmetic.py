"""Arithmetic of a few tensors of one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import SHORT, wide
from device.operators.forms import nothing_summed, odd, padded, prime, same, swapped
from device.operators.pointwise import pointwise

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_SPANS = {"int32": (-(2**31), 2**31)}
_ROUNDING = "Half formats are computed in float32 and rounded once; a rounding after each step loses a digit."


def add(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Add a and b."""
    return (a + b,)


def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float) -> tuple[Tensor, ...]:
    """Add value * a / b to x."""
    return ((wide(x) + value * wide(a) / wide(b)).to(x.dtype),)


def addcdiv_of_torch(x: Tensor, a: Tensor, b: Tensor, *, value: float) -> tuple[Tensor, ...]:
    """Call torch's own addcdiv."""
    return (x.addcdiv(a, b, value=value),)


def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float) -> tuple[Tensor, ...]:
    """Add value * a * b to x."""
    return ((wide(x) + value * wide(a) * wide(b)).to(x.dtype),)


def addcmul_of_torch(x: Tensor, a: Tensor, b: Tensor, *, value: float) -> tuple[Tensor, ...]:
    """Call torch's own addcmul."""
    return (x.addcmul(a, b, value=value),)


def lerp(start: Tensor, end: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Go from start to end by the share that weight says, also beyond both."""
    a, b, w = wide(start), wide(end), wide(weight)
    return ((a + w * (b - a)).to(start.dtype),)


def lerp_of_torch(start: Tensor, end: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own lerp."""
    return (start.lerp(end, weight),)


def clip(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
    """Raise what is below low[0] to it, then lower what is above high[0]: high wins where the limits cross."""
    raised = low.where(x < low, x)
    return (high.where(raised > high, raised),)


def clip_of_torch(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own clamp."""
    return (x.clamp(low, high),)


def _clip_case(name: str, x: TensorSpec, dtype: str, *, timed: bool = False, hidden: bool = False) -> Case:
    whole = dtype == "int32"
    low, high = ((-(2**31), 0), (-(2**10), 2**31)) if whole else (None, None)
    inputs = (
        TensorSpec(x.shape, dtype, x.strides, span=_SPANS.get(dtype)),
        TensorSpec((1,), dtype, span=low),
        TensorSpec((1,), dtype, span=high),
    )
    return Case(f"{name}-{SHORT[dtype]}", inputs, timed=timed, hidden=hidden)


def clip_hidden(rng: Generator) -> tuple[Case, ...]:
    """Odd shapes and views of every dtype; the limits may cross."""
    cases = []
    for dtype in ("float16", "float32", "int32"):
        rows, columns = odd(rng, 3, 50), prime(rng, 17, 240)
        shapes = {
            "single": TensorSpec((1,)),
            "prime": TensorSpec((rows, columns)),
            "swapped": swapped((rows, columns)),
            "padded": padded((rows, columns)),
        }
        cases += [_clip_case(name, spec, dtype, hidden=True) for name, spec in shapes.items()]
    return tuple(cases)


OPERATORS = (
    pointwise(
        "AddCustom",
        add,
        level=1,
        summary="out = a + b.",
        dtypes=("float16",),
        values=("any", "any"),
        full=(((48, 128, 512), "float16"), ((96, 64, 1024), "float16"), ((32, 32, 768), "float16"),
              ((48, 32, 4096), "float16"), ((48, 8192), "float16")),
        expert=beside(__file__, "add_custom.cpp"),
        traps=(
            "A view's flat index is not its position in memory.",
            "A sum of half numbers is rounded to nearest, ties to even, not cut off.",
        ),
    ),
    pointwise(
        "Addcdiv",
        addcdiv,
        level=1,
        summary="out = x + value * a / b.",
        dtypes=("float16", "float32", "bfloat16"),
        values=("any", "any", "positive"),
        attributes={"value": -0.75},
        baseline=addcdiv_of_torch,
        full=(((48, 1024), "float16"), ((32, 64), "float32"), ((256, 512), "float32"), ((192, 128), "float32"),
              ((48, 160), "float16"), ((256, 256), "float32"), ((256, 256), "bfloat16")),
        expert=beside(__file__, "addcdiv.cpp"),
        traps=(
            _ROUNDING,
            "A reciprocal estimate of 12 or 14 bits is too coarse for float32.",
        ),
        conditions=("b is at least 2^-6.",),
    ),
    pointwise(
        "Addcmul",
        addcmul,
        level=1,
        summary="out = x + value * a * b.",
        dtypes=("float16", "float32", "bfloat16"),
        values=("any", "any", "any"),
        attributes={"value": 1.25},
        baseline=addcmul_of_torch,
        full=(((48, 1024), "float16"), ((32, 64), "float32"), ((256, 512), "float32"), ((192, 128), "float32"),
              ((48, 160), "float16"), ((256, 256), "float32"), ((256, 256), "bfloat16")),
        expert=beside(__file__, "addcmul.cpp"),
        traps=(
            _ROUNDING,
            "The attribute comes as a double; it scales the product, not x.",
        ),
    ),
    pointwise(
        "Lerp",
        lerp,
        level=1,
        summary="out = start + weight * (end - start), all three of one shape.",
        dtypes=("float16", "float32"),
        values=("any", "any", "any"),
        baseline=lerp_of_torch,
        full=(((48, 128, 512), "float16"), ((96, 64, 1024), "float16"), ((32, 32, 768), "float32"),
              ((48, 32, 4096), "float16"), ((48, 8192), "float32")),
        expert=beside(__file__, "lerp.cpp"),
        traps=(
            _ROUNDING,
            "A weight outside of 0 and 1 extrapolates; it is not clipped.",
        ),
    ),
    Operator(
        name="ClipByValue",
        level=1,
        family="elementwise",
        summary="out = min(max(x, low[0]), high[0]); low and high are tensors of one element.",
        cases=(
            _clip_case("large", TensorSpec((512, 1024)), "float32", timed=True),
            _clip_case("large", TensorSpec((512, 1024)), "int32", timed=True),
            _clip_case("large", TensorSpec((256, 1024)), "float16"),
            *(_clip_case("tail", TensorSpec((5, 131)), dtype) for dtype in ("float16", "float32", "int32")),
            _clip_case("transposed", swapped((37, 53)), "float32"),
        ),
        full_cases=tuple(
            _clip_case(f"full-{number}", TensorSpec(shape), dtype)
            for number, (shape, dtype) in enumerate((
                ((512, 128), "float32"), ((32, 128), "float16"), ((4, 3), "float16"), ((129, 1024), "int32"),
                ((1024, 2048), "float16"), ((2048, 2048), "int32"),
            ))
        ),
        reference=clip,
        baseline=clip_of_torch,
        outputs=same,
        hidden_cases=clip_hidden,
        accumulation=nothing_summed,
        dtypes=("float32", "float16", "int32"),
        expert_file=beside(__file__, "clip_by_value.cpp"),
        traps=(
            "Where low exceeds high, every element becomes high.",
            "int32 limits do not survive a detour over float32.",
        ),
    ),
)  # fmt: skip
