"""Problems of a task that is run in a process of its own: inputs, and what the reference makes of them in float64.

The inputs are those of `get_inputs` under several seeds, and those of the first seed under each of the judge's
distributions. What an output must be is worked out as for the judge's own operators (`device.compare`). The length of
the longest accumulation is not known here: it is taken to be the elements of the largest input or weight, which widens
the hardened bound by the logarithm of what it is too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from device.arena import Array
from device.compare import Expectation, compare, expect
from device.errors import TaskRefused
from device.oracle import DISTRIBUTIONS, HONEST_SHARE, MOST_SLACK, numbers
from device.suites.process import MOST_BYTES, Process, Said, Tensor, unusable
from device.suites.tasks import Task
from device.types import Mode, RuleName

SEEDS = {"hardened": 3, "paper": 5}
"""Seeds of `get_inputs`; five is the number of the benchmark's own trials."""

STAND_INS = ("torch_npu", "torch_npu.contrib", "kernel_gen_ops", "framework", "framework.utils")
"""Modules that an NPUKernelBench module imports and whose reference does not need."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One set of inputs, and what each output must be."""

    name: str
    inputs: list[Any]
    expected: tuple[Expectation, ...]
    own: tuple[Tensor, ...]
    """What the reference gives in its own dtype."""


def open_reference(
    process: Process, task: Task, seed: int, row: Mapping[str, Any] | None = None, most: int = MOST_BYTES
) -> list[Any]:
    """Load the task's `Model` and return its initial arguments. Raises TaskRefused with what stands in the way."""
    try:
        init: list[Any] = process.ask(
            "open", text=task.text, file=f"{task.name}.py", beside=dict(task.beside), model="Model", seed=seed,
            needs=["Model", "get_inputs", "get_init_inputs"], init=None, row=row,
            most=most,
            stand_ins=STAND_INS if task.form == "npukernelbench" else (),
        )  # fmt: skip
    except Said as said:
        raise TaskRefused(task.name, said.ended.message) from said
    return init


def outputs(process: Process, inputs: list[Any], seed: int, *, wide: bool) -> list[Tensor]:
    """Run the model that a process holds once. Raises Said."""
    process.ask("slot", inputs=inputs)
    process.ask("call", seed=seed, wide=wide)
    got: list[Tensor] = process.ask("fetch")
    return got


def pose(
    process: Process, task: Task, seed: int, mode: Mode, rule: RuleName, count: int | None = None
) -> list[Problem]:
    """Work out the problems of an opened reference; `count`: the first seeds alone, to see whether they can be judged.

    Raises TaskRefused where the reference fails, gives no tensors, or answers what a constant would.
    """
    try:
        state: dict[str, Tensor] = process.ask("state")
        problems: list[Problem] = []
        for name, inputs in _inputs(process, seed, mode, count):
            length = max([t.bits.size for t in (*state.values(), *tensors(inputs))], default=1)
            problem = _problem(process, name, inputs, seed, rule, length)
            if problem is not None:
                problems.append(problem)
    except Said as said:
        raise TaskRefused(task.name, f"the reference: {said.ended.message}") from said
    _accept(task, problems)
    return problems


def _inputs(process: Process, seed: int, mode: Mode, count: int | None) -> Iterator[tuple[str, list[Any]]]:
    first: list[Any] = []
    for number in range(SEEDS[mode] if count is None else count):
        drawn: list[Any] = process.ask("inputs", seed=(seed + number) & (1 << 62) - 1)
        first = first or drawn
        yield f"seed {number}/given", drawn
    if mode == "hardened" and count is None:
        for kind, change in list(DISTRIBUTIONS.items())[1:]:
            yield f"seed 0/{kind}", [_changed(value, change) for value in first]


def _changed(value: Any, change: Callable[[Array], Array]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(part, change) for part in value)
    if not isinstance(value, Tensor) or not value.floating:
        return value
    with np.errstate(all="ignore"):
        moved = change(numbers(value.bits, value.dtype).astype(np.float32))
    if value.dtype == "bfloat16":
        return Tensor(value.dtype, (np.ascontiguousarray(moved).view(np.uint32) >> 16).astype(np.uint16))
    return Tensor(value.dtype, moved.astype(value.bits.dtype))


def tensors(value: Any) -> Iterator[Tensor]:
    """Yield every tensor in a value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


def _problem(process: Process, name: str, inputs: list[Any], seed: int, rule: RuleName, length: int) -> Problem | None:
    own = outputs(process, inputs, seed, wide=False)
    again = outputs(process, inputs, seed, wide=False) if name == "seed 0/given" else own
    wide = outputs(process, inputs, seed, wide=True)
    if not own or any(one.bits.size == 0 for one in own):
        raise unusable("it gives no tensor with elements")
    shapes = [[tuple(one.bits.shape) for one in each] for each in (own, wide)]
    if shapes[0] != shapes[1]:
        raise unusable(f"in float64 it gives shapes {shapes[1]}, else {shapes[0]}")
    expected: list[Expectation] = []
    for one, other, twin in zip(own, wide, again, strict=True):
        reference = numbers(other.bits, other.dtype)
        reference = reference.astype(np.float64) if one.floating or one.dtype == "complex64" else reference
        mine = numbers(one.bits, one.dtype)
        expectation = expect(reference, one.dtype, length, rule)
        share = max(expectation.worst(mine), expectation.worst(numbers(twin.bits, twin.dtype)))
        if rule == "hardened" and HONEST_SHARE < share <= HONEST_SHARE * MOST_SLACK:
            expectation = expect(reference, one.dtype, length, rule, slack=share / HONEST_SHARE)
            share = expectation.worst(mine)
        if share > 1 or not np.isfinite(reference).all():
            return None  # torch itself is far off, or the numbers are outside of what the formula takes
        expected.append(expectation)
    return Problem(name, inputs, tuple(expected), tuple(own))


def _accept(task: Task, problems: list[Problem]) -> None:
    given = [problem for problem in problems if problem.name.endswith("/given")]
    if len(given) < 2:
        reason = "its own float32 result is too far from float64, differs from run to run, or is not finite"
        raise TaskRefused(task.name, f"no inputs of it can be judged: {reason}")
    if not any(True for problem in given for _ in tensors(problem.inputs)):
        raise TaskRefused(task.name, "it has no tensor among its inputs: the answer is always the same")
    for one in zip(*(problem.expected for problem in problems), strict=True):
        if all(expected.steady and expected.reference.size > 1 for expected in one):
            raise TaskRefused(task.name, "zeros or a constant would pass every case")
    same = [
        all(compare(e, numbers(o.bits, o.dtype)).ok for e, o in zip(given[0].expected, other.own, strict=True))
        for other in given[1:]
    ]
    if any(same):
        raise TaskRefused(task.name, "the answer for other inputs passes: it does not depend on them")
    copies = [_copy_passes(problem) for problem in problems]
    if all(copies):
        raise TaskRefused(task.name, "a copy of an input would pass every case")


def _copy_passes(problem: Problem) -> bool:
    given = list(tensors(problem.inputs))
    return all(
        any(
            one.dtype == own.dtype and one.bits.size == own.bits.size
            and compare(expected, numbers(one.bits, one.dtype).reshape(expected.reference.shape)).ok
            for one in given
        )
        for expected, own in zip(problem.expected, problem.own, strict=True)
    )  # fmt: skip
