"""Products of int8 matrices, scaled back to real numbers by a factor for each column and one for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import wide, wide_as
from device.operators.npukernelbench.level3.grouped import SMALL, Sizes, ends_of, groups_for
from device.operators.npukernelbench.level3.sizes import FULL_LONG, GROUPED, hard_sizes

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_BYTE = (-127, 128)
_EXACT = "Products of int8 are summed exactly: int32, or float32 in blocks whose sums stay below 2^24."
_LATE = "Both scales are applied to the finished sum, in float32, before the one rounding."


def whole_product(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Multiply whole numbers exactly (in float64) and give the result in what `like` computes in."""
    return (a.double() @ b.double()).to(wide(like).dtype)


def quantised(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor) -> tuple[Tensor, ...]:
    """Multiply int8 matrices exactly, then column j by scale[j] and row i by per_token[i]."""
    sums = whole_product(a, b, scale)
    return ((sums * wide(scale) * wide(per_token)[:, None]).to(scale.dtype),)


def quantised_of_torch(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor) -> tuple[Tensor, ...]:
    """Multiply in the type that the scales compute in, then scale."""
    sums = wide_as(a, scale) @ wide_as(b, scale)
    return ((sums * wide(scale) * wide(per_token)[:, None]).to(scale.dtype),)


def by_rows(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply each group's rows by its matrix, then by its column scales and each row's own."""
    out = scale.new_empty((a.shape[0], b.shape[2]))
    begin = 0
    for g, end in enumerate(ends.tolist()):
        out[begin:end] = quantised(a[begin:end], b[g], scale[g], per_token[begin:end])[0]
        begin = end
    return (out,)


def by_rows_of_torch(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply and scale group by group, and concatenate."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    cuts = ends.tolist()[:-1]
    parts = zip(a.tensor_split(cuts), b, scale, per_token.tensor_split(cuts), strict=True)
    return (torch.cat([quantised_of_torch(*part)[0] for part in parts]),)


def by_sum(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply each group's part of the sum into a matrix of its own, scaled by its column and its row scales."""
    out = scale.new_empty((ends.shape[0], a.shape[0], b.shape[1]))
    begin = 0
    for g, end in enumerate(ends.tolist()):
        out[g] = quantised(a[:, begin:end], b[begin:end], scale[g], per_token[g])[0]
        begin = end
    return (out,)


def by_sum_of_torch(a: Tensor, b: Tensor, scale: Tensor, per_token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Multiply and scale group by group, and stack."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    cuts = ends.tolist()[:-1]
    parts = zip(a.tensor_split(cuts, dim=1), b.tensor_split(cuts), scale, per_token, strict=True)
    return (torch.stack([quantised_of_torch(*part)[0] for part in parts]),)


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [m, n] output in the scales' type; [groups, m, n] where the sum is what is grouped."""
    a, b, scale = case.inputs[:3]
    rows, columns = a.shape[0], b.shape[-1]
    grouped_sum = len(case.inputs) == 5 and len(b.shape) == 2
    return (TensorSpec((scale.shape[0], rows, columns) if grouped_sum else (rows, columns), scale.dtype),)


def summed(case: Case) -> int:
    """Return k, the longest a sum may be."""
    return case.inputs[0].shape[1]


def _byte(shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(shape, "int8", strides, span=_BYTE)


def _plain_case(name: str, sizes: tuple[int, int, int], *, timed: bool = False, hidden: bool = False) -> Case:
    m, k, n = sizes
    scales = (TensorSpec((n,), "float16", values="positive"), TensorSpec((m,), "float16", values="small"))
    return Case(name, (_byte((m, k)), _byte((k, n)), *scales), {}, timed, hidden)


def _rows_case(name: str, sizes: Sizes, *, timed: bool = False, hidden: bool = False) -> Case:
    m, k, n, groups = sizes
    half = "bfloat16"
    scales = (TensorSpec((groups, n), half), TensorSpec((m,), half))
    return Case(name, (_byte((m, k)), _byte((groups, k, n)), *scales, ends_of(groups, m)), {}, timed, hidden)


def _sum_case(name: str, sizes: Sizes, *, timed: bool = False, hidden: bool = False) -> Case:
    m, k, n, groups = sizes
    half = "bfloat16"
    scales = (TensorSpec((groups, n), half), TensorSpec((groups, m), half))
    return Case(name, (_byte((m, k), (1, m)), _byte((k, n)), *scales, ends_of(groups, k)), {}, timed, hidden)


def plain_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes."""
    return tuple(_plain_case(name, sizes, hidden=True) for name, sizes in hard_sizes(rng).items())


def rows_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes with few and many groups."""
    return tuple(_rows_case(name, sizes, hidden=True) for name, sizes in groups_for(rng).items())


def sum_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes with few and many groups."""
    return tuple(_sum_case(name, sizes, hidden=True) for name, sizes in groups_for(rng).items())


OPERATORS = (
    Operator(
        name="QuantMatmul",
        level=3,
        family="matmul",
        summary=(
            "out[i, j] = (a b)[i, j] * scale[j] * per_token[i]; a int8 [m, k], b int8 [k, n], scale and per_token "
            "float16, out float16."
        ),
        cases=(
            _plain_case("wide", (128, 320, 320), timed=True),
            _plain_case("odd", (160, 512, 105), timed=True),
            _plain_case("tail", (13, 37, 19)),
            _plain_case("one-row", (1, 65, 33)),
            _plain_case("thin", (40, 3, 5)),
        ),
        full_cases=tuple(_plain_case(f"full-{i}", sizes) for i, sizes in enumerate(FULL_LONG)),
        reference=quantised,
        baseline=quantised_of_torch,
        outputs=outputs,
        hidden_cases=plain_hidden,
        accumulation=summed,
        dtypes=("int8", "float16"),
        expert_file=beside(__file__, "quant_matmul.cpp"),
        traps=(
            _EXACT,
            _LATE,
            "The product of both scales may be below half precision's range where the result is not.",
        ),
    ),
    Operator(
        name="GroupedMatmulSliceMPerTokenDequant",
        level=3,
        family="matmul",
        summary=(
            "out[i, j] = (a b[g])[i, j] * scale[g, j] * per_token[i], g the group of row i; a int8 [m, k], b int8 "
            "[groups, k, n], scale [groups, n] and per_token [m] bfloat16, ends int64 [groups], out bfloat16."
        ),
        cases=(
            _rows_case("few", (128, 320, 160, 2), timed=True),
            _rows_case("many", (160, 128, 105, 32), timed=True),
            *(_rows_case(name, sizes) for name, sizes in SMALL.items()),
        ),
        full_cases=tuple(_rows_case(f"full-{i}", sizes) for i, sizes in enumerate(GROUPED)),
        reference=by_rows,
        baseline=by_rows_of_torch,
        outputs=outputs,
        hidden_cases=rows_hidden,
        accumulation=summed,
        dtypes=("int8", "bfloat16", "int64"),
        expert_file=beside(__file__, "grouped_slice_m_dequant.cpp"),
        traps=(_EXACT, _LATE, "The list holds ends, not lengths; a group may be empty."),
        conditions=("Ends do not fall, and the last one is m.",),
    ),
    Operator(
        name="GroupedMatmulSliceKPerTokenDequant",
        level=3,
        family="matmul",
        summary=(
            "out[g, i, j] = (a[:, part] b[part])[i, j] * scale[g, j] * per_token[g, i], part the group's range of the "
            "k axis; a int8 [m, k] stored by columns, b int8 [k, n], scale [groups, n], per_token [groups, m] "
            "bfloat16, ends int64 [groups], out bfloat16."
        ),
        cases=(
            _sum_case("few", (128, 640, 160, 2), timed=True),
            _sum_case("many", (64, 1024, 70, 24), timed=True),
            *(_sum_case(name, sizes) for name, sizes in SMALL.items()),
        ),
        full_cases=tuple(_sum_case(f"full-{i}", sizes) for i, sizes in enumerate(GROUPED)),
        reference=by_sum,
        baseline=by_sum_of_torch,
        outputs=outputs,
        hidden_cases=sum_hidden,
        accumulation=summed,
        dtypes=("int8", "bfloat16", "int64"),
        expert_file=beside(__file__, "grouped_slice_k_dequant.cpp"),
        traps=(_EXACT, _LATE, "An empty group's output is zero, and must be written."),
        conditions=("Ends do not fall, and the last one is k.",),
    ),
)
