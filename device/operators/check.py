"""Whether an operator of the suite agrees with itself: cases, output shapes, reference against baseline.

A new operator is ready when `problems` finds none. This says nothing about kernels; those are the judge's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec
from device.operators.values import Array, settle

if TYPE_CHECKING:
    from torch import Tensor

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23}


def problems(operator: Operator, *, seed: int = 0) -> tuple[str, ...]:
    """Return every contradiction found in the operator, one sentence each; empty when it is sound.

    Runs the reference and the baseline in float64 and float32 on all visible and hidden cases, values drawn from
    the normal distribution with `seed`.
    """
    return tuple(_problems(operator, np.random.default_rng(seed)))


def draw(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Draw normal values for one input and give them the layout of the spec: the result is a view with its strides."""
    values = settle(spec, rng.standard_normal(spec.shape).astype(np.float32), rng)
    storage = np.zeros(spec.storage, dtype=values.dtype)
    view: Array = np.lib.stride_tricks.as_strided(
        storage, spec.shape, tuple(stride * values.itemsize for stride in spec.layout)
    )
    view[...] = values
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
    for case in (*operator.cases, *hidden):
        for problem in _case_problems(operator, case, rng):
            yield f"{operator.name}, {'hidden ' if case.hidden else ''}case {case.name}: {problem}"


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
    for dtype in _EPS:
        inputs = _tensors(case, arrays, dtype)
        expected = operator.reference(*inputs, **case.attributes)
        actual = operator.baseline(*inputs, **case.attributes)
        if len(expected) != len(specs) or len(actual) != len(specs):
            yield f"{len(specs)} outputs declared, {len(expected)} by the reference, {len(actual)} by the baseline"
            continue
        for index, spec in enumerate(specs):
            problem = _difference(operator, case, dtype, spec, expected[index], actual[index])
            if problem:
                yield f"output {index} in {dtype}: {problem}"


def _tensors(case: Case, arrays: list[Array], dtype: str) -> list[Tensor]:
    import torch  # noqa: PLC0415  (torch loads when an operator is run)

    tensors = []
    for spec, array in zip(case.inputs, arrays, strict=True):
        storage = torch.zeros(spec.storage, dtype=getattr(torch, dtype if spec.dtype == "float32" else spec.dtype))
        view = storage.as_strided(spec.shape, spec.layout)
        # An expanded axis is written once an index; every write carries the same number.
        for place, value in np.ndenumerate(array) if spec.overlapping else ():
            view[place] = float(value)
        if not spec.overlapping:
            view.copy_(torch.from_numpy(np.ascontiguousarray(array)))
        tensors.append(view)
    return tensors


def _difference(
    operator: Operator, case: Case, dtype: str, spec: TensorSpec, expected: Tensor, actual: Tensor
) -> str | None:
    declared = dtype if spec.dtype == "float32" else spec.dtype
    for who, tensor in (("reference", expected), ("baseline", actual)):
        if tuple(tensor.shape) != spec.shape:
            return f"the {who} has shape {list(tensor.shape)}, declared is {list(spec.shape)}"
        if str(tensor.dtype) != f"torch.{declared}":
            return f"the {who} has {tensor.dtype}, declared is {declared}"
    wanted, got = expected.numpy(), actual.numpy()
    if not declared.startswith("float"):
        return None if np.array_equal(wanted, got) else "reference and baseline differ"
    if not np.array_equal(np.isnan(wanted), np.isnan(got)):
        return "reference and baseline have NaN in different places"
    error = float(np.nanmax(np.abs(wanted - got), initial=0.0))
    allowed = bound(operator, case, dtype, wanted)
    return None if error <= allowed else f"reference and baseline differ by {error:.3g}, allowed is {allowed:.3g}"
