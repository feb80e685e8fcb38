"""Products of two half-precision matrices: plain, batched, padded, split along the sum, with something added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.errors import InvalidOperator
from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import odd, padded, prime, swapped
from device.operators.npukernelbench.level3.sizes import FULL, FULL_LONG, Sizes, hard_sizes, named, product_cases

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Make = Callable[[Sizes], tuple[TensorSpec, ...]]
HALF = "float16"
_SUMS = "Products are gathered in float32; a half-precision accumulator stops growing and loses the small ones."


def product(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Sum a[.., i, l] * b[.., l, j] over l."""
    return ((wide(a) @ wide(b)).to(a.dtype),)


def product_of_torch(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own product in float32: on a CPU its product of half numbers is 30 and more times as slow."""
    return (wide(a).matmul(wide(b)).to(a.dtype),)


def product_plus(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Add c, a matrix or one row, to the product of a and b, before anything is rounded."""
    return ((wide(a) @ wide(b) + wide(c)).to(a.dtype),)


def plus_of_torch(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """Call torch's own addmm in float32, as `product_of_torch` does."""
    return (wide(c).addmm(wide(a), wide(b)).to(a.dtype),)


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense [.., m, n] output; raises InvalidOperator when the factors do not fit."""
    a, b = case.inputs[:2]
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise InvalidOperator(f"case {case.name}", f"{list(a.shape)} and {list(b.shape)} do not multiply")
    return (TensorSpec((*a.shape[:-1], b.shape[-1]), a.dtype),)


def summed(case: Case) -> int:
    """Return k, and one more where something is added."""
    return case.inputs[0].shape[-1] + len(case.inputs) - 2


def _typed(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.shape, HALF, spec.strides)


def plain(sizes: Sizes) -> tuple[TensorSpec, ...]:
    """Describe dense factors."""
    m, k, n = sizes
    return (TensorSpec((m, k), HALF), TensorSpec((k, n), HALF))


def turned(sizes: Sizes) -> tuple[TensorSpec, ...]:
    """Describe factors of which the right one is stored by columns, as the weights of a layer are."""
    m, k, n = sizes
    return (TensorSpec((m, k), HALF), _typed(swapped((k, n))))


def gapped(sizes: Sizes) -> tuple[TensorSpec, ...]:
    """Describe factors whose rows are padded to more than they hold."""
    m, k, n = sizes
    return (_typed(padded((m, k), 16 - k % 16)), _typed(padded((k, n), 16 - n % 16)))


def batch(sizes: Sizes, count: int = 1) -> tuple[TensorSpec, ...]:
    """Describe batches of factors."""
    m, k, n = sizes
    return (TensorSpec((count, m, k), HALF), TensorSpec((count, k, n), HALF))


def _hidden(*makes: Make) -> Callable[[Generator], tuple[Case, ...]]:
    def draw(rng: Generator) -> tuple[Case, ...]:
        cases = [*product_cases(hard_sizes(rng), makes[0], hidden=True)]
        m, k, n = prime(rng, 17, 60), odd(rng, 17, 120), prime(rng, 17, 80)
        for number, make in enumerate(makes[1:]):
            cases.append(Case(f"layout-{number}", make((m, k, n)), hidden=True))
        return tuple(cases)

    return draw


def _plus(shape: Callable[[int, int], tuple[int, ...]]) -> Callable[[Make], Make]:
    def more(make: Make) -> Make:
        return lambda sizes: (*make(sizes), TensorSpec(shape(sizes[0], sizes[2]), HALF))

    return more


def _operator(
    name: str,
    summary: str,
    make: Make,
    *,
    timed: dict[str, Sizes],
    full: tuple[Sizes, ...] = FULL,
    others: tuple[Make, ...] = (),
    reference: Callable[..., tuple[Tensor, ...]] = product,
    baseline: Callable[..., tuple[Tensor, ...]] = product_of_torch,
    expert: str = "product.cpp",
    traps: tuple[str, ...] = (),
) -> Operator:
    small: dict[str, Sizes] = {"tail": (13, 37, 19), "one-row": (1, 65, 33), "thin": (40, 3, 5)}
    return Operator(
        name=name,
        level=3,
        family="matmul",
        summary=summary,
        cases=(
            *product_cases(timed, make, timed=2),
            *product_cases(small, make),
            *(Case(f"layout-{number}", other((21, 30, 24))) for number, other in enumerate(others)),
        ),
        full_cases=product_cases(named(full), make),
        reference=reference,
        baseline=baseline,
        outputs=outputs,
        hidden_cases=_hidden(make, *others),
        accumulation=summed,
        dtypes=(HALF,),
        expert_file=beside(__file__, expert),
        traps=(_SUMS, *traps),
    )


_BATCHES = (
    (1, 128, 1280, 640), (8, 64, 512, 128), (2, 256, 128, 1024), (4, 1024, 864, 128), (5, 327, 1152, 554),
    (1, 1152, 512, 1433), (2, 640, 256, 619), (16, 128, 1152, 1152), (8, 512, 512, 512), (1, 1152, 640, 640),
)  # fmt: skip
_MATRIX, _ROW = _plus(lambda m, n: (m, n)), _plus(lambda _, n: (n,))


def _batch_case(name: str, sizes: tuple[int, int, int, int], *, timed: bool = False, hidden: bool = False) -> Case:
    return Case(name, batch(sizes[1:], sizes[0]), timed=timed, hidden=hidden)


def batch_hidden(rng: Generator) -> tuple[Case, ...]:
    """Batches of the hard sizes, and many small products."""
    cases = [_batch_case(name, (odd(rng, 1, 4), *sizes), hidden=True) for name, sizes in hard_sizes(rng).items()]
    return (*cases, _batch_case("many", (odd(rng, 40, 99), 3, prime(rng, 5, 20), 7), hidden=True))


OPERATORS = (
    _operator(
        "BasicMatmul",
        "out = a b; a is [m, k], b is [k, n], half precision.",
        plain,
        timed={"wide": (128, 256, 512), "odd": (96, 512, 210)},
        full=FULL_LONG,
        others=(turned, gapped),
        traps=("Sizes need not be multiples of any tile.",),
    ),
    _operator(
        "OptimizedMatmul",
        "out = a b; a is [m, k], b is [k, n] and stored by columns, half precision.",
        turned,
        timed={"wide": (128, 256, 512), "deep": (64, 1152, 154)},
        others=(plain, gapped),
        traps=("b is read along its dense axis, which here is k; the strides say so, and may say otherwise.",),
    ),
    _operator(
        "PaddingMatmul",
        "out = a b; a is [m, k], b is [k, n], rows of both padded in memory to the next 16 elements, half precision.",
        gapped,
        timed={"wide": (128, 256, 512), "odd": (64, 250, 619)},
        others=(plain, turned),
        traps=("What lies in the padding is no number of the matrix, not even a zero.",),
    ),
    _operator(
        "SplitkMatmul",
        "out = a b; a is [m, k], b is [k, n], k much longer than m and n, half precision.",
        plain,
        timed={"deep": (32, 4096, 64), "deeper": (8, 16384, 32)},
        others=(turned, gapped),
        traps=(
            "Small m and n leave no rows to share out: the sum itself is split, and parts are added in one order.",
            "Parts are added before they are rounded to half precision.",
        ),
    ),
    _operator(
        "MatmulAdd",
        "out = a b + c; a is [m, k], b is [k, n], c is [m, n], half precision.",
        _MATRIX(plain),
        timed={"wide": (128, 256, 512), "odd": (96, 512, 210)},
        others=(_MATRIX(turned), _MATRIX(gapped)),
        reference=product_plus,
        baseline=plus_of_torch,
        expert="product_plus.cpp",
        traps=("c is added before the product is rounded.",),
    ),
    _operator(
        "MatmulBias",
        "out = a b + bias; a is [m, k], b is [k, n], bias is [n] and added to every row, half precision.",
        _ROW(plain),
        timed={"wide": (128, 256, 512), "odd": (96, 512, 210)},
        others=(_ROW(turned), _ROW(gapped)),
        reference=product_plus,
        baseline=plus_of_torch,
        expert="product_plus.cpp",
        traps=("The bias goes along the columns of every row, and is added before the product is rounded.",),
    ),
    Operator(
        name="BatchedMatmul",
        level=3,
        family="matmul",
        summary="out = a b for every batch; a is [batch, m, k], b is [batch, k, n], half precision.",
        cases=(
            _batch_case("few", (4, 64, 256, 128), timed=True),
            _batch_case("many", (64, 32, 64, 32), timed=True),
            _batch_case("tail", (3, 13, 37, 19)),
            _batch_case("single", (1, 21, 30, 24)),
            _batch_case("vectors", (5, 1, 33, 1)),
        ),
        full_cases=tuple(_batch_case(f"full-{i}", sizes) for i, sizes in enumerate(_BATCHES)),
        reference=product,
        baseline=product_of_torch,
        outputs=outputs,
        hidden_cases=batch_hidden,
        accumulation=summed,
        dtypes=(HALF,),
        expert_file=beside(__file__, "batched.cpp"),
        traps=(_SUMS, "Many small products are shared out by batch, one large one by tiles."),
    ),
)
