"""Puts a task of a suite into our own form of an operator, so that a kernel against `sagebook_kernel.h` can be judged.

What a task gives under each of its cases is looked at in a confined process: shapes, dtypes, numbers that are not
tensors, and whether the tensors are random or mean something. A kernel's inputs are the tensors that `forward` gets,
in order, then those that `Model` was made with; its attributes are the numbers, in the same order. Afterwards the
reference runs beside the judge, as those of the bundled operators do: its checkout is code that whoever gives the path
trusts, as the candidate is not.
"""

from __future__ import annotations

import math
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from device.errors import InvalidOperator, TaskRefused
from device.operators.base import DTYPES, WHOLE, Case, Operator, TensorSpec
from device.oracle import numbers, torch_module
from device.suites.problems import STAND_INS, open_reference, outputs
from device.suites.process import Process, Said, Tensor
from device.suites.tasks import Task

FAMILIES = {"TensorMove": "layout", "Index": "index", "TensorCreation": "creation", "Mask": "index"}
SORTED_FROM = 8
SEEDS = (11, 12)
CASE_BYTES = 32 << 20
"""Tensors of one case; larger ones, made for an accelerator, are left out by name."""

_SMALL = 1 << 12


@dataclass(frozen=True, slots=True)
class Template:
    """What one case hands to `Model` and `forward`, with a `Tensor` in the place of each tensor."""

    init: list[Any]
    inputs: list[Any]
    outputs: tuple[TensorSpec, ...]
    changes: bool
    """Whether the reference changes its inputs: then it gets copies."""


class StandIn(types.ModuleType):
    """Takes the place of a module that only the suite's own machine has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def express(process: Process, task: Task) -> Operator:
    """Look at a task in a confined process and return it as an operator. Raises TaskRefused with the reason."""
    templates: dict[Any, Template] = {}
    cases: list[Case] = []
    left_out: list[str] = []
    for number, row in enumerate(task.rows or (None,)):
        name = f"case{number}"
        try:
            template, specs = _look(process, task, row)
            plain = list(_plain(task, [*template.inputs, *template.init]))
        except TaskRefused as refused:
            left_out.append(f"{name}: {refused.reason}")
            continue
        attributes = {f"a{i}": value for i, value in enumerate(plain)}
        cases.append(Case(name, specs, attributes))
        templates[_key([spec.shape for spec in specs], attributes)] = template
    if not cases:
        raise TaskRefused(task.name, f"no case of it can be judged: {'; '.join(left_out)[:400]}")

    def form(case: Case) -> str:
        template = templates[_key([spec.shape for spec in case.inputs], case.attributes)]
        return f"{len(case.attributes)} {_texts([template.inputs, template.init])}"

    # An operator has one form; of a task whose cases have several, those of the most frequent one are kept.
    kept, _ = Counter(map(form, cases)).most_common(1)[0]
    left_out += [f"{case.name}: it hands over other things than most cases" for case in cases if form(case) != kept]
    return _operator(task, [case for case in cases if form(case) == kept], templates, left_out)


def _operator(task: Task, cases: list[Case], templates: Mapping[Any, Template], left_out: Sequence[str]) -> Operator:
    name = task.name.rpartition("/")[2]
    size = {case.name: sum(spec.elements for spec in case.inputs) for case in cases}
    order = sorted(cases, key=lambda case: (size[case.name] < _SMALL, abs(size[case.name] - _SMALL)))
    timed = order[0].name
    cases = [Case(c.name, c.inputs, c.attributes, timed=c.name == timed) for c in cases]
    reference = Reference(task, templates)
    category = task.name.split("/")[1] if task.form == "npukernelbench" else ""

    def forms(case: Case) -> tuple[TensorSpec, ...]:
        return templates[_key([spec.shape for spec in case.inputs], case.attributes)].outputs

    try:
        return Operator(
            name=name if re.match(r"[A-Za-z]", name) else f"task_{name}", level=min(task.level, 4),
            family=FAMILIES.get(category, "suite"), summary=f"{task.name} of {task.form}", cases=tuple(cases),
            reference=reference, baseline=reference, outputs=forms, hidden_cases=lambda _: (),
            accumulation=lambda case: max(spec.elements for spec in case.inputs),
            dtypes=tuple({spec.dtype for case in cases for spec in case.inputs}),
            attributes=tuple(cases[0].attributes), conditions=tuple(f"left out: {one}" for one in left_out),
        )  # fmt: skip
    except InvalidOperator as error:
        raise TaskRefused(task.name, str(error)) from error


def _look(process: Process, task: Task, row: Mapping[str, Any] | None) -> tuple[Template, tuple[TensorSpec, ...]]:
    init = open_reference(process, task, SEEDS[0], row, CASE_BYTES)
    try:
        if task.form == "kernelbench" and process.ask("state"):
            raise TaskRefused(task.name, "it has weights: a plain kernel gets the inputs of forward alone")
        given = [process.ask("inputs", seed=seed) if row is None else process.ask("inputs", seed=seed, row=row)
                 for seed in SEEDS]  # fmt: skip
        got = outputs(process, given[0], SEEDS[0], wide=False)
        after = process.ask("kept")
    except Said as said:
        raise TaskRefused(task.name, said.ended.message) from said
    own = list(flat([given[0], init]))
    other = list(flat([given[1], init]))
    if not own:
        raise TaskRefused(task.name, "it has no tensor among its inputs")
    if [one.bits.shape for one in own] != [one.bits.shape for one in other]:
        raise TaskRefused(task.name, "the shapes of its inputs are random")
    drawn = len(list(flat(given[0])))
    specs = tuple(_spec(task, i, a, b, fixed=i >= drawn) for i, (a, b) in enumerate(zip(own, other, strict=True)))
    if not got:
        raise TaskRefused(task.name, "forward gives no tensor")
    floats = any(one.floating for one in own)
    for one in got:
        if one.dtype not in DTYPES or one.bits.size == 0:
            raise TaskRefused(task.name, f"an output is {one.dtype} {list(one.bits.shape)}")
        if floats and one.dtype in {"int8", "uint8"}:
            raise TaskRefused(task.name, f"it rounds real numbers to {one.dtype} itself: the judge needs them before")
    changes = any(a.bits.tobytes() != b.bits.tobytes() for a, b in zip(flat(given[0]), flat(after), strict=True))
    forms = tuple(TensorSpec(tuple(one.bits.shape), one.dtype) for one in got)
    return Template(init, given[0], forms, changes), specs


def _spec(task: Task, number: int, one: Tensor, other: Tensor, *, fixed: bool) -> TensorSpec:
    """Say what the judge may draw in the place of an input that was seen under two seeds."""
    where = f"input {number} ({one.dtype} {list(one.bits.shape)})"
    if one.bits.size == 0:
        raise TaskRefused(task.name, f"{where} has no elements")
    values, twin = (numbers(t.bits, t.dtype).reshape(-1) for t in (one, other))
    constant = bool((values == values[0]).all())
    meant = bool((values == twin).all()) and not constant and not fixed
    if meant or (one.dtype in WHOLE and fixed and not constant):
        raise TaskRefused(task.name, f"{where} is the same under every seed: its numbers mean something")
    shape = tuple(one.bits.shape)
    if one.dtype in WHOLE:
        rises = values.size >= SORTED_FROM and bool((np.diff(values.astype(np.int64)) >= 0).all())
        if rises and not constant:
            raise TaskRefused(task.name, f"{where} ascends: its numbers mean something")
        both = np.concatenate([values, twin])
        return TensorSpec(shape, one.dtype, span=(int(both.min()), int(both.max()) + 1))
    real = one.floating and bool((values >= 0).all() and (twin >= 0).all()) and bool(values.any())
    kind: Literal["any", "positive"] = "positive" if real else "any"
    return TensorSpec(shape, one.dtype, values=kind)


def flat(value: Any) -> Iterator[Any]:
    """Yield the tensors of a nested value in order."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from flat(part)
    elif isinstance(value, dict):
        yield from flat(list(value.values()))
    elif _is_tensor(value):
        yield value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _plain(task: Task, value: Any) -> Iterator[float]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _plain(task, part)
    elif isinstance(value, (bool, int, float)):
        if not math.isfinite(value):
            raise TaskRefused(task.name, f"an attribute is {value}")
        yield float(value)


def _texts(value: Any) -> Any:
    """Keep of a nested value what is neither tensor nor number: its form, and texts."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_texts(part) for part in value)]
    if isinstance(value, dict):
        return {name: _texts(part) for name, part in value.items()}
    if _is_tensor(value):
        return Tensor
    return float if isinstance(value, (bool, int, float)) else value


def _key(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, float]) -> Any:
    return tuple(map(tuple, shapes)), tuple(attributes.values())


class Reference:
    """The task's `Model` as the judge calls a reference: tensors by position, attributes by name."""

    def __init__(self, task: Task, templates: Mapping[Any, Template]) -> None:
        self._task, self._templates = task, templates
        self._module: types.ModuleType | None = None
        self._models: dict[Any, Any] = {}

    def __call__(self, *given: Any, **attributes: float) -> tuple[Any, ...]:
        """Compute in the dtype of the tensors given; raises KeyError for shapes that are none of the cases'."""
        torch: Any = torch_module()
        key = _key([tuple(one.shape) for one in given], attributes)
        template = self._templates[key]
        rest = iter([one.clone() for one in given] if template.changes else given)
        inputs = _filled(template.inputs, rest)
        made = list(flat(template.init))
        model = None if made else self._models.get(key)
        wide = any(one.dtype == torch.float64 for one in given)
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64 if wide else before)
        try:
            if model is None:
                model = self._loaded().Model(*_filled(template.init, rest))
                self._models[key] = model
            result = model(*inputs)
        finally:
            torch.set_default_dtype(before)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)

    def _loaded(self) -> Any:
        if self._module is None:
            torch_module()
            module = types.ModuleType("task")
            names = STAND_INS if self._task.form == "npukernelbench" else ()
            before = {name: sys.modules.get(name) for name in names}
            sys.modules.update({name: StandIn(name) for name in names})
            try:
                exec(compile(self._task.text, f"{self._task.name}.py", "exec"), module.__dict__)  # noqa: S102  (the suite's own reference)
            finally:
                for name, old in before.items():
                    if old is None:
                        del sys.modules[name]
                    else:
                        sys.modules[name] = old
            self._module = module
        return self._module


def _filled(value: Any, rest: Iterator[Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(part, rest) for part in value)
    if isinstance(value, dict):
        return {name: _filled(part, rest) for name, part in value.items()}
    return next(rest) if _is_tensor(value) else value
