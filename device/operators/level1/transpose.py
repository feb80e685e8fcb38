"""A copy with the last two axes exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.forms import nothing_summed, odd, padded, prime, swapped, tail

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor


def reference(x: Tensor) -> tuple[Tensor, ...]:
    """Exchange the last two axes: out[.., j, i] = x[.., i, j], in memory of its own."""
    out = x.new_empty((*x.shape[:-2], x.shape[-1], x.shape[-2]))
    for j in range(x.shape[-1]):
        out[..., j, :] = x[..., j]
    return (out,)


def baseline(x: Tensor) -> tuple[Tensor, ...]:
    """Copy torch's transposed view into dense memory."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    return (x.transpose(-2, -1).clone(memory_format=torch.contiguous_format),)


def outputs(case: Case) -> tuple[TensorSpec, ...]:
    """One dense output, the last two sizes exchanged."""
    (x,) = case.inputs
    *outer, rows, columns = x.shape
    return (TensorSpec((*outer, columns, rows), x.dtype),)


def hidden_cases(rng: Generator) -> tuple[Case, ...]:
    """Thin, prime, tailed and strided matrices."""
    specs: dict[str, TensorSpec] = {
        "single": TensorSpec((1, 1)),
        "one-row": TensorSpec((1, odd(rng, 100, 3000))),
        "one-column": TensorSpec((odd(rng, 100, 3000), 1)),
        "prime": TensorSpec((prime(rng, 17, 359), prime(rng, 17, 359))),
        "tail": TensorSpec((tail(rng, 32, 1, 8), tail(rng, 32, 1, 8))),
        "thin": TensorSpec((int(rng.integers(2, 8)), odd(rng, 500, 4000))),
        "deep": TensorSpec((2, odd(rng, 3, 7), prime(rng, 11, 60), odd(rng, 9, 50))),
        "swapped": swapped((odd(rng, 9, 90), prime(rng, 11, 90))),
        "padded": padded((odd(rng, 9, 90), prime(rng, 11, 90))),
    }
    return tuple(Case(name, (spec,), hidden=True) for name, spec in specs.items())


OPERATORS = (
    Operator(
        name="transpose",
        level=1,
        family="layout",
        summary="out[.., j, i] = x[.., i, j]: a dense copy with the last two axes exchanged.",
        cases=(
            Case("square", (TensorSpec((768, 768)),), timed=True),
            Case("wide", (TensorSpec((256, 1500)),), timed=True),
            Case("tail", (TensorSpec((33, 65)),)),
            Case("row", (TensorSpec((1, 257)),)),
            Case("batched", (TensorSpec((3, 17, 45)),)),
            Case("transposed", (swapped((40, 23)),)),
        ),
        reference=reference,
        baseline=baseline,
        outputs=outputs,
        hidden_cases=hidden_cases,
        accumulation=nothing_summed,
        expert_file=beside(__file__, "transpose.cpp"),
        traps=(
            "Walking either side element by element touches a new cache line each time; work in tiles.",
            "A tile that hangs over the edge must not read or write beyond it.",
            "An input that is a transposed view already makes the result a plain copy, and must still be copied.",
        ),
    ),
)
