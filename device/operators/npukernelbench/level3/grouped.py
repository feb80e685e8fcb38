"""Products in groups: rows of a, or parts of the sum, belong to one group each; a list says where each group ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import wide
from device.operators.npukernelbench.level3.sizes import GROUPED, hard_sizes

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

HALF = "float16"
_ENDS = "The list holds ends, not lengths; a group may be empty."


def by_rows(a: Tensor, b: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply the rows of a from the end of the group before to ends[g] by b[g]."""
    out = a.new_empty((a.shape[0], b.shape[2]))
    begin = 0
    for g, end in enumerate(ends.tolist()):
        out[begin:end] = (wide(a[begin:end]) @ wide(b[g])).to(a.dtype)
        begin = end
    return (out,)


def by_rows_of_torch(a: Tensor, b: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply group by group in float32, which a CPU multiplies much faster than half numbers, and concatenate."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    cuts = ends.tolist()[:-1]
    parts = enumerate(wide(a).tensor_split(cuts))
    return (torch.cat([part @ wide(b[g]) for g, part in parts]).to(a.dtype),)


def by_sum(a: Tensor, b: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply columns of a by rows of b, those from the end of the group before to ends[g], into out[g]."""
    out = a.new_empty((ends.shape[0], a.shape[0], b.shape[1]))
    begin = 0
    for g, end in enumerate(ends.tolist()):
        out[g] = (wide(a[:, begin:end]) @ wide(b[begin:end])).to(a.dtype)
        begin = end
    return (out,)


def by_sum_of_torch(a: Tensor, b: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply group by group in float32, and stack."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    cuts = ends.tolist()[:-1]
    parts = zip(wide(a).tensor_split(cuts, dim=1), wide(b).tensor_split(cuts), strict=True)
    return (torch.stack([left @ right for left, right in parts]).to(a.dtype),)


def rows_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [m, n] output."""
    a, b = case.inputs[:2]
    return (TensorSpec((a.shape[0], b.shape[2]), a.dtype),)


def sum_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [groups, m, n] output."""
    a, b, ends = case.inputs
    return (TensorSpec((ends.shape[0], a.shape[0], b.shape[1]), a.dtype),)


def longest(case: Case) -> int:
    """Return k, the longest a sum may be."""
    return case.inputs[0].shape[1]


def ends_of(count: int, last: int) -> TensorSpec:
    """Describe a list of ends of `count` groups, the last of which is `last`."""
    return TensorSpec((count,), "int64", values="partition", span=(0, last + 1))


Sizes = tuple[int, int, int, int]


def _rows_case(name: str, sizes: Sizes, *, timed: bool = False, hidden: bool = False) -> Case:
    m, k, n, groups = sizes
    inputs = (TensorSpec((m, k), HALF), TensorSpec((groups, k, n), HALF), ends_of(groups, m))
    return Case(name, inputs, {}, timed, hidden)


def _sum_case(name: str, sizes: Sizes, *, timed: bool = False, hidden: bool = False) -> Case:
    m, k, n, groups = sizes
    # a is stored by columns, so that a part of the sum is one piece of memory.
    inputs = (TensorSpec((m, k), HALF, (1, m)), TensorSpec((k, n), HALF), ends_of(groups, k))
    return Case(name, inputs, {}, timed, hidden)


def groups_for(rng: Generator) -> dict[str, Sizes]:
    """Draw hard sizes with one to nine groups."""
    return {name: (*sizes, int(rng.integers(1, 10))) for name, sizes in hard_sizes(rng).items()}


def rows_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes with few and many groups."""
    return tuple(_rows_case(name, sizes, hidden=True) for name, sizes in groups_for(rng).items())


def sum_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes with few and many groups."""
    return tuple(_sum_case(name, sizes, hidden=True) for name, sizes in groups_for(rng).items())


SMALL: dict[str, Sizes] = {"tail": (13, 37, 19, 3), "one-group": (21, 30, 24, 1), "many-groups": (9, 16, 8, 12)}

OPERATORS = (
    Operator(
        name="GroupedMatmulSliceM",
        level=3,
        family="matmul",
        summary="out[i] = a[i] b[g] for each row i of a [m, k], g its group of b [groups, k, n]; ends int64 [groups].",
        cases=(
            _rows_case("few", (128, 320, 160, 8), timed=True),
            _rows_case("many", (160, 128, 105, 32), timed=True),
            *(_rows_case(name, sizes) for name, sizes in SMALL.items()),
        ),
        full_cases=tuple(_rows_case(f"full-{i}", sizes) for i, sizes in enumerate(GROUPED)),
        reference=by_rows,
        baseline=by_rows_of_torch,
        outputs=rows_outputs,
        hidden_cases=rows_hidden,
        accumulation=longest,
        dtypes=(HALF, "int64"),
        expert_file=beside(__file__, "grouped_slice_m.cpp"),
        traps=(_ENDS, "Groups are of very unlike lengths; a group of one row still needs all of its b."),
        conditions=("Ends do not fall, and the last one is m.",),
    ),
    Operator(
        name="GroupedMatmulSliceK",
        level=3,
        family="matmul",
        summary=(
            "out[g] = a[:, part] b[part] for each group g, its part of the k axis ending at ends[g]; a is [m, k] and "
            "stored by columns, b is [k, n], ends int64 [groups], out is [groups, m, n]."
        ),
        cases=(
            _sum_case("few", (128, 640, 160, 8), timed=True),
            _sum_case("many", (64, 1024, 70, 32), timed=True),
            *(_sum_case(name, sizes) for name, sizes in SMALL.items()),
        ),
        full_cases=tuple(_sum_case(f"full-{i}", sizes) for i, sizes in enumerate(GROUPED)),
        reference=by_sum,
        baseline=by_sum_of_torch,
        outputs=sum_outputs,
        hidden_cases=sum_hidden,
        accumulation=longest,
        dtypes=(HALF, "int64"),
        expert_file=beside(__file__, "grouped_slice_k.cpp"),
        traps=(_ENDS, "An empty group's output is zero, and must be written."),
        conditions=("Ends do not fall, and the last one is k.",),
    ),
)
