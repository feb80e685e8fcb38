"""Operators over lists of tensors that reduce, round or check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device.operators.base import Case, TensorSpec, beside
from device.operators.formats import wide
from device.operators.forms import nothing_summed
from device.operators.npukernelbench.level2.lists import LISTS, ONE, WHOLE, Specs, first_list, listed, threes
from device.operators.npukernelbench.level2.plan import Attributes, planned

if TYPE_CHECKING:
    from torch import Tensor

_FLOATS = ("float32", "float16", "bfloat16")


def norm(*tensors: Tensor, order: float) -> tuple[Tensor, ...]:
    """Take the root of the sum of squares of each tensor (order 2), or the sum of absolute values (order 1)."""
    if order == 1:
        return tuple(wide(x).abs().sum().to(x.dtype) for x in tensors)
    return tuple(wide(x).square().sum().sqrt().to(x.dtype) for x in tensors)


def norm_of_torch(*tensors: Tensor, order: float) -> tuple[Tensor, ...]:
    """Call torch's own norm over lists."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    norms = torch._foreach_norm([wide(x) for x in tensors], order)  # noqa: SLF001  (torch's name for it)
    return tuple(y.to(x.dtype) for x, y in zip(tensors, norms, strict=True))


def round_off(*tensors: Tensor, round_mode: float) -> tuple[Tensor, ...]:
    """Round to whole numbers: 1 nearest, ties to even; 2 down; 3 up; 4 nearest, ties away from 0; 5 towards 0."""
    rounded = []
    for x in tensors:
        down, up = x.floor(), x.ceil()
        towards = up.where(x < 0, down)
        if round_mode in {2, 3, 5}:
            rounded.append({2: down, 3: up, 5: towards}[int(round_mode)])
            continue
        near = down.where(x - down < up - x, up)
        tie = (x - down == up - x) & (up != down)
        chosen = down + up - towards if round_mode == 4 else 2 * ((down + 1) / 2).floor()
        rounded.append(chosen.where(tie, near))
    return tuple(rounded)


def round_off_of_torch(*tensors: Tensor, round_mode: float) -> tuple[Tensor, ...]:
    """Call torch's own operators over lists."""
    import torch  # noqa: PLC0415  (torch loads when a baseline runs)

    if round_mode == 4:
        return tuple(x.sign() * (x.abs() + 0.5).floor() for x in tensors)
    name = {1: "round", 2: "floor", 3: "ceil", 5: "trunc"}[int(round_mode)]
    return tuple(getattr(torch, f"_foreach_{name}")(list(tensors)))


def norms(case: Case) -> Specs:
    """One number for each tensor, in its type."""
    return tuple(TensorSpec((), spec.dtype) for spec in case.inputs)


def _longest(case: Case) -> int:
    return max(spec.elements for spec in case.inputs)


_MODES: dict[str, Attributes] = {f"mode{mode}": {"round_mode": mode} for mode in range(1, 6)}

OPERATORS = (
    planned(
        "ForeachNorm", norm, baseline=norm_of_torch, expert=beside(__file__, "foreach_norm.cpp"),
        summary="out[i] = sqrt(sum of x[i]^2) with order 2, sum of |x[i]| with order 1, for a list x of three tensors.",
        shapes=threes(LISTS), inputs=listed("any"), outputs=norms, dtypes=_FLOATS, accumulation=_longest,
        variants={"": {"order": 2}, "one": {"order": 1}},
        traps=("One float32 accumulator over a long tensor loses digits; a sum of half numbers does at once.",
               "Squares of half numbers above 256 overflow half precision.",
               "The bits must not depend on which thread was first."),
        full=[(ONE, "float16", ""), (WHOLE, "bfloat16", "one"), (WHOLE, "float32", "")],
    ),
    planned(
        "ForeachRoundOffNumber", round_off, baseline=round_off_of_torch,
        expert=beside(__file__, "foreach_round_off_number.cpp"), family="elementwise",
        summary=("out[i] = x[i] rounded to whole numbers; round_mode 1: nearest, ties to even; 2: down; 3: up; 4: "
                 "nearest, "
                 "ties away from 0; 5: towards 0."),
        shapes=LISTS, inputs=listed("distinct"), outputs=first_list(1), dtypes=_FLOATS, accumulation=nothing_summed,
        variants=_MODES,
        traps=("floor(x + 0.5) rounds -2.5 to -2, and 0.49999997 to 1.", "Ties occur: sixteenths are among the inputs.",
               "Numbers beyond 2^31 do not fit the int32 that a cast goes through."),
        full=[((TensorSpec((10,)),), "float32", "mode1"), ((TensorSpec((20, 20)),), "float16", "mode5")],
    ),
)  # fmt: skip
