"""The `dump` tool: which intermediate result goes wrong first, where, and how.

The candidate is built with SB_DUMP as a call and run over the judge's problems, first with one thread, in which what a
loop records one after the other lies in order, then with all. The first problem that fails is taken apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from device import oracle
from device.arena import Array
from device.compare import UNIT_ROUNDOFF, Expectation, expect, passing
from device.diagnose import kinds, region, runs
from device.diagnose.runs import Placed
from device.diagnose.types import Compared, Dump, Finding, number
from device.languages import cpp
from device.operators.base import Operator
from device.oracle import Problem, Suite, numbers
from device.types import Ended, Limits
from device.verify import POISONS, Bench, unwritten

VARIANT = cpp.Variant("dump", runs.DIAGNOSE, (runs.WRAP,))

SHOWN_ELEMENTS = 1000
"""A problem of so many elements, inputs and outputs together, is shown rather than a smaller one."""

STAGE_SLACK = 16.0
"""An intermediate result may err by so many times what an output may: its own condition is not known."""


@dataclass(frozen=True, slots=True)
class _Result:
    """One call, taken apart."""

    outcome: Any
    message: str
    compared: tuple[Compared, ...]
    lost: int


def dump(
    source: str, operator: Operator, suite: Suite, limits: Limits, threads: int, masks: Sequence[Path] = ()
) -> tuple[Dump, tuple[Finding, ...]]:
    """Run a candidate over the problems of a suite and take the first that fails apart; else one that passes."""
    build = runs.make(source, VARIANT, limits, masks)
    made = runs.note(build)
    if not build.ok:
        return Dump(made, "not built", f"the diagnosis build failed: {build.summary}"), ()
    placed = [runs.place(p, region.size_for(p.elements)) for p in suite.problems]
    until = time.monotonic() + limits.total_seconds
    seen = 0
    for count in dict.fromkeys((1, threads)):
        with runs.opened(build, placed, limits, count) as (bench, _, ended):
            if ended is not None:
                return Dump(made, ended.how, ended.message, threads=count), ()  # type: ignore[arg-type]
            small: tuple[Problem, _Result] | None = None
            for one in placed:
                if time.monotonic() > until:
                    return Dump(made, "hang", "the time for a diagnosis is used up", seen, threads=count), ()
                seen += 1
                result = _attempt(bench, operator, one, in_order=count == 1)
                if result.outcome == "right":
                    continue
                if result.outcome == "wrong" and one.problem.elements < SHOWN_ELEMENTS:
                    small = small or (one.problem, result)  # a larger one shows the pattern
                    continue
                if result.outcome == "wrong" or small is None:
                    small = (one.problem, result)
                break
            if small is not None:
                return _said(made, operator, *small, seen, count)
    with runs.opened(build, placed, limits, 1) as (bench, _, _):
        given = [one for one in placed if one.problem.name.endswith("/given") and not one.problem.case.hidden]
        shown = next((one for one in given if one.problem.elements >= SHOWN_ELEMENTS), placed[-1])
        result = _attempt(bench, operator, shown, in_order=True, whole=True)
    return _said(made, operator, shown.problem, result, seen, 1)


def _attempt(bench: Bench, operator: Operator, placed: Placed, *, in_order: bool, whole: bool = False) -> _Result:
    """Make one call; compare its outputs, and its stages where an output is wrong or all is asked for."""
    problem = placed.problem
    called = runs.call(bench, placed)
    if isinstance(called, int) and called == 0 and not whole:
        inside = runs.without_region(placed.slot)
        broken = bench.intact(placed.slot, problem.inputs)
        if broken is None and all(
            passing(expected, numbers(bench.arena.view(place), place.spec.dtype)).all()
            for place, expected in zip(inside.outputs, problem.expected, strict=True)
        ):
            return _Result("right", "", (), 0)
    recorded = region.read(bench.arena.flat(placed.slot.outputs[-1]))
    compared = _stages(operator, problem, recorded, in_order=in_order)
    message = recorded.problem
    if isinstance(called, Ended):
        last = f"; the last that was recorded is {recorded.tensors[-1].name!r}" if recorded.tensors else ""
        return _Result(called.how, called.message + last, compared, recorded.lost)
    if called != 0:
        return _Result("error", f"the kernel returned {called}, its own error", compared, recorded.lost)
    compared += _outputs(bench, placed)
    broken = bench.intact(placed.slot, problem.inputs)
    if broken is not None:
        message = f"the kernel {broken}"
    wrong = broken is not None or any(one.state == "wrong" and one.kind == "output" for one in compared)
    return _Result("wrong" if wrong else "right", message, compared, recorded.lost)


def _stages(operator: Operator, problem: Problem, recorded: region.Recorded, *, in_order: bool) -> tuple[Compared, ...]:
    """Hold what was recorded against the operator's stages, in the stages' order; then what has no stage."""
    by_name = {tensor.name: tensor for tensor in recorded.tensors}
    found: list[Compared] = []
    for name in operator.stages:
        tensor = by_name.pop(name, None)
        if tensor is None:
            found.append(Compared(name, "stage", "not recorded"))
        elif not tensor.placed and not in_order and len(tensor.pieces) > 1:
            words = "with several threads its pieces have no order; SB_DUMP_AT gives them one"
            found.append(Compared(name, "stage", "not comparable", note=words))
        else:
            found.append(_stage(operator, problem, tensor))
    names = ", ".join(operator.stages) or "none"
    for name, tensor in by_name.items():
        words = f"{tensor.elements} elements of {tensor.dtype}; the stages of {operator.name}: {names}"
        found.append(Compared(name, "stage", "not known", note=words))
    return tuple(found)


def _stage(operator: Operator, problem: Problem, tensor: region.Tensor) -> Compared:
    reference = stage(operator, problem, tensor.name)
    if tensor.elements != reference.size:
        words = f"{tensor.elements} elements were recorded, {list(reference.shape)} has {reference.size}"
        return Compared(tensor.name, "stage", "not comparable", tuple(reference.shape), words)
    row, held = tensor.put_together(reference.size)
    if tensor.dtype == "complex64" or reference.size == 0:
        return Compared(tensor.name, "stage", "not comparable", tuple(reference.shape), "complex or empty")
    got = numbers(row, tensor.dtype).reshape(reference.shape)
    formats = {tensor.dtype, problem.outputs[0].dtype} & set(UNIT_ROUNDOFF)
    dtype = max(formats, key=lambda name: UNIT_ROUNDOFF[name], default=tensor.dtype)
    expected = expect(reference, dtype, operator.accumulation(problem.case), "hardened", slack=STAGE_SLACK)
    return judged(tensor.name, "stage", expected, got, ~held.reshape(reference.shape))


def stage(operator: Operator, problem: Problem, name: str) -> Array:
    """Compute a named intermediate result in float64."""
    torch = oracle.torch_module()
    pairs = zip(problem.inputs, problem.case.inputs, strict=True)
    tensors = [oracle.widened(oracle.tensor(flat, spec)) for flat, spec in pairs]
    with torch.no_grad():
        result = operator.stages[name](*tensors, **problem.case.attributes)
    return np.array(result.contiguous().numpy())


def _outputs(bench: Bench, placed: Placed) -> tuple[Compared, ...]:
    inside = runs.without_region(placed.slot)
    pairs = enumerate(zip(inside.outputs, placed.problem.expected, strict=True))
    return tuple(
        judged(
            f"output {i}", "output", expected, numbers(bench.arena.view(place), place.spec.dtype),
            unwritten(bench.arena, place, POISONS[0]),
        )
        for i, (place, expected) in pairs
    )  # fmt: skip


def judged(name: str, kind: Any, expected: Expectation, got: Array, never: Array | None) -> Compared:
    """Hold one tensor against what is expected, and say how it is wrong."""
    bad = ~passing(expected, got)
    if never is not None and kind == "stage":
        bad |= never
    shape = tuple(expected.reference.shape)
    if not bad.any():
        return Compared(name, kind, "right", shape, elements=bad.size)
    first = int(np.argmax(bad.reshape(-1)))
    wide = got.astype(np.float64)
    way = kinds.classify(kinds.Seen(expected.reference.astype(np.float64), wide, bad, never))
    return Compared(
        name, kind, "wrong", shape, way.advice, way.name, way.words,
        tuple(int(i) for i in np.unravel_index(first, bad.shape)),
        number(float(expected.reference.reshape(-1)[first])), number(float(wide.reshape(-1)[first])),
        kinds.region(bad), int(bad.sum()), int(bad.size),
    )  # fmt: skip


def _said(
    made: Any, operator: Operator, problem: Problem, result: _Result, seen: int, threads: int
) -> tuple[Dump, tuple[Finding, ...]]:
    """Put one call into the result's form, and the first wrong thing into a finding."""
    wrong = next((one for one in result.compared if one.state == "wrong"), None)
    right = [one.name for one in result.compared if one.state == "right" and one.kind == "stage"]
    used = any(one.kind == "stage" and one.state in {"right", "wrong", "not comparable"} for one in result.compared)
    told = [result.message] if result.message else []
    if threads > 1 and result.outcome != "right":
        told.append(f"with one thread all was right, with {threads} it is not: look for a race (--tool sanitize)")
    if not used:
        stages = f"; the stages of {operator.name}: {', '.join(operator.stages)}" if operator.stages else ""
        told.append(f"the kernel recorded no stage (SB_DUMP), so its outputs alone were compared{stages}")
    elif wrong is not None and wrong.kind == "stage" and result.outcome == "right":
        told.append("the outputs are right all the same: the stage is not what its name says, or does not matter")
    if result.lost:
        told.append(f"{result.lost} calls of SB_DUMP found no room in {region.MOST_BYTES >> 20} MiB")
    dump = Dump(
        made, result.outcome, "; ".join(told), seen, problem.name, threads,
        None if wrong is None else wrong.name, result.compared, result.lost,
    )  # fmt: skip
    if wrong is None:
        if result.outcome == "right":
            return dump, ()
        advice = "build it with a sanitizer: --tool sanitize" if result.outcome == "crash" else ""
        return dump, (Finding("dump", str(result.outcome), result.message, problem.name, advice),)
    spans = ", ".join(f"{begin}:{end}" for begin, end in wrong.region or ())
    after = f", after {', '.join(right)} came out right" if right and wrong.kind == "stage" else ""
    message = (
        f"{wrong.name} goes wrong first{after}: {wrong.words}; at {list(wrong.index or ())} expected "
        f"{_plain(wrong.expected)}, got {_plain(wrong.got)}; first wrong region [{spans}] of {list(wrong.shape or ())}"
    )
    facts = {"wrong": float(wrong.wrong), "elements": float(wrong.elements), "threads": float(threads)}
    finding = Finding("dump", wrong.how, message, f"{wrong.name} of {problem.name}", wrong.note, facts)
    return dump, (finding,)


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)
