"""A `ModelNew` judged on a task: both modules in confined processes of their own, by the judge's rules and clock.

The candidate's process gets its text, the reference's initial arguments and weights, and inputs; what is expected stays
with the judge. Both sides are timed by the judge's clock around an order and its answer, so that the way there and
back is in both, and what a module does to its own clocks changes nothing.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from device import machine, plausible, report, timing
from device.backends import get as get_backend
from device.cheats import first_refusal, settled
from device.compare import UNIT_ROUNDOFF, compare, growth
from device.evaluate import RULE_OF, compose
from device.languages import python
from device.machine import cores
from device.measure import alone
from device.oracle import numbers
from device.plausible import Samples
from device.report import JudgeKey, SignedReport
from device.suites import text
from device.suites.problems import Problem, open_reference, outputs, pose, tensors
from device.suites.process import LIMITS, MOST_BYTES, Process, Said, Tensor
from device.suites.tasks import Task
from device.timed import TIMED_SLACK
from device.types import (
    Build,
    CaseMeasurement,
    Check,
    Failure,
    Limits,
    Measurement,
    Mode,
    RuleName,
    Verification,
)
from device.verify import IDLE_CALL_NS, IDLE_GRACE_NS, IDLE_SHARE

LANGUAGE = "kernelbench"
COLD_BYTES = 64 << 20
"""Written between calls, so that the caches which all processes share hold other things."""

FETCH_FACTOR, FETCH_GRACE_SECONDS = 4.0, 0.05
"""Fetching a candidate's outputs, all timed calls together, takes at most so many times as long as fetching those of
the reference, and the grace: work that was put off until somebody looks is done then."""

AROUND_FACTOR, AROUND_GRACE_NS = 2.0, 20_000_000
"""The same for the processor time of taking inputs and giving outputs, from the system's books."""

MEASURE_SECONDS = 30.0


@dataclass(slots=True)
class Side:
    """One of the two processes while it is timed."""

    process: Process
    seed: int
    busy_ns: int = 0
    idle_ns: int = 0
    around_ns: int = 0
    """Processor time for taking inputs and giving outputs."""
    calls: int = 0
    fetch_seconds: float = 0.0
    latest: list[Tensor] = field(default_factory=list)

    def run(self) -> float:
        """Call once and return the milliseconds on the judge's clock."""
        before, begin = self.process.cpu_ns(), time.perf_counter_ns()
        self.process.ask("call", seed=self.seed, wide=False)
        took = time.perf_counter_ns() - begin
        after = self.process.cpu_ns()
        time.sleep(0.002)
        self.busy_ns += after - before
        self.idle_ns += self.process.cpu_ns() - after
        self.calls += 1
        return took / 1e6

    def give(self, inputs: list[Any]) -> None:
        """Hand the next call's inputs over."""
        before = self.process.cpu_ns()
        self.process.ask("slot", inputs=inputs)
        self.around_ns += self.process.cpu_ns() - before

    def fetch(self) -> None:
        """Take the outputs of the last call."""
        before, begin = self.process.cpu_ns(), time.monotonic()
        self.latest = self.process.ask("fetch")
        self.fetch_seconds += time.monotonic() - begin
        self.around_ns += self.process.cpu_ns() - before


def judge(
    source: str, task: Task, root: Path, *, mode: Mode = "hardened", rule: RuleName | None = None, seed: int,
    key: JudgeKey, measure: bool = True, limits: Limits = LIMITS,
) -> SignedReport:  # fmt: skip
    """Judge one `ModelNew` on a task of a suite whose checkout is at `root`; the outcome is in the signed report.

    Raises TaskRefused where the task cannot be judged, and SandboxBroken: neither is a verdict on the candidate.
    """
    rule = rule or RULE_OF[mode]
    threads = limits.threads or cores()
    description = get_backend("cpu").describe()
    begin = time.monotonic()
    build = read(source)
    verification: Verification | None = None
    measurement: Measurement | None = None
    dtype = "float32"
    if build.ok:
        private = key.private_seed(seed) & (1 << 62) - 1
        folder = report.default_key_path().parent
        hidden = (root, *([folder] if folder.is_dir() else []))
        with Process(limits, threads, hidden[1:]) as reference, Process(limits, threads, hidden) as candidate:
            init = open_reference(reference, task, private)
            problems = pose(reference, task, private, mode, rule)
            dtype = next(tensors(problems[0].inputs)).dtype
            failure, same = _open(candidate, reference, source, init, private)
            if failure is not None and failure.kind == "error":
                build = replace(build, outcome="compile_error", summary=failure.message, log=failure.message)
            else:
                verification = _verify(candidate, problems, private, (*build.checks, *same), failure)
                if verification.ok and measure:
                    measurement = _measure(reference, candidate, task, problems, private, limits)
    data = compose(
        description, operator={"name": task.name, "level": task.level, "family": "suite", "dtype": dtype},
        source=source, language=LANGUAGE, mode=mode, rule=rule, seed=seed, build=replace(build, checks=()) if build.ok
        else build, verification=verification, measurement=measurement, device_seconds=time.monotonic() - begin,
    )  # fmt: skip
    return report.sign(data, key)


def read(source: str) -> Build:
    """Read the module's text; what may not be in it is refused by name."""
    begin = time.monotonic()
    try:
        tree = ast.parse(source)
        checks = text.check(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = f"the module cannot be read: {error}"
        return Build("compile_error", (), time.monotonic() - begin, reason, summary=reason)
    seconds = time.monotonic() - begin
    if refusal := first_refusal(checks):
        return Build("refused", (), seconds, "", summary=f"{refusal.name}: {refusal.detail}", checks=checks)
    return Build("built", (), seconds, "", checks=checks)


def plain(source: str) -> bool:
    """Whether a module is a plain launcher of one kernel, which the judge compiles and runs without any Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ImportFrom) and node.module == "sagebook" for node in tree.body) or (
        first_refusal(python.check(tree)) is None
    )


def _open(
    candidate: Process, reference: Process, source: str, init: list[Any], seed: int
) -> tuple[Failure | None, tuple[Check, ...]]:
    try:
        candidate.ask(
            "open", text=source, file="candidate.py", beside={}, model="ModelNew", needs=["ModelNew"], seed=seed,
            init=init, row=None, stand_ins=(), most=MOST_BYTES,
        )  # fmt: skip
        state = reference.ask("state")
        same = candidate.ask("load", state=state)
    except Said as said:
        how = said.ended.how
        return Failure(how, "loading", said.ended.message), ()
    detail = "loaded" if same else "names or shapes differ: the same seed has made them, as in the benchmark"
    return None, (Check("weights of the reference", ok=True, detail=detail),)


def _verify(
    candidate: Process, problems: list[Problem], seed: int, checks: Sequence[Check], failure: Failure | None
) -> Verification:
    begin = time.monotonic()
    passed, worst = 0, 0.0
    sandbox = Check("sandbox", ok=True, detail=", ".join(candidate.measures))
    if failure is None:
        for problem in (*problems, problems[0]):  # the first again: what was kept from it meets other inputs before
            failure, share = _attempt(candidate, problem, seed)
            worst = max(worst, share)
            if failure is not None:
                break
            passed += 1
    evidence = Check("zeros and constants would fail", ok=True, detail=f"on {len(problems)} sets of inputs together")
    largest = Check("largest error", ok=failure is None, detail=f"{worst:.3g} of what is allowed")
    seconds = time.monotonic() - begin
    passed = min(passed, len(problems))
    return Verification(len(problems), passed, seconds, (*checks, sandbox, evidence, largest), failure)


def _attempt(candidate: Process, problem: Problem, seed: int) -> tuple[Failure | None, float]:
    try:
        got = outputs(candidate, problem.inputs, seed, wide=False)
    except Said as said:
        return Failure(said.ended.how, problem.name, said.ended.message), 0.0
    wrong = _form(got, problem)
    if wrong is not None:
        return Failure("wrong", problem.name, wrong), 0.0
    worst = 0.0
    for number, (one, expected) in enumerate(zip(got, problem.expected, strict=True)):
        values = numbers(one.bits, one.dtype)
        seen = compare(expected, values, None, number)
        if not seen.ok:
            return Failure("wrong", problem.name, seen.message, seen), 0.0
        worst = max(worst, expected.worst(values))
    return None, worst


def _form(got: Any, problem: Problem) -> str | None:
    """Say what is wrong with count, dtypes and shapes."""
    forms = [[(one.dtype, list(one.bits.shape)) for one in each] for each in (got, problem.own)]
    return None if forms[0] == forms[1] else f"outputs are {forms[0]}, expected {forms[1]}"


def _measure(
    reference: Process, candidate: Process, task: Task, problems: list[Problem], seed: int, limits: Limits
) -> Measurement:
    with alone():
        for again in range(plausible.ITSELF_TRIES):
            first = _samples(reference, candidate, task, problems, seed + 101 + again, limits, again + 1)
            if first.uneven is None:
                break
        if first.failure is not None or first.uneven or not plausible.great(first.cases):
            return first
        second = _samples(reference, candidate, task, problems, seed + 50021, limits)
    checks = settled([plausible.seen_again(first.cases, second.cases)])
    bad = first_refusal(checks)
    failure = second.failure
    if failure is None and bad is not None:
        failure = Failure("refused", task.name, f"{bad.name}: {bad.detail}")
    return replace(first, checks=(*first.checks, *checks), failure=failure, seconds=first.seconds + second.seconds)


def _samples(
    reference: Process, candidate: Process, task: Task, problems: list[Problem], seed: int, limits: Limits,
    tries: int = 1,
) -> Measurement:  # fmt: skip
    begin, before = time.monotonic(), machine.conditions()
    sides = {"reference": Side(reference, seed), "candidate": Side(candidate, seed)}
    samples, order = Samples(), timing.Order(np.random.default_rng(seed))
    size = max(expected.reference.size for expected in problems[0].expected)
    slack = TIMED_SLACK * growth(max([size, *(one.bits.size for one in tensors(problems[0].inputs))]))
    cold = np.zeros(COLD_BYTES, dtype=np.uint8)
    turn, planned = 0, timing.TIMED
    failure: Failure | None = None
    try:
        while turn < timing.WARM_UP + planned and failure is None:
            if time.monotonic() - begin > limits.total_seconds:
                failure = Failure("hang", task.name, "measuring took longer than the evaluation may take")
                break
            inputs = reference.ask("inputs", seed=(seed + turn) & (1 << 62) - 1)
            took = {}
            for name in order.legs(turn, planned):
                side = sides["reference" if name == "twin" else name]
                side.give(inputs)
                cold.fill(turn % 256)
                took[name] = side.run()
                side.fetch()
            failure = _same(sides, problems[0], slack, task.name)
            turn += 1
            if turn <= timing.WARM_UP:
                samples.warm_up_ms.append(took["candidate"])
                continue
            samples.candidate_ms.append(took["candidate"])
            samples.reference_ms.append(took["reference"])
            if "twin" in took:
                samples.twins_ms.append((took["reference"], took["twin"]))
            planned = timing.planned((time.monotonic() - begin) / turn, MEASURE_SECONDS)
    except Said as said:
        failure = Failure(said.ended.how, task.name, f"{said.ended.message} (timed call)")
    seconds = time.monotonic() - begin
    if failure is not None:
        return Measurement((), timing.WARM_UP, 0, seconds, (), failure)
    checks = settled([*_idle(sides), plausible.settled_warm_up(samples), plausible.same_reference(samples)])
    bad = plausible.refusal(checks)
    failure = None if bad is None else Failure("refused", task.name, f"{bad.name}: {bad.detail}")
    shapes = tuple(tuple(one.bits.shape) for one in (*tensors(problems[0].inputs), *problems[0].own))
    case = CaseMeasurement(
        "as given", shapes, timing.summarise(samples.candidate_ms), timing.summarise(samples.reference_ms),
        timing.noise(samples.candidate_ms), timing.ratio(samples.reference_ms, samples.candidate_ms),
        plausible.itself(samples), tries,
    )  # fmt: skip
    conditions = (before, machine.conditions())
    return Measurement(
        (case,), timing.WARM_UP, len(samples.candidate_ms), seconds, checks, failure, conditions,
        plausible.uneven(checks),
    )  # fmt: skip


def _same(sides: dict[str, Side], problem: Problem, slack: float, case: str) -> Failure | None:
    """Hold the candidate's outputs of a timed call against the reference's for the same inputs."""
    got, answers = sides["candidate"].latest, sides["reference"].latest
    if (wrong := _form(got, problem)) is not None:
        return Failure("wrong", case, f"{wrong} in a timed call")
    for number, (one, answer) in enumerate(zip(got, answers, strict=True)):
        mine, other = numbers(one.bits, one.dtype), numbers(answer.bits, answer.dtype)
        wide = problem.expected[number].slack
        with np.errstate(all="ignore"):
            if one.dtype in UNIT_ROUNDOFF:
                error = float(np.max(np.abs(mine.astype(np.float64) - other.astype(np.float64))))
                good = error <= wide * slack * UNIT_ROUNDOFF[one.dtype] * float(np.max(np.abs(other)))
            else:
                good = bool((mine == other).all())
        if not good:
            return Failure("wrong", case, f"output {number} of a timed call is not what the reference computed")
    return None


def _idle(sides: dict[str, Side]) -> Iterator[Check]:
    """Say whether work went on after the answer, or waited until somebody looked."""
    side, other = sides["candidate"], sides["reference"]
    quiet = side.idle_ns <= IDLE_SHARE * side.busy_ns + IDLE_GRACE_NS + IDLE_CALL_NS * side.calls
    detail = f"{side.idle_ns / 1e6:.1f} ms of processor time after calls, {side.busy_ns / 1e6:.1f} ms within"
    yield Check("nothing runs on after a call", quiet, detail)
    plain = side.around_ns <= AROUND_FACTOR * other.around_ns + AROUND_GRACE_NS + IDLE_SHARE * side.busy_ns
    detail = f"{side.around_ns / 1e6:.1f} ms of processor time, the reference {other.around_ns / 1e6:.1f} ms"
    yield Check("inputs and outputs are only handed over", plain, detail)
    prompt = side.fetch_seconds <= FETCH_FACTOR * other.fetch_seconds + FETCH_GRACE_SECONDS
    detail = f"fetching took {side.fetch_seconds:.3f} s, that of the reference {other.fetch_seconds:.3f} s"
    yield Check("outputs are there when a call returns", prompt, detail)
