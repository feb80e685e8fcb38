"""Reductions of one vector, of which `n` elements count, `incx` apart: the first level of BLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import SHORT, wide
from device.operators.forms import odd, prime, tail

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

_TAKEN = "Only every incx-th element counts, n of them; what lies between and behind does not."
_ONE = "The answer counts from 1 among the n elements taken, as in BLAS, and is int32."


def icamax(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Find the first element of the largest |re| + |im|, counted from 1 among the n elements taken."""
    taken = x[:: int(incx)][: int(n)]
    size = taken.real.abs() + taken.imag.abs()
    return ((size == size.max()).int().argmax().int() + 1,)


def isamin(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Find the first element of the smallest |x|, counted from 1 among the n elements taken."""
    size = x[:: int(incx)][: int(n)].abs()
    return ((size == size.min()).int().argmax().int() + 1,)


def isamin_of_torch(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Call torch's own argmin."""
    return (x[:: int(incx)][: int(n)].abs().argmin().int() + 1,)


def icamax_of_torch(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Call torch's own argmax."""
    taken = x[:: int(incx)][: int(n)]
    return ((taken.real.abs() + taken.imag.abs()).argmax().int() + 1,)


def sasum(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Sum |x| over the n elements taken."""
    return (wide(x[:: int(incx)][: int(n)]).abs().sum().to(x.dtype),)


def snrm2(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Take the root of the sum of squares over the n elements taken."""
    return (wide(x[:: int(incx)][: int(n)]).square().sum().sqrt().to(x.dtype),)


def snrm2_of_torch(x: Tensor, *, n: float, incx: float) -> tuple[Tensor, ...]:
    """Call torch's own vector norm."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return (torch.linalg.vector_norm(x[:: int(incx)][: int(n)]),)


def _taken(case: Case) -> int:
    return int(case.attributes["n"])


def _case(
    name: str, size: int, n: int, incx: int, dtype: str, *, stride: int = 1, timed: bool = False, hidden: bool = False
) -> Case:
    spec = TensorSpec((size,), dtype, None if stride == 1 else (stride,))
    return Case(f"{name}-{SHORT[dtype]}", (spec,), {"n": n, "incx": incx}, timed, hidden)


def _hidden(dtype: str) -> Callable[[Generator], tuple[Case, ...]]:
    most = 3000 if dtype == "float16" else 60_000

    def draw(rng: Generator) -> tuple[Case, ...]:
        short, long = prime(rng, 20, 200), odd(rng, most // 2, most)
        return (
            _case("single", 1, 1, 1, dtype, hidden=True),
            _case("prime", short, short, 1, dtype, hidden=True),
            _case("part", short + 40, short, 1, dtype, hidden=True),
            _case("every-third", 3 * short, short, 3, dtype, hidden=True),
            _case("short-of-the-end", 2 * short + 9, short, 2, dtype, hidden=True),
            _case("block-tail", *(tail(rng, 64, 4, 40),) * 2, 1, dtype, hidden=True),
            _case("long", long, long, 1, dtype, hidden=True),
            _case("long-part", long, long // 7, 5, dtype, hidden=True),
            _case("strided", short, short, 1, dtype, stride=2, hidden=True),
        )

    return draw


def _vector(
    name: str,
    formula: Callable[..., tuple[Tensor, ...]],
    baseline: Callable[..., tuple[Tensor, ...]],
    *,
    summary: str,
    dtype: str,
    size: int,
    full: tuple[tuple[int, int, int], ...],
    expert: str,
    traps: tuple[str, ...],
    index: bool = False,
    more: tuple[str, ...] = (),
) -> Operator:
    def outputs(case: Case) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), "int32" if index else case.inputs[0].dtype),)

    def hidden(rng: Generator) -> tuple[Case, ...]:
        return tuple(case for kind in (dtype, *more) for case in _hidden(kind)(rng))

    return Operator(
        name=name,
        level=1,
        family="reduction",
        summary=summary,
        cases=(
            _case("long", size, size, 1, dtype, timed=True),
            _case("every-fourth", size, size // 4, 4, dtype, timed=True),
            _case("tail", 131, 131, 1, dtype),
            _case("first-half", 50, 25, 1, dtype),
            _case("every-second", 64, 32, 2, dtype),
            *(_case("short", 16, 16, 1, kind) for kind in more),
        ),
        full_cases=tuple(_case(f"full-{number}", *sizes, dtype) for number, sizes in enumerate(full)),
        reference=formula,
        baseline=baseline,
        outputs=outputs,
        hidden_cases=hidden,
        accumulation=_taken,
        dtypes=(dtype, *more),
        attributes=("n", "incx"),
        expert_file=beside(__file__, expert),
        traps=(_TAKEN, *traps),
        conditions=("(n - 1) * incx is below the length of x, n and incx are at least 1.",),
    )


OPERATORS = (
    _vector(
        "Icamax", icamax, icamax_of_torch,
        summary="out = 1 + index of the first largest |re x| + |im x| among n elements of x, incx apart; int32.",
        dtype="complex64", size=1 << 18, index=True, expert="icamax.cpp",
        full=((2046, 2046, 1), (100, 100, 1), (50, 25, 1), (10, 10, 1), (1024, 1024, 1), (10, 5, 1)),
        traps=(_ONE, "The size of a complex number here is |re| + |im|, not its modulus.",
               "Sums that differ by less than a float32 rounding are told apart in double."),
    ),
    _vector(
        "Isamin", isamin, isamin_of_torch,
        summary="out = 1 + index of the first smallest |x| among n elements of x, incx apart; int32.",
        dtype="float32", size=1 << 19, index=True, expert="isamin.cpp",
        full=((2046, 2046, 1), (10, 10, 1), (1024, 1024, 1), (100, 100, 1), (50, 25, 1)),
        traps=(_ONE, "Of equal elements the first counts, also across blocks and threads."),
    ),
    _vector(
        "Sasum", sasum, sasum,
        summary="out = sum of |x| over n elements of x, incx apart; one number of x's type.",
        dtype="float32", size=1 << 19, expert="sasum.cpp", more=("float16",),
        full=((32, 32, 1), (64, 32, 2), (16, 16, 1)),
        traps=("One float32 accumulator over a long vector loses digits.",
               "A sum of half numbers is gathered in float32 and rounded once."),
    ),
    _vector(
        "Snrm2", snrm2, snrm2_of_torch,
        summary="out = sqrt(sum of x^2) over n elements of x, incx apart; one number of x's type.",
        dtype="float32", size=1 << 19, expert="snrm2.cpp",
        full=((32, 32, 1), (1024, 1024, 1), (1000, 1000, 1), (4096, 4096, 1)),
        traps=("One float32 accumulator over a long vector loses digits.",
               "Squares of 1e20 overflow float32; double carries them."),
    ),
)  # fmt: skip
