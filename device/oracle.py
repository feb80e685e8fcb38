"""The judge's side of the numbers: seeded inputs, and what torch makes of them in float64. No kernel sees this module.

torch is imported at the first call. Its OpenMP pool is told to sleep when it is idle (`sandbox.QUIET_POOL`), the same
as the kernel's.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from device.arena import GUARD_BYTE, NUMPY_DTYPES, Array, element_bytes, strided
from device.compare import Expectation, compare, expect
from device.condition import fits, stands_out, worst
from device.errors import InvalidOperator, ReferenceUnavailable
from device.operators.base import WHOLE, Case, Operator, TensorSpec
from device.operators.values import settle, whole_numbers
from device.sandbox import QUIET_POOL
from device.types import Mode, RuleName

if TYPE_CHECKING:
    from torch import Tensor

Distribution = Callable[[Array], Array]

DISTRIBUTIONS: dict[str, Distribution] = {
    "given": lambda x: x,
    "x3": lambda x: x * np.float32(3),
    "x0.01": lambda x: x * np.float32(0.01),
    "x-1": lambda x: -x,
    "x30": lambda x: x * np.float32(30),
    "+10": lambda x: x + np.float32(10),
}
"""What is done to standard normal numbers. x30 overflows an exponential that was not shifted; +10 makes a variance
taken as a difference of large numbers lose its digits."""

CHANGED = "few places changed"
"""As given but for one element in `CHANGED_SHARE`, at least one of each input: a kernel that knows an input again by a
few of its elements, and replays the answer, is wrong here. Run after `given`, by the same process at the same place."""

CHANGED_SHARE = 256

LARGE = 1 << 18
"""Cases of more elements than this are run under `given`, `x-1` and with few places changed only."""

COPIES = frozenset({"layout", "index", "creation"})
"""Families whose operators may honestly give back what they were given; in all others a copy must fail."""

HONEST_SHARE = 0.5
MOST_SLACK = 256.0
"""Where torch itself, computing in the operator's dtype (half formats: in float32, the result not yet rounded), errs by
more than `HONEST_SHARE` of the bound, the problem is badly conditioned, and the bound is widened until torch is at that
share. A problem that would need more than `MOST_SLACK`, or that torch still misses because no rule may be looser than
the benchmark's, is left out: it would refuse honest kernels. The cases as given are never left out."""

NUDGE = 8 * 2.0**-24
NUDGE_FACTOR = 6.0
"""Inputs are moved by up to 8 u of themselves to learn how a problem answers to rounding, since one torch result is a
single draw of its own errors and may be a lucky one. Where the answer moves by more than a sixth of the bound,
which a well-conditioned problem's does not, the bound is widened to six times that: as far as 48 u of the inputs would
carry it, against 8192 u of a half-precision input. This alone leaves no problem out."""

NUDGES, SUSPECT_SHARE = 4, 0.0625
"""One way of moving the inputs is a single draw, too, of which a few outputs that hang on a few sums (attention of one
query) show little now and then. Where torch or the answer that moved goes beyond `SUSPECT_SHARE` of the bound, they are
moved in so many ways, and the farthest counts."""

CANCELLED = 2 * 2.0**-24
"""Moved inputs move two sums alike whose difference the answer is (softmax's gradient, one weight nearly 1), and torch
may round both alike; another kernel rounds them apart. An operator that tells the size of such terms
(`Operator.magnitudes`) has each output moved by up to 2 u of it as well."""

_MARK = "_sagebook_quiet_pool"
"""Attribute set on the torch module when this module was the first to import it."""

SPARED_ENDS = 64  # elements at either end of a large input that `_change` leaves as they were

KEPT = 3
"""Suites (operator, seed, mode, rule) kept in memory for the next candidates."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One case under one distribution: inputs as they lie in memory, and what each output must be."""

    name: str
    case: Case
    inputs: tuple[Array, ...]
    """One row of elements for each input, as long as the memory it reaches over; gaps hold the guard byte."""
    outputs: tuple[TensorSpec, ...]
    expected: tuple[Expectation, ...]
    evidence: bool

    @property
    def attributes(self) -> tuple[float, ...]:
        """Attribute values in the order in which the entry point receives them."""
        return tuple(self.case.attributes.values())

    @property
    def elements(self) -> int:
        """Count the elements of all inputs and outputs."""
        return sum(spec.elements for spec in (*self.case.inputs, *self.outputs))


@dataclass(frozen=True, slots=True)
class Suite:
    """All problems of one operator under one seed, cheap ones first, and the names of those left out."""

    problems: tuple[Problem, ...]
    left_out: tuple[str, ...]


def torch_module() -> ModuleType:
    """Import torch with an OpenMP pool that sleeps when it is idle. Raises ReferenceUnavailable without torch."""
    if "torch" in sys.modules:
        return sys.modules["torch"]
    before = {name: os.environ.get(name) for name in QUIET_POOL}
    os.environ.update(QUIET_POOL)  # read once, when the OpenMP library is loaded
    try:
        import torch  # noqa: PLC0415  (more than a second, and needed only to judge)
    except (ImportError, RuntimeError) as error:
        raise ReferenceUnavailable(str(error)) from error
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    setattr(torch, _MARK, True)
    return torch


def quiet_pool() -> bool:
    """Whether torch's pool sleeps when it is idle, that is, whether `torch_module` was first to import torch."""
    return getattr(torch_module(), _MARK, False) is True


def draw(spec: TensorSpec, rng: np.random.Generator, distribution: Distribution = DISTRIBUTIONS["given"]) -> Array:
    """Draw one input and return it as a row of elements, as it lies in memory."""
    dtype = NUMPY_DTYPES[spec.dtype]
    flat = np.full(spec.storage * element_bytes(spec.dtype), GUARD_BYTE, dtype=np.uint8).view(dtype)
    if spec.dtype == "bool":
        values: Array = rng.integers(0, 2, spec.shape)
    elif spec.dtype == "complex64":
        parts = distribution(rng.standard_normal((*spec.shape, 2), dtype=np.float32))
        values = settle(spec, parts.view(np.complex64)[..., 0], rng)
    elif spec.dtype not in WHOLE:
        values = settle(spec, distribution(rng.standard_normal(spec.shape, dtype=np.float32)), rng)
        if spec.dtype == "bfloat16":
            values = np.atleast_1d(values).astype(np.float32).view(np.uint32).reshape(spec.shape) >> 16
    else:
        values = whole_numbers(spec, rng)
    strided(flat, spec)[...] = values
    return flat


def tensor(flat: Array, spec: TensorSpec) -> Tensor:
    """View a row of elements as a torch tensor of the spec's dtype, shape and strides; no copy."""
    torch = torch_module()
    whole: Any = torch.from_numpy(flat)
    if spec.dtype in {"bfloat16", "bool"}:
        whole = whole.view(getattr(torch, spec.dtype))
    result: Tensor = whole.as_strided(spec.shape, spec.layout)
    return result


def numbers(view: Array, dtype: str, *, plain: bool = True) -> Array:
    """Read an output's bits as numbers, row-major; a complex number becomes two along a new last axis.

    bfloat16 becomes float32, or stays bits where the numbers need not be `plain`.
    """
    dense = np.ascontiguousarray(view)
    if dtype == "complex64":
        return dense.view(np.float32).reshape(*view.shape, 2)
    if dtype == "bfloat16" and plain:
        return (dense.astype(np.uint32) << 16).view(np.float32).reshape(view.shape)
    return dense.reshape(view.shape)


def answer(
    operator: Operator, case: Case, inputs: Sequence[Array], outputs: Sequence[TensorSpec], *, wide: bool,
    nudge: np.random.Generator | None = None,
) -> list[Array]:  # fmt: skip
    """Compute the outputs: the reference in float64 when `wide`, else the baseline in the inputs' dtype; row-major.

    With `nudge`, each real input element is first moved by up to `NUDGE` of itself. Raises InvalidOperator when count
    or shape is not what the operator declares.
    """
    torch = torch_module()
    tensors = [tensor(flat, spec) for flat, spec in zip(inputs, case.inputs, strict=True)]
    half = {torch.float16, torch.bfloat16}
    tensors = [widened(t) if wide else t.float() if t.dtype in half else t for t in tensors]
    if nudge is not None:
        tensors = [_nudged(t, nudge) for t in tensors]
    with torch.no_grad():
        results = (operator.reference if wide else operator.baseline)(*tensors, **case.attributes)
    shapes = [tuple(result.shape) for result in results]
    if shapes != [spec.shape for spec in outputs]:
        subject = f"operator {operator.name}, case {case.name}"
        raise InvalidOperator(subject, f"the reference gives shapes {shapes}, declared are {outputs}")
    answers = []
    for result in results:
        plain = widened(torch.view_as_real(result.resolve_conj()) if result.is_complex() else result)
        plain = plain.to(torch.uint8) if plain.dtype == torch.bool else plain
        answers.append(np.array(plain.contiguous().numpy()))
    return answers


def _nudged(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    """Return the tensor with each real element moved by up to `NUDGE` of itself."""
    if not tensor.is_floating_point():
        return tensor
    moved = 1.0 + NUDGE * rng.uniform(-1.0, 1.0, tuple(tensor.shape))
    result: Tensor = tensor * torch_module().as_tensor(moved, dtype=tensor.dtype)
    return result


def widened(tensor: Tensor) -> Tensor:
    """Return a floating tensor in float64, a complex one in complex128, any other as it is."""
    torch = torch_module()
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def seeded(seed: int, *words: str) -> np.random.Generator:
    """Make a generator that depends on the seed and on each of the words."""
    return np.random.default_rng([seed & (1 << 64) - 1, *(zlib.crc32(word.encode()) for word in words)])


def pose(operator: Operator, case: Case, seed: int, kind: str, rule: RuleName) -> Problem | None:
    """Draw a case under one distribution and work out its answers; None where it would tell or ask nothing fair."""
    rng = seeded(seed, operator.name, case.name, "hidden" if case.hidden else "visible")
    inputs = tuple(draw(spec, rng, DISTRIBUTIONS.get(kind, DISTRIBUTIONS["given"])) for spec in case.inputs)
    if kind == CHANGED:
        changed = [_change(flat, spec, rng) for flat, spec in zip(inputs, case.inputs, strict=True)]
        if not any(changed):
            return None
    outputs = operator.outputs(case)
    expected = _expected(operator, case, inputs, outputs, rule, always=kind == "given")
    if expected is None:
        return None
    evidence = not any(e.steady for e in expected)
    prefix = "hidden." if case.hidden else ""
    return Problem(f"{prefix}{case.name}/{kind}", case, inputs, outputs, expected, evidence)


def _change(flat: Array, spec: TensorSpec, rng: np.random.Generator) -> bool:
    """Draw a few elements of an input anew, in place; say whether it is one of which any numbers may be drawn."""
    if spec.values != "any" or spec.dtype in WHOLE:
        return False
    count = max(1, spec.elements // CHANGED_SHARE)
    spared = SPARED_ENDS if spec.elements > 8 * SPARED_ENDS else 0
    order = rng.integers(spared, spec.elements - spared, count)
    fresh = draw(TensorSpec((count,), spec.dtype), rng)
    strided(flat, spec)[np.unravel_index(order, spec.shape)] = fresh
    return True


def _copy_passes(problem: Problem) -> bool:
    """Whether an input, taken for the answer, would pass."""
    specs, inputs = problem.case.inputs, problem.inputs
    for expected, output in zip(problem.expected, problem.outputs, strict=True):
        passed = False
        for flat, spec in zip(inputs, specs, strict=True):
            if spec.dtype == output.dtype and spec.elements == output.elements:
                copy = numbers(strided(flat, spec), spec.dtype)
                passed |= compare(expected, copy.reshape(expected.reference.shape)).ok
        if not passed:
            return False
    return True


def _tell_single_numbers_apart(problems: list[Problem]) -> list[Problem]:
    """Make evidence of problems whose outputs are single numbers where the next problem's numbers would not pass."""
    single = [p for p in problems if all(e.reference.size == 1 for e in p.expected)]
    told = {
        p.name
        for p, other in zip(single, single[1:] + single[:1], strict=True)
        if len(p.expected) == len(other.expected)
        and all(
            e.reference.any() and not compare(e, o.reference.reshape(e.reference.shape)).ok
            for e, o in zip(p.expected, other.expected, strict=True)
        )
    }
    return [replace(p, evidence=True) if p.name in told else p for p in problems]


def _expected(
    operator: Operator, case: Case, inputs: Sequence[Array], outputs: Sequence[TensorSpec], rule: RuleName, *,
    always: bool,
) -> tuple[Expectation, ...] | None:  # fmt: skip
    """Work out what each output must be, None where the problem would refuse honest kernels."""
    length = operator.accumulation(case)
    wide = answer(operator, case, inputs, outputs, wide=True)

    def around(slack: float) -> tuple[Expectation, ...]:
        pairs = zip(wide, outputs, strict=True)
        return tuple(expect(w, s.dtype, length, rule, rounded=s.rounded, slack=slack) for w, s in pairs)

    expected = around(1.0)
    if rule != "hardened":
        return expected
    if not always and not (fits(expected) and stands_out(expected, _told(case, inputs))):
        return None
    own = answer(operator, case, inputs, outputs, wide=False)
    moves = seeded(length, operator.name, case.name)
    moved = [answer(operator, case, inputs, outputs, wide=True, nudge=moves), *_cancelled(operator, case, inputs, wide)]
    share, sway = worst(expected, [own], outputs), worst(expected, moved, outputs, exact=False)
    if max(share, sway) > SUSPECT_SHARE:
        moved += [answer(operator, case, inputs, outputs, wide=True, nudge=moves) for _ in range(NUDGES - 1)]
        sway = worst(expected, moved, outputs, exact=False)
    slack = share / HONEST_SHARE
    if sway > 1 / NUDGE_FACTOR:
        slack = max(slack, min(NUDGE_FACTOR * sway, MOST_SLACK))
    if slack <= 1.0:
        return expected
    if slack <= MOST_SLACK:
        expected = around(slack)
        share = worst(expected, [own], outputs)
        if sway > 1 / NUDGE_FACTOR and NUDGE_FACTOR * worst(expected, moved, outputs, exact=False) > 2.0:
            return expected if always else None  # the benchmark's bound leaves less than the condition asks for
    return expected if always or share <= HONEST_SHARE * (1 + 1e-9) else None


def _told(case: Case, inputs: Sequence[Array]) -> list[Array]:
    """The numbers of the real inputs."""
    pairs = zip(inputs, case.inputs, strict=True)
    return [numbers(strided(flat, spec), spec.dtype) for flat, spec in pairs if spec.dtype not in {*WHOLE, "bool"}]


def _cancelled(operator: Operator, case: Case, inputs: Sequence[Array], wide: Sequence[Array]) -> list[list[Array]]:
    """The answer moved by `CANCELLED` of the terms that cancel in it; nothing where the operator tells none."""
    if operator.magnitudes is None:
        return []
    told = [widened(tensor(flat, spec)) for flat, spec in zip(inputs, case.inputs, strict=True)]
    sizes = operator.magnitudes(*told, **case.attributes)
    return [[answered + CANCELLED * size.numpy() for answered, size in zip(wide, sizes, strict=True)]]


class Oracle:
    """Problems and their answers, worked out once for each operator and seed and kept for the next candidates."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Operator, int, Mode, RuleName], Suite] = OrderedDict()

    def suite(self, operator: Operator, seed: int, mode: Mode, rule: RuleName) -> Suite:
        """Return the problems that a candidate must solve under this seed.

        `hardened`: visible and hidden cases under every distribution that the case's size allows. `paper`: visible
        cases as given, the source's protocol. Raises InvalidOperator where a constant or a copied answer would pass.
        """
        key = (operator, seed, mode, rule)
        if key not in self._kept:
            self._kept[key] = self._make(*key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _make(self, operator: Operator, seed: int, mode: Mode, rule: RuleName) -> Suite:
        cases = list(operator.cases)
        if mode == "hardened":
            cases += operator.hidden_cases(seeded(seed, operator.name, "hidden cases"))
        problems: list[Problem] = []
        left_out: list[str] = []
        for kind in ("given", CHANGED, *list(DISTRIBUTIONS)[1:]) if mode == "hardened" else ("given",):
            for case in cases:
                size = sum(spec.elements for spec in case.inputs)
                if size > LARGE and kind not in {"given", "x-1", CHANGED}:
                    continue
                problem = pose(operator, case, seed, kind, rule)
                if problem is None and kind != CHANGED:
                    left_out.append(f"{case.name}/{kind}")
                elif problem is not None:
                    problems.append(problem)
        problems = _tell_single_numbers_apart(problems)
        if not any(problem.evidence for problem in problems):
            raise InvalidOperator(f"operator {operator.name}", "zeros or a constant would pass every case")
        if operator.family not in COPIES and all(_copy_passes(problem) for problem in problems if problem.evidence):
            raise InvalidOperator(f"operator {operator.name}", "a copy of an input would pass every case")
        problems.sort(key=lambda p: (p.elements > LARGE, not p.name.endswith("/given"), p.elements))
        return Suite(tuple(problems), tuple(left_out))


def installed_torch() -> str | None:
    """Return the version of torch that is installed, without importing it; None when there is none."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
