"""One timed case at work: fresh numbers in a few slots, and both sides over the same memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from device import oracle
from device.arena import NUMPY_DTYPES, Array, Slot
from device.compare import THRESHOLD, UNIT_ROUNDOFF, growth
from device.operators.base import Case, Operator, TensorSpec
from device.timing import Order, Timer
from device.types import Called, Ended, Failure, Limits, RuleName
from device.verify import POISONS, Bench

if TYPE_CHECKING:
    from torch import Tensor

Cold = Callable[[int, int], None]

SLOTS = 8
"""Sets of inputs and outputs at different addresses that the timed calls go round."""

TIMED_SLACK = 4.0
"""Timed outputs are held against torch's own float32 result: the errors of both, and a margin."""


@dataclass(slots=True)
class Refused(Exception):  # noqa: N818  (a way out with a verdict, not an error)
    """Something about a timed call is not what it must be."""

    failure: Failure


class TimedCase:
    """One timed case at work: slots, fresh numbers, the reference over the same memory."""

    def __init__(
        self,
        operator: Operator,
        case: Case,
        bench: Bench,
        slots: Sequence[Slot],
        seed: int,
        rule: RuleName,
        limits: Limits,
    ) -> None:
        self.limits = limits
        self.operator, self.case, self.bench, self.slots = operator, case, bench, slots
        self._rng = oracle.seeded(seed, operator.name, case.name, "timed")
        self.order = Order(self._rng)
        self._pools = [_pool(spec, self._rng) for spec in case.inputs]
        self._now: dict[int, list[Array]] = {}
        arena = bench.arena
        self._inputs = [[oracle.tensor(arena.flat(p), p.spec) for p in slot.inputs] for slot in slots]
        self._outputs = [[oracle.tensor(arena.flat(p), p.spec) for p in slot.outputs] for slot in slots]
        self._answers: Sequence[Tensor] = ()
        self._rule = rule
        self._sizes: dict[int, float] = {}
        self._room: dict[tuple[int, ...], Array] = {}
        self._growth = growth(operator.accumulation(case))
        # A thread that does nothing else, as the worker's does: on a busy machine the scheduler treats both alike.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reference")

    def close(self) -> None:
        """End the reference's thread."""
        self._thread.shutdown()

    def fresh(self, number: int) -> None:
        """Put other numbers into a slot's inputs and poison its outputs."""
        slot = self.slots[number]
        self._now[number] = [_pick(pool, p.spec, self._rng) for pool, p in zip(self._pools, slot.inputs, strict=True)]
        self.restore(number)

    def restore(self, number: int) -> None:
        """Write a slot's numbers again and poison its outputs."""
        slot = self.slots[number]
        for place, flat in zip(slot.inputs, self._now[number], strict=True):
            self.bench.arena.flat(place)[...] = flat
        self.bench.arena.poison(slot, POISONS[0])

    def chill(self, number: int, cold: Cold) -> None:
        """Make everything that the next call on the slot touches cold, the reference's old results included."""
        slot = self.slots[number]
        cold(int(self.bench.arena.bytes.ctypes.data) + slot.begin, slot.end - slot.begin)
        for result in self._answers:
            cold(result.data_ptr(), result.numel() * result.element_size())

    def gauge(self, number: int) -> None:
        """See how large the numbers of each output are: over all slots, as one alone may be near zero by chance."""
        self._thread.submit(self.refer, number).result()
        for index, answer in enumerate(self._answers):
            if answer.numel() and (answer.is_floating_point() or answer.is_complex()):
                size = float(answer.abs().nan_to_num(nan=0.0, posinf=0.0).max())
                self._sizes[index] = max(self._sizes.get(index, 0.0), size)

    def refer(self, number: int) -> None:
        """Run the torch baseline on a slot's inputs."""
        self._answers = self.operator.baseline(*self._inputs[number], **self.case.attributes)

    def time_reference(self, number: int, timer: Timer) -> float:
        """Return the milliseconds that the baseline takes on a slot's inputs."""
        return self._thread.submit(self._timed_reference, number, timer).result()

    def _timed_reference(self, number: int, timer: Timer) -> float:
        self._answers = ()  # what comes next may lie where this lay
        return timer.time(lambda: self.refer(number))

    def run(self, number: int) -> Called:
        """Run the candidate on a slot. Raises Refused when it does not return 0."""
        self.bench.idleness.before(self.bench.session)
        called = self.bench.session.call([number])
        self.bench.idleness.after(self.bench.session)
        if not isinstance(called, Ended) and (thread := self.bench.idleness.left_behind()) is not None:
            raise self._refused(f"{thread} (timed call)")
        return self._returned(called)

    def batch(self, rounds: int) -> Called:
        """Run the candidate on every slot, that many times, as one command."""
        return self._returned(self.bench.session.call([*range(len(self.slots))] * rounds))

    def look(self, number: int) -> None:
        """Hold the candidate's outputs in a slot against the reference's latest results. Raises Refused."""
        if broken := self.bench.intact(self.slots[number], self._now[number]):
            raise self._refused(f"the kernel {broken} in a timed call", "wrong")
        places = self.slots[number].outputs
        for index, (got, answer) in enumerate(zip(self._outputs[number], self._answers, strict=True)):
            if not self._close(index, got, answer, rounded=places[index].spec.rounded):
                raise self._refused(
                    f"output {index} of a timed call is not what torch computed for its inputs", "wrong"
                )

    def _close(self, index: int, got: Tensor, answer: Tensor, *, rounded: bool) -> bool:
        torch: Any = oracle.torch_module()
        if rounded:  # two honest roundings of almost the same number
            return int((got.int() - answer.int()).abs().max()) <= 1
        if not answer.is_floating_point() and not answer.is_complex():
            return bool(torch.equal(got, answer))
        error = self._distance(got, answer)
        if math.isnan(error):  # of what is no number, or infinite, on both sides
            same = (got == answer) | (got.isnan() & answer.isnan())
            error = float(torch.where(same, torch.zeros_like(got), got - answer).abs().max())
        size = self._sizes[index]  # other numbers of one distribution: about as large each time
        if self._rule == "hardened":
            dtype = str(answer.dtype).removeprefix("torch.")
            return error <= TIMED_SLACK * UNIT_ROUNDOFF[dtype] * self._growth * size
        return error <= TIMED_SLACK * THRESHOLD * max(1.0, size)

    def _distance(self, got: Tensor, answer: Tensor) -> float:
        """Return the largest absolute difference; NaN where there is one.

        With one thread and no new memory in the usual case: torch's pool would have to be woken for each look.
        """
        torch: Any = oracle.torch_module()
        if answer.dtype != torch.float32 or answer.numel() == 0:
            return float(torch.linalg.vector_norm(got - answer, ord=math.inf))
        room = self._room.setdefault(answer.shape, np.empty(tuple(answer.shape), dtype=np.float32))
        with np.errstate(all="ignore"):
            np.subtract(got.numpy(), answer.numpy(), out=room)
        return max(float(room.max()), -float(room.min()))

    def _returned(self, called: Called | Ended) -> Called:
        if isinstance(called, Ended):
            raise Refused(Failure(called.how, self.case.name, f"{called.message} (timed call)"))
        if called.code != 0:
            raise self._refused(f"the kernel returned {called.code} in a timed call", "error")
        return called

    def _refused(self, message: str, kind: Any = "refused") -> Refused:
        return Refused(Failure(kind, self.case.name, message))


def _pool(spec: TensorSpec, rng: np.random.Generator) -> list[Array]:
    """Numbers to make a call's inputs of: one long row to cut from; a few inputs where values are special and many."""
    if spec.values == "any" and spec.dtype in _MIXED:
        spare = min(1 << 16, spec.storage) + 1024
        return [rng.standard_normal(spec.storage + spare, dtype=np.float32)]
    return [oracle.draw(spec, rng) for _ in range(SLOTS)] if _many(spec) else []


def _pick(pool: list[Array], spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Make a call's numbers: two pieces of the row, turned by a random angle, are normal again, and none recurs."""
    if not pool:
        return oracle.draw(spec, rng)
    if len(pool) > 1:
        return pool[int(rng.integers(len(pool)))]
    first, second = (int(begin) for begin in rng.integers(pool[0].size - spec.storage, size=2))
    angle = float(rng.uniform(0.3, 1.2))
    mixed = pool[0][first : first + spec.storage] * np.float32(math.cos(angle))
    mixed += pool[0][second : second + spec.storage] * np.float32(math.sin(angle))
    if spec.dtype == "bfloat16":
        return (mixed.view(np.uint32) >> 16).astype(np.uint16)
    return mixed.astype(NUMPY_DTYPES[spec.dtype], copy=False)


_MIXED = frozenset({"float32", "float64", "float16", "bfloat16"})


def _many(spec: TensorSpec) -> bool:
    """Whether numbers with special values take too long to draw for each call."""
    return spec.values != "any" and spec.elements > 1 << 16
