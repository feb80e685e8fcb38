"""One formula for every tensor of a list: the updates that optimisers make to all parameters in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from device.operators.base import Operator, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed
from device.operators.npukernelbench.level2.lists import LISTS, ONE, WHOLE, Specs, first_list, in_lists, listed
from device.operators.npukernelbench.level2.plan import Attributes, Formula, planned

if TYPE_CHECKING:
    from torch import Tensor

_FLOATS = ("float32", "float16", "bfloat16")
_ROUNDING = "Half formats are computed in float32 and rounded once; a rounding after each step loses a digit."
_TINY = (((TensorSpec((25,)),), "float16"), ((TensorSpec((1,) * 6), TensorSpec((2,) * 6)), "bfloat16"))
_LAUNCH = "Lists are of any length and their tensors of any size, also one number: share out elements, not tensors."


def add_list(*tensors: Tensor, alpha: float) -> tuple[Tensor, ...]:
    """Add alpha times each tensor of the second list to that of the first."""
    xs, ys = in_lists(tensors, 2)
    return tuple((wide(x) + alpha * wide(y)).to(x.dtype) for x, y in zip(xs, ys, strict=True))


def add_scalar_list(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Add to each tensor its own number of the last input."""
    *xs, scalars = tensors
    return tuple((wide(x) + s).to(x.dtype) for x, s in zip(xs, scalars, strict=True))


def addcdiv_scalar(*tensors: Tensor, value: float) -> tuple[Tensor, ...]:
    """Add value * a / b to each tensor of the first list, a and b being those of the second and third."""
    triples = zip(*in_lists(tensors, 3), strict=True)
    return tuple((wide(x) + value * wide(a) / wide(b)).to(x.dtype) for x, a, b in triples)


def addcmul_scalar_list(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Add s * a * b to each tensor of the first list, s being its own number of the last input."""
    *lists, scalars = tensors
    places = zip(*in_lists(lists, 3), scalars, strict=True)
    return tuple((wide(x) + s * wide(a) * wide(b)).to(x.dtype) for x, a, b, s in places)


def div_list(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Divide each tensor of the first list by that of the second."""
    xs, ys = in_lists(tensors, 2)
    return tuple((wide(x) / wide(y)).to(x.dtype) for x, y in zip(xs, ys, strict=True))


def erf(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Take the error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    return tuple(wide(x).erf().to(x.dtype) for x in tensors)


def expm1(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Take exp(x) - 1, to full precision also near 0."""
    return tuple(wide(x).expm1().to(x.dtype) for x in tensors)


def lerp_scalar(*tensors: Tensor, weight: float) -> tuple[Tensor, ...]:
    """Go from each tensor of the first list to that of the second by the share `weight`."""
    xs, ys = in_lists(tensors, 2)
    return tuple((wide(x) + weight * (wide(y) - wide(x))).to(x.dtype) for x, y in zip(xs, ys, strict=True))


def log1p(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Take log(1 + x), to full precision also near 0."""
    return tuple(wide(x).log1p().to(x.dtype) for x in tensors)


def maximum_list(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Take the larger of the elements of both lists; NaN where one of them is."""
    xs, ys = in_lists(tensors, 2)
    return tuple(x.where((x > y) | (x != x), y) for x, y in zip(xs, ys, strict=True))  # noqa: PLR0124  (finds NaN)


def mul_scalar(*tensors: Tensor, scalar: float) -> tuple[Tensor, ...]:
    """Multiply every element by one number."""
    return tuple((wide(x) * (scalar if x.is_floating_point() else int(scalar))).to(x.dtype) for x in tensors)


def pow_scalar_and_tensor(*tensors: Tensor, scalar: float) -> tuple[Tensor, ...]:
    """Raise one number to the power of every element."""
    return tuple((wide(x) * wide(x).new_tensor(scalar).log()).exp().to(x.dtype) for x in tensors)


def sigmoid(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Take 1 / (1 + exp(-x))."""
    return tuple((1 / (1 + (-wide(x)).exp())).to(x.dtype) for x in tensors)


def _torch(name: str, count: int, *attributes: str, scalars: bool = False) -> Formula:
    """Return a call of torch's own operator over lists; `attributes` go by position, others by keyword."""

    def baseline(*tensors: Tensor, **values: float) -> tuple[Tensor, ...]:
        import torch  # noqa: PLC0415  (torch loads when a baseline runs)

        lists, numbers = (tensors[:-1], [tensors[-1].tolist()]) if scalars else (tensors, [])
        call: Callable[..., Sequence[Tensor]] = getattr(torch, f"_foreach_{name}")
        return tuple(
            call(*map(list, in_lists(lists, count)), *numbers, *(values.pop(key) for key in attributes), **values)
        )

    return baseline


def _power(*tensors: Tensor, scalar: float) -> tuple[Tensor, ...]:
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return tuple(torch._foreach_pow(scalar, list(tensors)))  # noqa: SLF001  (torch's name for it)


def _scaled(*tensors: Tensor, scalar: float) -> tuple[Tensor, ...]:
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    number = scalar if tensors[0].is_floating_point() else int(scalar)
    return tuple(torch._foreach_mul(list(tensors), number))  # noqa: SLF001  (torch's name for it)


def foreach(
    name: str,
    formula: Formula,
    baseline: Formula,
    expert: str,
    *,
    summary: str,
    traps: tuple[str, ...],
    values: tuple[str, ...] = ("any",),
    scalars: bool = False,
    dtypes: tuple[str, ...] = _FLOATS,
    spans: dict[str, tuple[int, int]] | None = None,
    variants: dict[str, Attributes] | None = None,
    conditions: tuple[str, ...] = (),
    full: Sequence[tuple[Specs, str]] = (),
) -> Operator:
    """Make an operator whose outputs are tensors like those of its first list; `full` names lists and their types."""
    sizes = full or ((ONE, "float16"), (WHOLE, "float32"), (WHOLE, dtypes[-1]))
    return planned(
        name,
        formula,
        summary=summary,
        shapes=LISTS,
        inputs=listed(*values, spans=spans, scalars=scalars),  # type: ignore[arg-type]  # checked by TensorSpec
        outputs=first_list(len(values), int(scalars)),
        dtypes=dtypes,
        variants=variants,
        family="elementwise",
        baseline=baseline,
        accumulation=nothing_summed,
        expert=beside(__file__, expert),
        traps=(*traps, _LAUNCH),
        conditions=conditions,
        full=[(specs, dtype, next(iter(variants or {"": {}}))) for specs, dtype in sizes],
    )


OPERATORS = (
    foreach(
        "ForeachAddList", add_list, _torch("add", 2), "foreach_add_list.cpp",
        summary="out[i] = x[i] + alpha * y[i] for lists x and y of tensors; inputs are x, then y.",
        values=("any", "any"), variants={"": {"alpha": 1.25}, "one": {"alpha": 1.0}},
        traps=(_ROUNDING, "alpha scales the second list, not the first."),
    ),
    foreach(
        "ForeachAddScalarList", add_scalar_list, _torch("add", 1, scalars=True), "foreach_add_scalar_list.cpp",
        summary="out[i] = x[i] + s[i]; the last input holds the numbers s, float32, or int32 for int32 tensors.",
        scalars=True, dtypes=("float32", "float16", "int32"), spans={"int32": (-(2**30), 2**30)},
        full=(((TensorSpec((48, 1024)),), "float16"),
              ((TensorSpec((24, 32, 2, 5)), TensorSpec((3, 4, 5, 60))), "int32")),
        traps=("The scalars are the last input, one number a tensor; they are float32 beside half tensors.",
               "int32 beyond 2^24 does not survive a detour over float32."),
    ),
    foreach(
        "ForeachAddcdivScalar", addcdiv_scalar, _torch("addcdiv", 3, "value"), "foreach_addcdiv_scalar.cpp",
        summary="out[i] = x[i] + value * a[i] / b[i]; inputs are the lists x, a and b.",
        values=("any", "any", "positive"), variants={"": {"value": 1.2}},
        traps=(_ROUNDING, "A reciprocal estimate of 12 or 14 bits is too coarse for float32."),
        conditions=("b is at least 2^-6.",),
    ),
    foreach(
        "ForeachAddcmulScalarList", addcmul_scalar_list, _torch("addcmul", 3, scalars=True),
        "foreach_addcmul_scalar_list.cpp",
        summary="out[i] = x[i] + s[i] * a[i] * b[i]; inputs are the lists x, a and b, then the numbers s.",
        values=("any", "any", "any"), scalars=True, dtypes=(*_FLOATS, "int32"), spans={"int32": (-999, 1000)},
        traps=(_ROUNDING, "int32 is computed in int32, not in float32."),
    ),
    foreach(
        "ForeachDivList", div_list, _torch("div", 2), "foreach_div_list.cpp",
        summary="out[i] = x[i] / y[i] for lists x and y of tensors; inputs are x, then y.",
        values=("any", "positive"),
        traps=(_ROUNDING, "A reciprocal estimate of 12 or 14 bits is too coarse for float32."),
        conditions=("y is at least 2^-6.",),
    ),
    foreach(
        "ForeachErf", erf, _torch("erf", 1), "foreach_erf.cpp",
        summary="out[i] = erf(x[i]) for a list x of tensors.",
        traps=("Near 0 erf(x) is 2 x / sqrt(pi): 1 minus a tail has no digit left there.",
               "The tanh formula that stands in for erf in gelu errs by 1e-4."),
    ),
    foreach(
        "ForeachExpm1", expm1, _torch("expm1", 1), "foreach_expm1.cpp",
        summary="out[i] = exp(x[i]) - 1 for a list x of tensors.",
        traps=("Near 0 the subtraction of 1 leaves no digit; a series of its own or compensation is needed.",
               "Far below 0 the answer is -1, far above it overflows to infinity."),
    ),
    foreach(
        "ForeachLerpScalar", lerp_scalar, _torch("lerp", 2, "weight"), "foreach_lerp_scalar.cpp",
        summary="out[i] = x[i] + weight * (y[i] - x[i]); inputs are the lists x and y.",
        values=("any", "any"), full=_TINY,
        variants={"": {"weight": 0.5}, "zero": {"weight": 0.0}, "beyond": {"weight": 1.75}},
        traps=(_ROUNDING, "A weight outside of 0 and 1 extrapolates; it is not clipped."),
    ),
    foreach(
        "ForeachLog1p", log1p, _torch("log1p", 1), "foreach_log1p.cpp",
        summary="out[i] = log(1 + x[i]) for a list x of tensors.",
        values=("positive",),
        traps=("1 + x drops the digits of a small x before the logarithm sees them.", _ROUNDING),
        conditions=("x is at least 2^-6.",),
    ),
    foreach(
        "ForeachMaximumList", maximum_list, _torch("maximum", 2), "foreach_maximum_list.cpp",
        summary="out[i] = max(x[i], y[i]), NaN where either is; inputs are the lists x and y.",
        values=("nans", "any"), dtypes=(*_FLOATS, "int32"), spans={"int32": (-(2**31), 2**31)},
        traps=("x > y ? x : y drops a NaN of x; the machine's maximum instruction drops one of both.",
               "int32 beyond 2^24 does not survive a detour over float32."),
    ),
    foreach(
        "ForeachMulScalar", mul_scalar, _scaled, "foreach_mul_scalar.cpp",
        summary="out[i] = x[i] * scalar for a list x of tensors; whole numbers by a whole scalar.",
        dtypes=(*_FLOATS, "int32"), spans={"int32": (-(2**27), 2**27)}, variants={"": {"scalar": 6.0}},
        traps=(_ROUNDING, "int32 beyond 2^24 does not survive a detour over float32."),
    ),
    foreach(
        "ForeachPowScalarAndTensor", pow_scalar_and_tensor, _power, "foreach_pow_scalar_and_tensor.cpp",
        summary="out[i] = scalar ^ x[i] for a list x of tensors; the scalar is positive.",
        variants={"": {"scalar": 0.5}, "large": {"scalar": 2.5}}, full=_TINY,
        traps=("The exponent's error is magnified: x * log(scalar) needs more bits than the answer.",
               "The base is the attribute, the exponent the tensor."),
    ),
    foreach(
        "ForeachSigmoid", sigmoid, _torch("sigmoid", 1), "foreach_sigmoid.cpp",
        summary="out[i] = 1 / (1 + exp(-x[i])) for a list x of tensors.",
        traps=("exp(-x) overflows for x far below 0; the answer there is 0, not NaN.", _ROUNDING),
    ),
)  # fmt: skip
