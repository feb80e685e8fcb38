"""The k largest or smallest elements along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import nothing_summed, odd, prime

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def top_k(x: Tensor, *, k: float, dim: float, largest: float) -> tuple[Tensor, ...]:
    """Sort along the axis, largest (or smallest) first, and keep k values with the int64 indices they had."""
    values, indices = x.sort(dim=int(dim), descending=bool(largest))
    return (values.narrow(int(dim), 0, int(k)).clone(), indices.narrow(int(dim), 0, int(k)).clone())


def top_k_of_torch(x: Tensor, *, k: float, dim: float, largest: float) -> tuple[Tensor, ...]:
    """Call torch's own topk."""
    return tuple(x.topk(int(k), dim=int(dim), largest=bool(largest), sorted=True))


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """Values in the input's type and int64 indices, the axis k long."""
    (x,) = case.inputs
    dim = int(case.attributes["dim"])
    shape = (*x.shape[:dim], int(case.attributes["k"]), *x.shape[dim + 1 :])
    return (TensorSpec(shape, x.dtype), TensorSpec(shape, "int64"))


def _case(
    name: str,
    shape: tuple[int, ...],
    k: int,
    dim: int,
    largest: int = 1,
    *,
    timed: bool = False,
    hidden: bool = False,
) -> Case:
    spec = TensorSpec(shape, "float16", values="distinct")
    return Case(name, (spec,), {"k": k, "dim": dim, "largest": largest}, timed, hidden)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Every axis, k from one to all, largest and smallest."""
    rows, columns = prime(rng, 5, 60), odd(rng, 17, 300)
    return (
        _case("single", (1,), 1, 0, hidden=True),
        _case("one-of-row", (rows, columns), 1, 1, hidden=True),
        _case("some", (rows, columns), int(rng.integers(2, 16)), 1, hidden=True),
        _case("all", (rows, 17), 17, 1, hidden=True),
        _case("smallest", (rows, columns), 5, 1, 0, hidden=True),
        _case("first-axis", (columns, rows), 4, 0, hidden=True),
        _case("middle-axis", (3, rows, odd(rng, 3, 20)), 3, 1, hidden=True),
        _case("smallest-first", (columns, 5), 7, 0, 0, hidden=True),
        _case("long-row", (2, odd(rng, 3000, 4000)), int(rng.integers(20, 60)), 1, hidden=True),
    )


_FULL = (
    ((8, 2048), 2, 1), ((8, 16, 32), 3, 2), ((64, 128), 4, 0), ((1, 32, 64, 64), 1, 3), ((8, 1024), 4, 1),
    ((32, 512, 128), 3, 2), ((256, 512), 4, 0),
)  # fmt: skip

OPERATORS = (
    Operator(
        name="TopKV3",
        level=3,
        family="sort",
        summary=(
            "values, indices = the k largest (largest=1) or smallest (0) elements of x along axis dim, best first; "
            "indices int64."
        ),
        cases=(
            _case("rows", (64, 2048), 2, 1, timed=True),
            _case("columns", (512, 256), 4, 0, timed=True),
            _case("deep", (8, 16, 32), 3, 2),
            _case("smallest", (9, 131), 5, 1, 0),
            _case("all", (7, 12), 12, 1),
            _case("four-axes", (1, 8, 16, 16), 1, 3),
        ),
        full_cases=tuple(_case(f"full-{i}", *sizes) for i, sizes in enumerate(_FULL)),
        reference=top_k,
        baseline=top_k_of_torch,
        outputs=outputs,
        hidden_cases=hidden_cases,
        accumulation=nothing_summed,
        dtypes=("float16", "int64"),
        attributes=("k", "dim", "largest"),
        expert_file=beside(__file__, "top_k_v3.cpp"),
        traps=(
            "Values and indices come sorted, best first, also where k is the whole axis.",
            "A start value of 0 hides rows of negative numbers.",
            "Along any axis but the last, neighbours of a row are not neighbours in memory.",
        ),
        conditions=("No two elements along an axis are equal.",),
    ),
)
