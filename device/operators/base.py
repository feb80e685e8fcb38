"""What an operator of the suite is: a definition, the cases it is judged on, and what an author should know.

Everything here is data and needs no torch; only calling `Operator.reference` or `Operator.baseline` loads it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from device.errors import InvalidOperator

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Values = Literal["any", "ties", "nans", "whole", "positive", "small", "nonfinite", "distinct", "partition"]
"""What an input must hold besides the numbers that the judge draws (`device.operators.values.settle`)."""

DTYPES: Mapping[str, int] = {
    "float32": 0,
    "float64": 1,
    "int32": 2,
    "int64": 3,
    "int8": 4,
    "uint8": 5,
    "bool": 6,
    "float16": 7,
    "bfloat16": 8,
    "complex64": 9,
}
"""Torch's name of each element type, and its code in `sagebook_kernel.h`."""

WHOLE = frozenset({"int8", "uint8", "int32", "int64"})
"""Element types of whole numbers, bool apart."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CASE_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_COMMON = Path(__file__).with_name("common")
_SHARED = re.compile(r'^#include "(?:\.\./)+common/(\w+\.h)"\n', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape, element type and layout of one tensor; strides count elements, None means contiguous (row-major).

    An input of whole numbers is drawn from `span`, the upper end excluded. An output that is `rounded` to whole numbers
    comes from real ones: its reference gives these, and an element may be half a unit, and their error, away from it.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    values: Values = "any"
    span: tuple[int, int] | None = None
    rounded: bool = False

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.shape):
            raise InvalidOperator(f"tensor {self.shape}", "every size must be at least 1")
        if self.dtype not in DTYPES:
            raise InvalidOperator(f"tensor {self.shape}", f"dtype {self.dtype!r} is none of {', '.join(DTYPES)}")
        if self.values not in get_args(Values):
            raise InvalidOperator(f"tensor {self.shape}", f"values {self.values!r} is none of {get_args(Values)}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise InvalidOperator(f"tensor {self.shape}", f"strides {self.strides} need one number an axis")
        if self.strides is not None and any(stride < 0 for stride in self.strides):
            raise InvalidOperator(f"tensor {self.shape}", f"strides {self.strides} must not be negative")
        whole = self.dtype in WHOLE
        if self.span is not None and (not whole or self.span[0] >= self.span[1]):
            raise InvalidOperator(f"tensor {self.shape}", f"span {self.span} must be whole numbers, the first smaller")
        if self.rounded and not whole:
            raise InvalidOperator(f"tensor {self.shape}", f"{self.dtype} does not hold rounded whole numbers")

    @property
    def layout(self) -> tuple[int, ...]:
        """Strides in elements, worked out when they were left to be contiguous."""
        if self.strides is not None:
            return self.strides
        strides: list[int] = []
        step = 1
        for size in reversed(self.shape):
            strides.append(step)
            step *= size
        return tuple(reversed(strides))

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps; the stride of an axis of size 1 does not matter."""
        dense = TensorSpec(self.shape).layout
        return all(size == 1 or a == b for size, a, b in zip(self.shape, self.layout, dense, strict=True))

    @property
    def overlapping(self) -> bool:
        """Whether two indices may name one place in memory (an expanded axis); such a tensor can be read only."""
        reach = 0
        for stride, size in sorted(zip(self.layout, self.shape, strict=True)):
            if size > 1 and stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    @property
    def elements(self) -> int:
        """How many elements the tensor has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def storage(self) -> int:
        """How many elements of memory the tensor reaches over, from its first to its last."""
        return 1 + sum(stride * (size - 1) for stride, size in zip(self.layout, self.shape, strict=True))


@dataclass(frozen=True, slots=True)
class Case:
    """One set of inputs and attributes that an operator is judged on."""

    name: str
    inputs: tuple[TensorSpec, ...]
    attributes: Mapping[str, float] = field(default_factory=dict, hash=False)
    timed: bool = False
    hidden: bool = False

    def __post_init__(self) -> None:
        if not _CASE_NAME.fullmatch(self.name):
            raise InvalidOperator(f"case {self.name!r}", f"a name matches {_CASE_NAME.pattern}")
        if not self.inputs:
            raise InvalidOperator(f"case {self.name}", "there must be at least one input")
        if self.timed and self.hidden:
            raise InvalidOperator(f"case {self.name}", "a hidden case is never timed")

    @property
    def line(self) -> str:
        """The case in one line, for prompts and listings."""
        parts = []
        for spec in self.inputs:
            strided = "" if spec.contiguous else f" strides {list(spec.layout)}"
            values = "" if spec.values == "any" else f" with {spec.values}"
            values += "" if spec.span is None else f" in [{spec.span[0]}, {spec.span[1]})"
            parts.append(f"{spec.dtype}{list(spec.shape)}{strided}{values}")
        attributes = "".join(f", {name}={value:g}" for name, value in self.attributes.items())
        return f"{self.name}: {', '.join(parts)}{attributes}{' (timed)' if self.timed else ''}"


@dataclass(frozen=True)
class Operator:
    """One operator: what it computes, what it is judged on, and what tends to go wrong."""

    name: str
    level: int
    family: str
    summary: str
    cases: tuple[Case, ...]
    """The visible cases; one or two of them are timed."""
    reference: Callable[..., tuple[Tensor, ...]]
    """The definition. Inputs by position, attributes by keyword; computes in the dtype of its inputs."""
    baseline: Callable[..., tuple[Tensor, ...]]
    """The call that a torch user would write: what a kernel's latency is compared with."""
    outputs: Callable[[Case], tuple[TensorSpec, ...]]
    hidden_cases: Callable[[Generator], tuple[Case, ...]]
    """Cases that an author never sees: odd, prime and 1-sized axes, tails, long rows, legal strides."""
    accumulation: Callable[[Case], int]
    """The length of the longest sum behind one output element; 1 where nothing is summed."""
    dtypes: tuple[str, ...] = ("float32",)
    attributes: tuple[str, ...] = ()
    """Names of the attributes, in the order in which the entry point receives them."""
    expert_file: Path | None = None
    deterministic: bool = True
    traps: tuple[str, ...] = ()
    """What makes honest first drafts wrong, one sentence each."""
    conditions: tuple[str, ...] = ()
    """What holds for every input, one sentence each: a kernel may rely on it."""
    stages: Mapping[str, Callable[..., Tensor]] = field(default_factory=dict, hash=False)
    """Named intermediate results in the order in which they arise, each computed as the reference is: what
    `sagebook device diagnose` holds a kernel's SB_DUMP calls against. Each has a shape of its own."""
    magnitudes: Callable[..., tuple[Tensor, ...]] | None = None
    """For each output, the size of the terms of which it is the difference, where they cancel and come from different
    sums: rounding errors are of this size (a running error bound: Higham, Accuracy and Stability, section 3.3)."""
    full_cases: tuple[Case, ...] = ()
    """Cases of the sizes that the operator has on an accelerator; nothing of them is timed or hidden."""

    def __post_init__(self) -> None:
        subject = f"operator {self.name}"
        if not _NAME.fullmatch(self.name):
            raise InvalidOperator(f"operator {self.name!r}", f"a name matches {_NAME.pattern}")
        if self.level not in {1, 2, 3, 4}:
            raise InvalidOperator(subject, f"level {self.level} is none of 1, 2, 3 and 4")
        names = [case.name for case in (*self.cases, *self.full_cases)]
        if len(set(names)) != len(names):
            raise InvalidOperator(subject, f"two cases share a name among {', '.join(names)}")
        if not 1 <= sum(case.timed for case in self.cases) <= 2:
            raise InvalidOperator(subject, "one or two visible cases must be timed")
        if any(case.hidden for case in (*self.cases, *self.full_cases)):
            raise InvalidOperator(subject, "a hidden case comes from hidden_cases, not from cases")
        if any(case.timed for case in self.full_cases):
            raise InvalidOperator(subject, "a full case is not timed here")
        for case in (*self.cases, *self.full_cases):
            if tuple(case.attributes) != self.attributes:
                raise InvalidOperator(f"{subject}, case {case.name}", f"attributes must be {list(self.attributes)}")
        if unknown := set(self.dtypes) - set(DTYPES):
            raise InvalidOperator(subject, f"dtypes {sorted(unknown)} are not known")

    @cached_property
    def expert(self) -> str | None:
        """Source text of the expert kernel in one piece, with the shared headers written out; None if there is none."""
        return None if self.expert_file is None else _whole_text(self.expert_file)


def beside(module_file: str, name: str) -> Path:
    """Path of a package-data file that lies beside a module (pass the module's `__file__`)."""
    return Path(module_file).with_name(name)


def reference_source(operator: Operator) -> str:
    """Text of the operator's torch reference, for prompts."""
    return textwrap.dedent(inspect.getsource(operator.reference))


def _whole_text(path: Path) -> str:
    """Read a kernel file, each `#include "…/common/….h"` replaced by that file where it first occurs."""
    seen: set[str] = set()

    def write_out(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        text = _COMMON.joinpath(name).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _SHARED.sub(write_out, text)

    return _SHARED.sub(write_out, path.read_text(encoding="utf-8"))
