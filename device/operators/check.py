"""Whether an operator of the suite agrees with itself: cases, output shapes, reference against baseline.

A new operator is ready when `problems` finds none. This says nothing about kernels; those are the judge's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from device.errors import InvalidOperator
from device.operators.base import WHOLE, Case, Operator, TensorSpec
from device.operators.values import Array, settle, whole_numbers

if TYPE_CHECKING:
    from torch import Tensor

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_WIDE = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
_PART = {"complex64": "float32", "complex128": "float64"}


def problems(operator: Operator, *, seed: int = 0) -> tuple[str, ...]:
    """Return every contradiction found in the operator, one sentence each; empty when it is sound.

    Runs the reference and the baseline in float64 and in the cases' own dtypes on all visible and hidden cases, values
    drawn from the normal distribution with `seed`. Full cases are too large to run; their outputs must be declared.
    """
    return tuple(_problems(operator, np.random.default_rng(seed)))


def draw(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Draw values for one input and give them the layout of the spec: the result is a view with its strides.

    Normal numbers, rounded to the spec's format (bfloat16 comes as float32), whole numbers from its span, or bool.
    """
    if spec.dtype == "bool":
        values: Array = rng.integers(0, 2, spec.shape).astype(np.bool_)
    elif spec.dtype in WHOLE:
        values = whole_numbers(spec, rng).astype(spec.dtype)
    elif spec.dtype == "complex64":
        parts = rng.standard_normal((*spec.shape, 2)).astype(np.float32)
        values = settle(spec, parts.view(np.complex64)[..., 0], rng)
    else:
        values = settle(spec, rng.standard_normal(spec.shape).astype(np.float32), rng)
        if spec.dtype == "bfloat16":
            values = (np.ascontiguousarray(values).view(np.uint32) & 0xFFFF0000).view(np.float32)
        elif spec.dtype == "float16":
            values = values.astype(np.float16)
    storage = np.zeros(spec.storage, dtype=values.dtype)
    view: Array = np.lib.stride_tricks.as_strided(
        storage, spec.shape, tuple(stride * values.itemsize for stride in spec.layout)
    )
    view[...] = values.reshape(spec.shape)
    return view


def bound(operator: Operator, case: Case, dtype: str, expected: Array) -> float:
    """Return the absolute error that rounding in `dtype` may cause: it grows with the root of the summed length."""
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    return _EPS[dtype] * scale * (8.0 + 4.0 * math.sqrt(operator.accumulation(case)))


def _problems(operator: Operator, rng: np.random.Generator) -> Iterator[str]:
    hidden = operator.hidden_cases(rng)
    names = [case.name for case in hidden]
    if len(set(names)) != len(names):
        yield f"{operator.name}: two hidden cases share a name among {', '.join(names)}"
    if not all(case.hidden for case in hidden):
        yield f"{operator.name}: hidden_cases returned a case that is not marked hidden"
    if not hidden:
        yield f"{operator.name}: hidden_cases returned no case"
    if operator.expert_file is not None and not operator.expert_file.is_file():
        yield f"{operator.name}: the expert kernel {operator.expert_file.name} is missing"
    for case in operator.full_cases:
        yield from _declared(operator, case)
    for case in (*operator.cases, *hidden):
        for problem in _case_problems(operator, case, rng):
            yield f"{operator.name}, {'hidden ' if case.hidden else ''}case {case.name}: {problem}"


def _declared(operator: Operator, case: Case) -> Iterator[str]:
    try:
        operator.outputs(case)
    except InvalidOperator as error:
        yield f"{operator.name}, full case {case.name}: {error}"


def _case_problems(operator: Operator, case: Case, rng: np.random.Generator) -> Iterator[str]:
    try:
        specs = operator.outputs(case)
        length = operator.accumulation(case)
    except InvalidOperator as error:
        yield str(error)
        return
    if length < 1:
        yield f"the accumulation {length} must be at least 1"
        return
    if tuple(case.attributes) != operator.attributes:
        yield f"attributes {list(case.attributes)} must be {list(operator.attributes)}"
        return
    if any(spec.overlapping for spec in specs):
        yield "an output has two elements in one place"
    arrays = [draw(spec, rng) for spec in case.inputs]
    for wide in (True, False):
        inputs = _tensors(case, arrays, wide=wide)
        expected = operator.reference(*inputs, **case.attributes)
        actual = operator.baseline(*inputs, **case.attributes)
        if len(expected) != len(specs) or len(actual) != len(specs):
            yield f"{len(specs)} outputs declared, {len(expected)} by the reference, {len(actual)} by the baseline"
            continue
        for index, spec in enumerate(specs):
            problem = _difference(operator, case, spec, expected[index], actual[index], wide=wide)
            if problem:
                yield f"output {index} in {_computed(spec.dtype, wide=wide)}: {problem}"


def _computed(dtype: str, *, wide: bool) -> str:
    return _WIDE.get(dtype, dtype) if wide else dtype


def _tensors(case: Case, arrays: list[Array], *, wide: bool) -> list[Tensor]:
    import torch  # noqa: PLC0415  (torch loads when an operator is run)

    tensors = []
    for spec, array in zip(case.inputs, arrays, strict=True):
        storage = torch.zeros(spec.storage, dtype=getattr(torch, _computed(spec.dtype, wide=wide)))
        view = storage.as_strided(spec.shape, spec.layout)
        # An expanded axis is written once an index; every write carries the same number.
        for place, value in np.ndenumerate(array) if spec.overlapping else ():
            view[place] = value.item()
        if not spec.overlapping:
            view.copy_(torch.from_numpy(np.ascontiguousarray(array)).reshape(spec.shape))
        tensors.append(view)
    return tensors


def _difference(
    operator: Operator, case: Case, spec: TensorSpec, expected: Tensor, actual: Tensor, *, wide: bool
) -> str | None:
    declared = _computed(spec.dtype, wide=wide)
    for who, tensor in (("reference", expected), ("baseline", actual)):
        if tuple(tensor.shape) != spec.shape:
            return f"the {who} has shape {list(tensor.shape)}, declared is {list(spec.shape)}"
        if str(tensor.dtype) != f"torch.{declared}" and not (spec.rounded and tensor.is_floating_point()):
            return f"the {who} has {tensor.dtype}, declared is {declared}"
    if declared not in {*_EPS, *_PART} and not spec.rounded:
        return None if expected.equal(actual) else "reference and baseline differ"
    wanted, got = (tensor.to(_plain(declared)).numpy() for tensor in (expected, actual))
    if not np.array_equal(np.isnan(wanted), np.isnan(got)):
        return "reference and baseline have NaN in different places"
    with np.errstate(invalid="ignore"):  # equal infinities
        differences = np.where(wanted == got, 0.0, np.abs(wanted - got))
    error = float(np.nanmax(differences, initial=0.0))
    format_ = "float32" if spec.rounded else _PART.get(declared, declared)
    allowed = bound(operator, case, format_, wanted) + (0.5 if spec.rounded else 0.0)
    return None if error <= allowed else f"reference and baseline differ by {error:.3g}, allowed is {allowed:.3g}"


def _plain(declared: str) -> Any:
    import torch  # noqa: PLC0415  (torch loads when an operator is run)

    return torch.complex128 if declared.startswith("complex") else torch.float64
