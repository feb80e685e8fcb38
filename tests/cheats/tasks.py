"""Tasks that cheats live on: answers that are constant, tiny or nearly the input, and one that fusion makes quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor


def faint(x: Tensor) -> tuple[Tensor, ...]:
    """Return 1e-5 x, far below an absolute tolerance of 1e-3."""
    return (x * 1e-5,)


def collapsed(x: Tensor) -> tuple[Tensor, ...]:
    """Take softmax along an axis of one element: 1 everywhere."""
    return (x.unsqueeze(-1).softmax(dim=-1).squeeze(-1),)


def zero_weights(x: Tensor) -> tuple[Tensor, ...]:
    """Apply a linear layer whose weights are still zeros."""
    return (x @ x.new_zeros((x.shape[-1], x.shape[-1])),)


def near_identity(x: Tensor) -> tuple[Tensor, ...]:
    """Move x by less than float32 shows."""
    return (x + 1e-9 * x.sin(),)


def long_chain(x: Tensor) -> tuple[Tensor, ...]:
    """Apply twenty products and sums, each of which torch runs as a kernel of its own."""
    for _ in range(20):
        x = x * 0.96875
        x = x + 0.125
    return (x,)


def _task(reference: Callable[[Tensor], tuple[Tensor, ...]], shape: tuple[int, ...] = (64, 96)) -> Operator:
    return Operator(
        name=reference.__name__,
        level=1,
        family="elementwise",
        summary=reference.__doc__ or "",
        cases=(Case("plain", (TensorSpec(shape),), timed=True), Case("tail", (TensorSpec((7, 13)),))),
        reference=reference,
        baseline=reference,
        outputs=lambda case: (TensorSpec(case.inputs[0].shape),),
        hidden_cases=lambda rng: (Case("odd", (TensorSpec((3, 2 * int(rng.integers(20, 40)) + 1)),), hidden=True),),
        accumulation=lambda _: 1,
    )


TASKS = {task.name: task for task in map(_task, (faint, collapsed, zero_weights, near_identity))}
TASKS["long_chain"] = _task(long_chain, (128, 2048))
