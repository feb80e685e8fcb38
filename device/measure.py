"""The time step: candidate and torch reference under the same inputs, one after the other, all outputs looked at.

In the hardened mode each call gets fresh numbers at one of a few addresses, and all that it reads and writes is cold in
every cache (`cache.cpp` flushes the slot's lines, which costs less than streaming through a cache). In the paper mode
the inputs stay as they are and the caches too.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from device import arena as memory
from device import machine, oracle, plausible, timing
from device.arena import Arena
from device.cheats import settled
from device.operators.base import Case, Operator, TensorSpec
from device.plausible import Samples
from device.port import Backend
from device.sandbox import cache_folder, native
from device.timed import SLOTS, Cold, Refused, TimedCase
from device.types import (
    Build,
    CaseMeasurement,
    Check,
    Failure,
    Limits,
    Measurement,
    Mode,
    RuleName,
)
from device.verify import Bench, Idleness, staying

SLOT_BYTES = 128 << 20
"""Memory for all slots together: fewer than `SLOTS`, but two at least, where they would need more."""

SETTLE_SECONDS, LOUD_SETTLE_SECONDS = 0.0001, 0.004
"""Rest after each call, until the OpenMP pool of the side that ran sleeps; the second where torch's pool spins for
the OpenMP library's default of 3 ms, because someone imported torch before the judge did."""

REPLY_NS, LATE_SHARE = 300_000, 0.01
"""The quickest of all replies is at most so late after the end that the worker claims, and a hundredth of the call; a
usual one takes 50 us."""

BATCH_MS, MOST_ROUNDS = 4.0, 32
"""A batch is made of enough calls to take about so long, and goes round all slots at most so often. A kernel
that claims more for one call needs none: a reply that is at most `REPLY_NS` late leaves no room for a lie."""

CLAIMED_SHARE = 0.6
BATCHES = 6
"""What a worker claims for one call must be at least this share of what the judge finds for it; a machine that is busy
with other things gets so many tries to show a batch that is quick enough."""


def measure(
    backend: Backend,
    build: Build,
    operator: Operator,
    seed: int,
    mode: Mode,
    rule: RuleName,
    limits: Limits,
    threads: int,
) -> Measurement:
    """Time every timed case of the operator; a wrong timed call, or a clock that lies, ends it with a failure.

    What is much faster than torch is measured twice, by two processes on different numbers.
    """
    with alone():
        first = _measure(backend, build, operator, seed, mode, rule, limits, threads)
        for again in range(1, CLOCK_TRIES):
            if first.failure is None or "clocks agree" not in first.failure.message:
                break
            # Another program took the core in mid-call; a clock that lies does so in every run.
            first = _measure(backend, build, operator, seed + again * _SECOND_SEED, mode, rule, limits, threads)
        if first.failure is not None or first.uneven or not plausible.great(first.cases):
            return first
        second = _measure(backend, build, operator, seed + _SECOND_SEED, mode, rule, limits, threads)
    checks = settled([plausible.seen_again(first.cases, second.cases)])
    failure = second.failure or _refusal(checks, first.cases[0].case)
    seconds = first.seconds + second.seconds
    return replace(first, checks=(*first.checks, *checks), failure=failure, seconds=seconds)


_SECOND_SEED = 0x5ECD
CLOCK_TRIES = 5
"""Measurements until a refusal for a lying clock stands: on a shared machine an honest one may look so now and then."""


def _refusal(checks: Sequence[Check], case: str) -> Failure | None:
    bad = plausible.refusal(checks)
    return None if bad is None else Failure("refused", case, f"{bad.name}: {bad.detail}")


def _digest(build: Build) -> str | None:
    return None if build.artefact is None else hashlib.sha256(build.artefact.read_bytes()).hexdigest()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let no other judge of this user measure at the same time on this machine."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "measure.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _measure(
    backend: Backend,
    build: Build,
    operator: Operator,
    seed: int,
    mode: Mode,
    rule: RuleName,
    limits: Limits,
    threads: int,
) -> Measurement:
    begin, before = time.monotonic(), machine.conditions()
    cases = [case for case in operator.cases if case.timed]
    done: list[CaseMeasurement] = []
    checks: list[Check] = [plausible.same_artefact(build, _digest(build))]
    failure = _refusal(checks, cases[0].name)
    overhead = plausible.overhead_ns(backend, limits, threads)
    for case in cases if failure is None else ():
        try:
            measured, seen = _measure_case(
                backend, build, operator, case, seed, mode, rule, limits, threads, timing.CASE_SECONDS / len(cases),
                overhead,
            )  # fmt: skip
        except Refused as refused:
            failure = refused.failure
            break
        done.append(measured)
        checks += seen
        failure = _refusal(seen, case.name)
        if failure is not None or plausible.uneven(seen):
            break
    if failure is None:
        after = plausible.same_artefact(build, _digest(build))
        failure = _refusal([after], cases[-1].name)
    taken = min((len(case.candidate.samples_ms) for case in done), default=0)
    return Measurement(
        tuple(done), timing.WARM_UP, taken, time.monotonic() - begin, tuple(checks), failure,
        (before, machine.conditions()), plausible.uneven(checks),
    )  # fmt: skip


def _measure_case(
    backend: Backend, build: Build, operator: Operator, case: Case, seed: int, mode: Mode, rule: RuleName,
    limits: Limits, threads: int, budget: float, overhead: float | None,
) -> tuple[CaseMeasurement, Sequence[Check]]:  # fmt: skip
    outputs = operator.outputs(case)
    one = memory.lay_out(0, memory.PAGE, case.inputs, outputs)
    count = max(2, min(SLOTS, SLOT_BYTES // (one.end - one.begin)))
    slots = [one]
    while len(slots) < count:
        slots.append(memory.lay_out(len(slots), slots[-1].end, case.inputs, outputs))
    oracle.torch_module().set_num_threads(threads)
    idleness = Idleness(threads, staying(build, threads))
    with (
        contextlib.closing(Arena(slots[-1].end - memory.PAGE)) as shared,
        backend.open(build, shared, limits, threads) as session,
    ):
        ended = session.load()
        if ended is not None:
            raise Refused(Failure(ended.how, case.name, ended.message))
        bench = Bench(shared, session, idleness)
        with contextlib.closing(TimedCase(operator, case, bench, slots, seed, rule, limits)) as timed:
            for slot in slots:
                shared.guard(slot)
                session.describe(memory.describe(slot, tuple(case.attributes.values())))
                timed.fresh(slot.number)
                timed.gauge(slot.number)
            cold = _make_cold() if mode == "hardened" else _leave_warm
            tries, samples = 1, _sample(timed, backend, mode, budget, cold)
            while tries < plausible.ITSELF_TRIES and not plausible.same_reference(samples).ok:
                tries, samples = tries + 1, _sample(timed, backend, mode, budget, cold)
            clock = plausible.honest_clock(samples, threads, overhead)
            checks = [
                clock,
                *([_clocks(timed, samples, cold)] if clock.ok else []),
                plausible.settled_warm_up(samples),
                plausible.possible(operator, case, samples, threads, cold=mode == "hardened"),
                bench.idleness.check(),
                plausible.same_reference(samples),
            ]
    return _case_result(case, outputs, samples, tries), settled(checks)


def _sample(timed: TimedCase, backend: Backend, mode: Mode, budget: float, cold: Cold) -> Samples:
    """Warm both sides up, then take interleaved samples, in the orders of `timing.Order`."""
    timer = backend.timer()
    settle = SETTLE_SECONDS if oracle.quiet_pool() else LOUD_SETTLE_SECONDS
    samples = Samples()
    planned = timing.TIMED
    begin = ended = time.monotonic()
    turn = 0
    while turn < timing.WARM_UP + planned:
        if time.monotonic() - begin > timed.limits.total_seconds:
            raise Refused(Failure("hang", timed.case.name, "measuring took longer than the evaluation may take"))
        number = turn % len(timed.slots) if mode == "hardened" else 0
        if mode == "hardened":
            timed.fresh(number)
        else:
            timed.restore(number)
        took: dict[str, float] = {}
        for side in timed.order.legs(turn, planned):
            timed.chill(number, cold)
            if (rest := settle - (time.monotonic() - ended)) > 0:
                time.sleep(rest)
            if side == "candidate":
                called = timed.run(number)
            else:
                took[side] = timed.time_reference(number, timer)
            ended = time.monotonic()
        timed.look(number)
        turn += 1
        if turn <= timing.WARM_UP:
            samples.warm_up_ms.append(called.claimed_ns / 1e6)
        else:
            samples.called.append(called)
            samples.candidate_ms.append(called.claimed_ns / 1e6)
            samples.reference_ms.append(took["reference"])
            if "twin" in took:
                samples.twins_ms.append((took["reference"], took["twin"]))
            # From what is timed, never from the warm-up: a kernel that is slow there gets no fewer samples.
            taken = statistics.fmean(samples.candidate_ms) + statistics.fmean(samples.reference_ms)
            planned = timing.planned(taken / 1e3, budget)
    return samples


def _leave_warm(_address: int, _size: int) -> None:
    """Leave the caches as they are: the paper's protocol."""


def _make_cold() -> Cold:
    library = ctypes.CDLL(str(native().cache))
    flush = library.sagebook_make_cold
    flush.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    flush.restype = None
    return cast("Cold", flush)


def _clocks(timed: TimedCase, samples: Samples, cold: Cold) -> Check:
    """Hold the worker's clock against the judge's own.

    The judge sees a call and the way there and back; over many calls in one command that way hardly counts. So two
    things bound from below what the calls of a batch took: the judge's clock, less the time for which the worker's
    threads waited for a core, and the processor time that they used, spread over all of them; the operating system
    keeps both books. A worker that claims less than `CLAIMED_SHARE` of it, that claims more than
    the judge saw, or whose best reply was late, is not believed.
    """
    median_ms = statistics.median(samples.candidate_ms)
    session, count = timed.bench.session, len(timed.slots)
    rounds = max(1, min(MOST_ROUNDS, math.ceil(BATCH_MS / (median_ms * count))))
    bound_ms = math.inf if median_ms < BATCH_MS else 0.0
    for _ in range(BATCHES if median_ms < BATCH_MS else 0):
        for slot in timed.slots:
            timed.fresh(slot.number)
            timed.chill(slot.number, cold)
        time.sleep(SETTLE_SECONDS)
        waited_ns, used_ns = session.waited_ns(), session.cpu_ns()
        seen_ns = timed.batch(rounds).seen_ns
        waited_ns, used_ns = session.waited_ns() - waited_ns, session.cpu_ns() - used_ns
        took_ns = max(seen_ns - waited_ns, used_ns / timed.bench.idleness.threads) - REPLY_NS / 3
        for slot in timed.slots:
            timed.refer(slot.number)
            timed.look(slot.number)
        bound_ms = min(bound_ms, max(0.0, took_ns) / (count * rounds) / 1e6)
        if median_ms >= CLAIMED_SHARE * bound_ms:
            break
    late_ns = min(call.seen_ns - call.claimed_ns for call in samples.called)
    detail = (
        f"median {median_ms:.4f} ms claimed, {bound_ms:.4f} ms a call found by the judge in a batch of "
        f"{count * rounds}; quickest reply {late_ns / 1e3:.0f} us after the claimed end"
    )
    believed = median_ms >= CLAIMED_SHARE * bound_ms and 0 <= late_ns <= REPLY_NS + LATE_SHARE * median_ms * 1e6
    return Check("clocks agree", believed, detail)


def _case_result(case: Case, outputs: Sequence[TensorSpec], samples: Samples, tries: int) -> CaseMeasurement:
    shapes = tuple(spec.shape for spec in (*case.inputs, *outputs))
    return CaseMeasurement(
        case=case.name,
        shapes=shapes,
        candidate=timing.summarise(samples.candidate_ms),
        reference=timing.summarise(samples.reference_ms),
        noise_ms=timing.noise(samples.candidate_ms),
        speedup=timing.ratio(samples.reference_ms, samples.candidate_ms),
        itself=plausible.itself(samples),
        tries=tries,
    )
