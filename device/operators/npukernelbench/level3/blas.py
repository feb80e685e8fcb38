"""The general products of BLAS: a scaled product plus a scaled third, for a matrix, a vector and a list of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, padded, prime, swapped
from device.operators.npukernelbench.level3.sizes import FULL, Sizes, hard_sizes, named, product_cases

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_FACTORS = {"alpha": 1.5, "beta": -0.75}


def gemm(a: Tensor, b: Tensor, c: Tensor, *, alpha: float, beta: float) -> tuple[Tensor, ...]:
    """Compute alpha a b + beta c (BLAS level 3)."""
    return (alpha * (a @ b) + beta * c,)


def gemm_of_torch(a: Tensor, b: Tensor, c: Tensor, *, alpha: float, beta: float) -> tuple[Tensor, ...]:
    """Call torch's own addmm."""
    return (c.addmm(a, b, alpha=alpha, beta=beta),)


def gemv(a: Tensor, x: Tensor, y: Tensor, *, alpha: float, beta: float) -> tuple[Tensor, ...]:
    """Compute alpha a x + beta y (BLAS level 2)."""
    return (alpha * (a @ x) + beta * y,)


def gemv_of_torch(a: Tensor, x: Tensor, y: Tensor, *, alpha: float, beta: float) -> tuple[Tensor, ...]:
    """Call torch's own addmv."""
    return (y.addmv(a, x, alpha=alpha, beta=beta),)


def group_gemm(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Compute alpha[i] a_i b_i + beta[i] c_i for every group; inputs are all a, all b, all c, alpha, beta."""
    count = (len(tensors) - 2) // 3
    a, b, c = (tensors[i * count : (i + 1) * count] for i in range(3))
    alpha, beta = tensors[3 * count :]
    return tuple(
        (alpha[i].to(wide(a[i]).dtype) * (wide(a[i]) @ wide(b[i])) + beta[i].to(wide(a[i]).dtype) * wide(c[i])).to(
            a[i].dtype
        )
        for i in range(count)
    )


def group_gemm_of_torch(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own addmm for every group, in float32, which a CPU multiplies much faster than half numbers."""
    count = (len(tensors) - 2) // 3
    a, b, c = (tensors[i * count : (i + 1) * count] for i in range(3))
    alpha, beta = tensors[3 * count :]
    factors = zip(alpha.tolist(), beta.tolist(), strict=True)
    return tuple(
        wide(c[i]).addmm(wide(a[i]), wide(b[i]), alpha=p, beta=q).to(a[i].dtype) for i, (p, q) in enumerate(factors)
    )


def gemm_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output of the shape of the last input; raises InvalidOperator when the factors do not fit it."""
    a, b, c = case.inputs
    if a.shape[1] != b.shape[0] or (a.shape[0], *b.shape[1:]) != c.shape:
        raise InvalidOperator(f"case {case.name}", f"{[list(spec.shape) for spec in case.inputs]} do not fit")
    return (TensorSpec(c.shape, c.dtype),)


def group_outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output for each group."""
    count = (len(case.inputs) - 2) // 3
    return tuple(TensorSpec(spec.shape, spec.dtype) for spec in case.inputs[2 * count : 3 * count])


def longest_sum(case: Case) -> int:
    """Return the longest k, and one for what is added."""
    count = max(1, (len(case.inputs) - 2) // 3)
    return max(spec.shape[1] for spec in case.inputs[:count]) + 1


def _matrices(sizes: Sizes) -> tuple[TensorSpec, ...]:
    m, k, n = sizes
    return (TensorSpec((m, k)), TensorSpec((k, n)), TensorSpec((m, n)))


def _vectors(sizes: Sizes) -> tuple[TensorSpec, ...]:
    m, n, _ = sizes
    return (TensorSpec((m, n)), TensorSpec((n,)), TensorSpec((m,)))


def gemm_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes and views."""
    m, k, n = prime(rng, 17, 60), odd(rng, 17, 120), prime(rng, 17, 80)
    views = {
        "swapped": (swapped((m, k)), swapped((k, n)), swapped((m, n))),
        "padded": (padded((m, k)), padded((k, n)), padded((m, n))),
    }
    return (
        *product_cases(hard_sizes(rng), _matrices, hidden=True, attributes=_FACTORS),
        *(Case(name, inputs, _FACTORS, hidden=True) for name, inputs in views.items()),
    )


def gemv_hidden(rng: Generator) -> tuple[Case, ...]:
    """Hard sizes and views."""
    m, n = prime(rng, 17, 200), odd(rng, 17, 300)
    views = {
        "swapped": (swapped((m, n)), TensorSpec((n,)), TensorSpec((m,))),
        "padded": (padded((m, n)), TensorSpec((n,), strides=(2,)), TensorSpec((m,))),
    }
    return (
        *product_cases(hard_sizes(rng), _vectors, hidden=True, attributes=_FACTORS),
        *(Case(name, inputs, _FACTORS, hidden=True) for name, inputs in views.items()),
    )


def _group_case(name: str, groups: tuple[Sizes, ...], *, timed: bool = False, hidden: bool = False) -> Case:
    half = "float16"
    inputs = (
        *(TensorSpec((m, k), half) for m, k, _ in groups),
        *(TensorSpec((k, n), half) for _, k, n in groups),
        *(TensorSpec((m, n), half) for m, _, n in groups),
        TensorSpec((len(groups),)),
        TensorSpec((len(groups),)),
    )
    return Case(name, inputs, {}, timed, hidden)


def group_hidden(rng: Generator) -> tuple[Case, ...]:
    """One group, several of unlike sizes, thin ones."""
    hard = tuple(hard_sizes(rng).values())
    return (
        _group_case("single", (hard[0],), hidden=True),
        _group_case("thin", hard[1:4], hidden=True),
        _group_case("mixed", hard[:6], hidden=True),
        _group_case("one", (hard[4],), hidden=True),
        _group_case("pair", (hard[5], hard[4]), hidden=True),
    )


_GROUPS = (
    ((125, 1495, 1417), (199, 441, 1583)),
    ((507, 1275, 358), (349, 604, 67)),
    ((279, 1146, 913),),
    ((242, 1303, 183), (140, 692, 1323), (167, 1178, 1783)),
    ((120, 1952, 541), (46, 1044, 592), (318, 557, 564)),
    ((452, 1533, 1340), (178, 1958, 1558), (243, 1023, 1627), (325, 194, 1936)),
    ((87, 113, 1499), (450, 1695, 383), (350, 208, 1477), (47, 498, 455)),
    ((77, 265, 861), (356, 1653, 1167), (213, 1129, 647), (224, 202, 1111)),
    ((265, 189, 390), (333, 796, 1042), (469, 750, 1668)),
    ((278, 410, 133), (345, 1813, 1963)),
)
_SMALL: dict[str, Sizes] = {"tail": (13, 37, 19), "one-row": (1, 65, 33), "thin": (40, 3, 5)}
_SUM_TRAP = "One running float32 sum over a long row drifts; sum in blocks or lanes."

OPERATORS = (
    Operator(
        name="Gemm",
        level=3,
        family="matmul",
        summary="out = alpha a b + beta c; a is [m, k], b is [k, n], c is [m, n].",
        cases=(
            *product_cases({"wide": (128, 256, 512), "odd": (96, 512, 210)}, _matrices, timed=2, attributes=_FACTORS),
            *product_cases(_SMALL, _matrices, attributes=_FACTORS),
        ),
        full_cases=product_cases(named(FULL), _matrices, attributes=_FACTORS),
        reference=gemm,
        baseline=gemm_of_torch,
        outputs=gemm_outputs,
        hidden_cases=gemm_hidden,
        accumulation=longest_sum,
        attributes=("alpha", "beta"),
        expert_file=beside(__file__, "gemm.cpp"),
        traps=(_SUM_TRAP, "c is read only: the result goes to an output of its own."),
    ),
    Operator(
        name="Gemv",
        level=3,
        family="matmul",
        summary="out = alpha a x + beta y; a is [m, n], x is [n], y is [m].",
        cases=(
            *product_cases({"wide": (1152, 1433, 1), "tall": (4096, 128, 1)}, _vectors, timed=2, attributes=_FACTORS),
            *product_cases(_SMALL, _vectors, attributes=_FACTORS),
        ),
        full_cases=product_cases(named(tuple((m, n, 1) for m, _, n in FULL)), _vectors, attributes=_FACTORS),
        reference=gemv,
        baseline=gemv_of_torch,
        outputs=gemm_outputs,
        hidden_cases=gemv_hidden,
        accumulation=longest_sum,
        attributes=("alpha", "beta"),
        expert_file=beside(__file__, "gemv.cpp"),
        traps=(_SUM_TRAP, "Each element of a is used once: the memory, not the arithmetic, sets the time."),
    ),
    Operator(
        name="GroupGemm",
        level=3,
        family="matmul",
        summary=(
            "Inputs a_0 .. a_g-1, b_0 .. b_g-1, c_0 .. c_g-1, alpha [g], beta [g]; "
            "out_i = alpha[i] a_i b_i + beta[i] c_i, sizes differ from group to group, half precision, factors float32."
        ),
        cases=(
            _group_case("pair", ((125, 149, 141), (99, 244, 158)), timed=True),
            _group_case("four", ((45, 153, 134), (17, 195, 155), (24, 102, 162), (32, 19, 193)), timed=True),
            _group_case("one", ((13, 37, 19),)),
            _group_case("thin", ((1, 65, 33), (40, 3, 5), (7, 1, 9))),
        ),
        full_cases=tuple(_group_case(f"full-{i}", groups) for i, groups in enumerate(_GROUPS)),
        reference=group_gemm,
        baseline=group_gemm_of_torch,
        outputs=group_outputs,
        hidden_cases=group_hidden,
        accumulation=longest_sum,
        dtypes=("float16", "float32"),
        expert_file=beside(__file__, "group_gemm.cpp"),
        traps=(
            "Groups differ in size: equal shares of groups are no equal shares of work.",
            "The product is scaled before it is rounded to half precision.",
        ),
    ),
)
