"""The time step: candidate and torch reference under the same inputs, one after the other, all outputs looked at.

In the hardened mode each call gets fresh numbers at one of a few addresses, and all that it reads and writes is cold in
every cache (`cache.cpp` flushes the slot's lines, which costs less than streaming through a cache). In the paper mode
the inputs stay as they are and the caches too.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from device import arena as memory
from device import oracle, timing
from device.arena import Arena, Array, Slot
from device.compare import THRESHOLD, UNIT_ROUNDOFF, growth
from device.operators.base import Case, Operator, TensorSpec
from device.port import Backend
from device.sandbox import native
from device.types import (
    Build,
    Called,
    CaseMeasurement,
    Check,
    Ended,
    Failure,
    Limits,
    Measurement,
    Mode,
    RuleName,
)
from device.verify import POISONS, Bench, Idleness

if TYPE_CHECKING:
    from torch import Tensor

Cold = Callable[[int, int], None]

SLOTS = 8
SLOT_BYTES = 128 << 20
"""At most `SLOTS` sets of inputs and outputs at different addresses, fewer (two at least) where they need more memory."""

SETTLE_SECONDS, LOUD_SETTLE_SECONDS = 0.0003, 0.004
"""Rest after each call, until the OpenMP pool of the side that ran sleeps; the second where torch's pool spins for
the OpenMP library's default of 3 ms, because someone imported torch before the judge did."""

TIMED_SLACK = 4.0
"""Timed outputs are held against torch's own float32 result: the errors of both, and a margin."""

FASTEST_BYTES_PER_SECOND = 1e12
REPLY_NS = 300_000
CLAIMED_SHARE = 0.5
BATCHES = 16
"""What a worker claims for one call must be at least this share of what the judge's clock gives for it; a machine that
is busy with other things gets so many tries to show a batch that is quick enough."""


@dataclass(slots=True)
class _Refused(Exception):
    """Something about a timed call is not what it must be."""

    failure: Failure


class _TimedCase:
    """One timed case at work: slots, fresh numbers, the reference over the same memory."""

    def __init__(self, operator: Operator, case: Case, bench: Bench, slots: Sequence[Slot], seed: int, rule: RuleName):
        self.operator, self.case, self.bench, self.slots = operator, case, bench, slots
        self._rng = oracle.seeded(seed, operator.name, case.name, "timed")
        self._pools = [_pool(spec, self._rng) for spec in case.inputs]
        self._now: dict[int, list[Array]] = {}
        arena = bench.arena
        self._inputs = [[oracle.tensor(arena.flat(p), p.spec) for p in slot.inputs] for slot in slots]
        self._outputs = [[oracle.tensor(arena.flat(p), p.spec) for p in slot.outputs] for slot in slots]
        self._answers: Sequence[Tensor] = ()
        self._rule = rule
        self._sizes: dict[tuple[int, ...], float] = {}
        self._growth = growth(operator.accumulation(case))

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

    def forget(self) -> None:
        """Let the reference's next results lie where its last ones did."""
        self._answers = ()

    def refer(self, number: int) -> None:
        """Run the torch baseline on a slot's inputs."""
        self._answers = self.operator.baseline(*self._inputs[number], **self.case.attributes)

    def run(self, number: int) -> Called:
        """Run the candidate on a slot. Raises _Refused when it does not return 0."""
        self.bench.idleness.before(self.bench.session)
        called = self.bench.session.call([number])
        self.bench.idleness.after(self.bench.session)
        return self._returned(called)

    def batch(self) -> Called:
        """Run the candidate once on every slot, as one command."""
        return self._returned(self.bench.session.call(range(len(self.slots))))

    def look(self, number: int) -> None:
        """Hold the candidate's outputs in a slot against the reference's latest results. Raises _Refused."""
        if broken := self.bench.intact(self.slots[number], self._now[number]):
            raise self._refused(f"the kernel {broken} in a timed call", "wrong")
        for index, (got, answer) in enumerate(zip(self._outputs[number], self._answers, strict=True)):
            if not self._close(got, answer):
                raise self._refused(f"output {index} of a timed call is not what torch computed for its inputs", "wrong")

    def _close(self, got: Tensor, answer: Tensor) -> bool:
        torch: Any = oracle.torch_module()
        if not answer.is_floating_point():
            return bool(torch.equal(got, answer))
        error = float(torch.linalg.vector_norm(got - answer, ord=math.inf))
        if answer.shape not in self._sizes:
            self._sizes[answer.shape] = float(answer.abs().max())
        size = self._sizes[answer.shape]  # other numbers of one distribution: about as large each time
        if self._rule == "hardened":
            dtype = str(answer.dtype).removeprefix("torch.")
            return error <= TIMED_SLACK * UNIT_ROUNDOFF[dtype] * self._growth * size
        return error <= TIMED_SLACK * THRESHOLD * max(1.0, size)

    def _returned(self, called: Called | Ended) -> Called:
        if isinstance(called, Ended):
            raise _Refused(Failure(called.how, self.case.name, f"{called.message} (timed call)"))
        if called.code != 0:
            raise self._refused(f"the kernel returned {called.code} in a timed call", "error")
        return called

    def _refused(self, message: str, kind: Any = "refused") -> _Refused:
        return _Refused(Failure(kind, self.case.name, message))


def _pool(spec: TensorSpec, rng: np.random.Generator) -> list[Array]:
    """Numbers to take a call's inputs from: one long row to cut from, or a few inputs where values are special."""
    if spec.values == "any" and spec.dtype == "float32":
        spare = min(1 << 16, spec.storage) + 1024
        return [rng.standard_normal(spec.storage + spare, dtype=np.float32)]
    return [oracle.draw(spec, rng) for _ in range(SLOTS)]


def _pick(pool: list[Array], spec: TensorSpec, rng: np.random.Generator) -> Array:
    if len(pool) > 1:
        return pool[int(rng.integers(len(pool)))]
    begin = int(rng.integers(pool[0].size - spec.storage))
    return pool[0][begin : begin + spec.storage]


def measure(
    backend: Backend, build: Build, operator: Operator, seed: int, mode: Mode, rule: RuleName, limits: Limits, threads: int
) -> Measurement:
    """Time every timed case of the operator; a timed call that is wrong, or a clock that lies, ends it with a failure."""
    begin = time.monotonic()
    cases = [case for case in operator.cases if case.timed]
    done: list[CaseMeasurement] = []
    checks: list[Check] = []
    failure: Failure | None = None
    for case in cases:
        try:
            measured, seen = _measure_case(
                backend, build, operator, case, seed, mode, rule, limits, threads, timing.CASE_SECONDS / len(cases)
            )
        except _Refused as refused:
            failure = refused.failure
            break
        done.append(measured)
        checks += seen
        if (bad := next((check for check in seen if not check.ok), None)) is not None:
            failure = Failure("refused", case.name, f"{bad.name}: {bad.detail}")
            break
    taken = min((len(case.candidate.samples_ms) for case in done), default=0)
    return Measurement(tuple(done), timing.WARM_UP, taken, time.monotonic() - begin, tuple(checks), failure)


def _measure_case(
    backend: Backend, build: Build, operator: Operator, case: Case, seed: int, mode: Mode, rule: RuleName,
    limits: Limits, threads: int, budget: float,
) -> tuple[CaseMeasurement, list[Check]]:  # fmt: skip
    outputs = operator.outputs(case)
    one = memory.lay_out(0, memory.PAGE, case.inputs, outputs)
    count = max(2, min(SLOTS, SLOT_BYTES // (one.end - one.begin)))
    slots = [one]
    while len(slots) < count:
        slots.append(memory.lay_out(len(slots), slots[-1].end, case.inputs, outputs))
    oracle.torch_module().set_num_threads(threads)
    shared = Arena(slots[-1].end - memory.PAGE)
    shared.clear_note()
    with backend.open(build, shared, limits, threads) as session:
        ended = session.load()
        if ended is not None:
            raise _Refused(Failure(ended.how, case.name, ended.message))
        timed = _TimedCase(operator, case, Bench(shared, session, Idleness(threads)), slots, seed, rule)
        for slot in slots:
            shared.guard(slot)
            session.describe(memory.describe(slot, tuple(case.attributes.values())))
            timed.fresh(slot.number)
        cold = _make_cold() if mode == "hardened" else _leave_warm
        samples = _sample(timed, backend, mode, budget, cold)
        checks = [
            *_clocks(timed, samples, [p.bytes for p in (*one.inputs, *one.outputs)], cold),
            timed.bench.idleness.check(),
        ]
    return _case_result(case, outputs, samples), checks


@dataclass(slots=True)
class _Samples:
    candidate_ms: list[float]
    reference_ms: list[float]
    called: list[Called]


def _sample(timed: _TimedCase, backend: Backend, mode: Mode, budget: float, cold: Cold) -> _Samples:
    """Warm both sides up, then take interleaved samples, each side first in turn."""
    timer = backend.timer()
    settle = SETTLE_SECONDS if oracle.quiet_pool() else LOUD_SETTLE_SECONDS
    samples = _Samples([], [], [])
    planned = timing.TIMED
    begin = ended = time.monotonic()
    turn = 0
    while turn < timing.WARM_UP + planned:
        number = turn % len(timed.slots) if mode == "hardened" else 0
        if mode == "hardened":
            timed.fresh(number)
        else:
            timed.restore(number)
        for side in ("candidate", "reference") if turn % 2 else ("reference", "candidate"):
            timed.chill(number, cold)
            if (rest := settle - (time.monotonic() - ended)) > 0:
                time.sleep(rest)
            if side == "candidate":
                called = timed.run(number)
            else:
                timed.forget()
                reference_ms = timer.time(lambda at=number: timed.refer(at))  # type: ignore[misc]
            ended = time.monotonic()
        timed.look(number)
        turn += 1
        if turn > timing.WARM_UP:
            samples.called.append(called)
            samples.candidate_ms.append(called.claimed_ns / 1e6)
            samples.reference_ms.append(reference_ms)
        elif turn == timing.WARM_UP:
            planned = timing.planned((time.monotonic() - begin) / timing.WARM_UP, budget)
    return samples


def _leave_warm(_address: int, _size: int) -> None:
    """Leave the caches as they are: the paper's protocol."""


def _make_cold() -> Cold:
    library = ctypes.CDLL(str(native().cache))
    flush = library.sagebook_make_cold
    flush.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    flush.restype = None
    return lambda address, size: flush(address, size)


def _clocks(timed: _TimedCase, samples: _Samples, sizes: Sequence[int], cold: Cold) -> list[Check]:
    """Hold the worker's clock against the judge's own.

    The judge sees a call and the way there and back; over several calls in one command that way hardly counts, so the
    judge's clock alone bounds what a call can have taken. A worker that claims less than half of it (`CLAIMED_SHARE`),
    that claims more than the judge saw, or whose best reply was late, is not believed.
    """
    median_ms = statistics.median(samples.candidate_ms)
    bound_ms = math.inf
    for _ in range(BATCHES):
        for slot in timed.slots:
            timed.fresh(slot.number)
            timed.chill(slot.number, cold)
        time.sleep(SETTLE_SECONDS)
        seen_ns = timed.batch().seen_ns
        for slot in timed.slots:
            timed.refer(slot.number)
            timed.look(slot.number)
        bound_ms = min(bound_ms, max(0, seen_ns - REPLY_NS // 3) / len(timed.slots) / 1e6)
        if median_ms >= CLAIMED_SHARE * bound_ms:
            break
    late_ns = min(call.seen_ns - call.claimed_ns for call in samples.called)
    floor_ms = sum(sizes) / FASTEST_BYTES_PER_SECOND * 1e3
    detail = (
        f"median {median_ms:.4f} ms claimed, {bound_ms:.4f} ms a call over a batch of {len(timed.slots)} on the judge's "
        f"clock; quickest reply {late_ns / 1e3:.0f} us after the claimed end"
    )
    believed = median_ms >= CLAIMED_SHARE * bound_ms and 0 <= late_ns <= REPLY_NS and min(samples.candidate_ms) >= floor_ms
    return [Check("clocks agree", believed, detail)]


def _case_result(case: Case, outputs: Sequence[TensorSpec], samples: _Samples) -> CaseMeasurement:
    shapes = tuple(spec.shape for spec in (*case.inputs, *outputs))
    return CaseMeasurement(
        case=case.name,
        shapes=shapes,
        candidate=timing.summarise(samples.candidate_ms),
        reference=timing.summarise(samples.reference_ms),
        noise_ms=timing.noise(samples.candidate_ms),
    )
