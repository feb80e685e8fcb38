"""Copies by index: slices picked from a tensor, slices replaced in a list of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import nothing_summed, odd, padded, prime, swapped

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def gather(x: Tensor, indices: Tensor, *, axis: float) -> tuple[Tensor, ...]:
    """Take the slices of x along the axis that the indices name, in their order; one may come twice."""
    import torch  # noqa: PLC0415  (torch loads when a reference runs)

    slices = x.unbind(int(axis))
    return (torch.stack([slices[i] for i in indices.tolist()], dim=int(axis)),)


def gather_of_torch(x: Tensor, indices: Tensor, *, axis: float) -> tuple[Tensor, ...]:
    """Call torch's own index_select."""
    return (x.index_select(int(axis), indices),)


def gather_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of x's shape, the axis as long as the list of indices."""
    x, indices = case.inputs
    axis = int(case.attributes["axis"])
    shape = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
    return (TensorSpec(shape, x.dtype),)


def _gather_case(
    name: str, x: TensorSpec | tuple[int, ...], count: int, axis: int, *, timed: bool = False, hidden: bool = False
) -> Case:
    spec = TensorSpec(x, "float16") if isinstance(x, tuple) else TensorSpec(x.shape, "float16", x.strides)
    indices = TensorSpec((count,), "int64", span=(0, spec.shape[axis]))
    return Case(name, (spec, indices), {"axis": axis}, timed, hidden)


def gather_hidden(rng: Generator) -> tuple[Case, ...]:
    """Every axis, more and fewer indices than slices, views."""
    rows, columns = prime(rng, 5, 60), odd(rng, 17, 150)
    return (
        _gather_case("single", (1,), 1, 0, hidden=True),
        _gather_case("rows", (rows, columns), odd(rng, 3, 200), 0, hidden=True),
        _gather_case("columns", (rows, columns), odd(rng, 3, 200), 1, hidden=True),
        _gather_case("middle", (3, rows, odd(rng, 3, 20)), prime(rng, 3, 40), 1, hidden=True),
        _gather_case("vector", (rows * columns,), prime(rng, 100, 900), 0, hidden=True),
        _gather_case("swapped", swapped((rows, columns)), prime(rng, 3, 40), 0, hidden=True),
        _gather_case("padded", padded((rows, columns)), prime(rng, 3, 40), 1, hidden=True),
        _gather_case("one-slice", (1, columns), 9, 0, hidden=True),
    )


def scatter(*tensors: Tensor, axis: float) -> tuple[Tensor, ...]:
    """Copy each var; where its mask is set, its slice [start, start + length) along the axis takes updates' first."""
    *variables, indices, updates, mask = tensors
    results = []
    for i, variable in enumerate(variables):
        result = variable.clone()
        if mask[i]:
            start, length = indices[i].tolist()
            result.narrow(int(axis), start, length).copy_(updates[i].narrow(int(axis), 0, length))
        results.append(result)
    return tuple(results)


def scatter_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output for each var; raises InvalidOperator when updates do not fit them."""
    *variables, indices, updates, mask = case.inputs
    count = len(variables)
    if updates.shape != (count, *variables[0].shape) or indices.shape != (count, 2) or mask.shape != (count,):
        raise InvalidOperator(f"case {case.name}", f"{count} tensors, updates {list(updates.shape)} do not fit")
    return tuple(TensorSpec(spec.shape, spec.dtype) for spec in variables)


def _scatter_case(
    name: str, count: int, shape: tuple[int, ...], axis: int, *, timed: bool = False, hidden: bool = False
) -> Case:
    half = shape[axis] // 2 + 1
    inputs = (
        *(TensorSpec(shape, "float16") for _ in range(count)),
        TensorSpec((count, 2), "int64", span=(0, half)),
        TensorSpec((count, *shape), "float16"),
        TensorSpec((count,), "bool"),
    )
    return Case(name, inputs, {"axis": axis}, timed, hidden)


def scatter_hidden(rng: Generator) -> tuple[Case, ...]:
    """One and several tensors, last and last but one axis, odd sizes."""
    rows, columns = prime(rng, 5, 60), odd(rng, 17, 150)
    return (
        _scatter_case("single", 1, (1, 2), -1, hidden=True),
        _scatter_case("rows", 3, (rows, columns), -2, hidden=True),
        _scatter_case("columns", 2, (rows, columns), -1, hidden=True),
        _scatter_case("deep", 4, (3, rows, odd(rng, 3, 20)), -2, hidden=True),
        _scatter_case("many", 7, (2, 3, odd(rng, 3, 20)), -1, hidden=True),
        _scatter_case("one-row", 2, (1, columns), -1, hidden=True),
    )


_GATHER_FULL = (
    ((256, 512), 32, 0), ((8, 16), 4, 0), ((32, 64), 8, 1), ((1, 32, 64), 4, 0), ((8, 1024), 16, 1),
    ((32, 512, 128), 64, 0), ((4, 2), 2, 1),
)  # fmt: skip
_SCATTER_FULL = (
    (1, (32, 512, 128), -2), (1, (8, 16, 32), -2), (1, (64, 128), -1), (3, (32, 64, 64), -2), (2, (8, 1024), -1),
    (1, (5, 3, 4), -1), (1, (256, 512), -1),
)  # fmt: skip

OPERATORS = (
    Operator(
        name="GatherV3",
        level=1,
        family="index",
        summary="out = slices of x along an axis, picked by a list of int64 indices, in its order.",
        cases=(
            _gather_case("rows", (4096, 256), 2048, 0, timed=True),
            _gather_case("columns", (1024, 1024), 256, 1, timed=True),
            _gather_case("middle", (5, 9, 31), 12, 1),
            _gather_case("one-slice", (1, 32, 64), 4, 0),
            _gather_case("pair", (4, 2), 2, 1),
            _gather_case("transposed", swapped((37, 53)), 20, 0),
        ),
        full_cases=tuple(_gather_case(f"full-{i}", *sizes) for i, sizes in enumerate(_GATHER_FULL)),
        reference=gather,
        baseline=gather_of_torch,
        outputs=gather_outputs,
        hidden_cases=gather_hidden,
        accumulation=nothing_summed,
        dtypes=("float16", "int64"),
        attributes=("axis",),
        expert_file=beside(__file__, "gather_v3.cpp"),
        traps=(
            "The list may be longer than the axis, and an index may come again.",
            "Only along the first axis is a slice one piece of memory.",
        ),
        conditions=("Indices are not negative and below the length of the axis.",),
    ),
    Operator(
        name="ScatterList",
        level=1,
        family="index",
        summary=(
            "Inputs var_0 .. var_b-1, indices int64 [b, 2], updates [b, ...], mask bool [b]. out_i = var_i, but where "
            "mask[i] is set, out_i[start : start + length] along the axis = updates[i][: length], with "
            "(start, length) = indices[i]; axis is -1 or -2."
        ),
        cases=(
            _scatter_case("rows", 2, (8, 512, 64), -2, timed=True),
            _scatter_case("columns", 1, (512, 1024), -1, timed=True),
            _scatter_case("three", 3, (4, 16, 31), -2),
            _scatter_case("tail", 2, (5, 3, 7), -1),
            _scatter_case("thin", 1, (9, 2), -1),
        ),
        full_cases=tuple(_scatter_case(f"full-{i}", *sizes) for i, sizes in enumerate(_SCATTER_FULL)),
        reference=scatter,
        baseline=scatter,
        outputs=scatter_outputs,
        hidden_cases=scatter_hidden,
        accumulation=nothing_summed,
        dtypes=("float16", "int64", "bool"),
        attributes=("axis",),
        expert_file=beside(__file__, "scatter_list.cpp"),
        traps=(
            "The updates start at 0 of their axis, not at start.",
            "A length of 0, or a mask that is not set, leaves a plain copy.",
            "Every output is written in full, not only the slice.",
        ),
        conditions=("start + length does not exceed the axis.",),
    ),
)
