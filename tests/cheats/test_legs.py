"""Both legs of a comparison: which is which, whether both ran what was verified, and what a time can be at all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device import JudgeKey
from device.arena import Arena
from device.backends.cpu import CpuBackend
from device.evaluate import Judge as WholeJudge
from device.operators.base import Case, TensorSpec
from device.plausible import Samples, great, honest_clock, possible, same_reference, seen_again, settled_warm_up
from device.roofline import Rates, floor, rates
from device.timing import ratio, summarise
from device.types import Build, Called, CaseMeasurement, Limits
from device.worker import Worker
from tests.cheats.conftest import LIMITS, SEED, Judge
from tests.cheats.sources import HERE, operator, text


def test_a_slow_kernel_comes_out_slow(judge: Judge) -> None:
    """Ten passes for one: about ten times as slow as need be, however the legs are called; exchanged it would be fast."""
    data = judge("controls/52-ten-passes.cpp", "rms_norm", measure=True)
    assert data["outcome"] == "correct", data["summary"]
    assert data["measure"]["speedup"] < 0.8
    checks = {check["name"]: check for check in data["verify"]["checks"]}
    assert checks["what is measured was verified"]["ok"]
    assert data["candidate"]["artefact_sha256"] in checks["what is measured was verified"]["detail"]
    assert "95 % interval" in checks["torch agrees with itself"]["detail"]


class Exchanging(CpuBackend):
    """Puts another kernel's file in the place of the verified one when the verification is over."""

    def __init__(self, place: Path, other: Path) -> None:
        self._place, self._other, self._opened = place, other, 0

    def build(self, source: str, language: str, limits: Limits, masks: Any = ()) -> Build:
        built = super().build(source, language, limits, masks)
        assert built.artefact is not None
        shutil.copyfile(built.artefact, self._place)
        return replace(built, artefact=self._place)

    def open(self, build: Build, arena: Arena, limits: Limits, threads: int, *, fill: int = 0) -> Worker:
        worker = super().open(build, arena, limits, threads, fill=fill)
        self._opened += 1
        if self._opened == 2:  # the repeat, which is the last of the verification
            shutil.copyfile(self._other, self._place)
        return worker


def test_a_kernel_exchanged_after_it_was_verified_is_refused(key: JudgeKey, tmp_path: Path) -> None:
    """What is timed must be the file whose hash the verdict carries."""
    task = operator("rms_norm")
    fast = CpuBackend().build(text(HERE / "candidates/01-left-behind-output.cpp"), "cpp", LIMITS).artefact
    assert fast is not None
    backend = Exchanging(tmp_path / "kernel.so", fast)
    source = text(HERE / "controls/19-two-passes.cpp")
    data = WholeJudge(key).evaluate(source, task, backend=backend, seed=SEED, limits=LIMITS).data
    assert data["outcome"] == "refused"
    assert "what is measured was verified" in data["summary"]
    assert data["measure"] is None


def test_a_seed_alone_tells_nobody_the_numbers(key: JudgeKey, tmp_path: Path) -> None:
    """Two judges draw differently under one seed, one judge alike."""
    from device import load_judge_key

    other = load_judge_key(tmp_path / "other.key")
    assert key.private_seed(1) == key.private_seed(1)
    assert len({key.private_seed(1), key.private_seed(2), other.private_seed(1), 1, 2}) == 5


def test_the_floor_is_bytes_and_operations_over_twice_the_rates() -> None:
    """Softmax of 512 x 1024 floats moves 2 x 2 MiB: 4194304 B / (2 x 1 GB/s) = 2.097 ms.

    A product of 256 x 256 x 256 does 2 x 256^3 = 33.6 M operations: at 2 x 1 G/s 16.8 ms, far above its 786 KB.
    """
    one = Rates(cold=1e9, warm=4e9, operations=1e9)
    rows = Case("rows", (TensorSpec((512, 1024)),))
    assert floor(operator("softmax"), rows, one, cold=True).ms == pytest.approx(4194304 / 2e9 * 1e3)
    assert floor(operator("softmax"), rows, one, cold=False).ms == pytest.approx(4194304 / 8e9 * 1e3)
    square = Case("square", (TensorSpec((256, 256)), TensorSpec((256, 256))))
    assert floor(operator("matmul"), square, one, cold=True).ms == pytest.approx(2 * 256**3 / 2e9 * 1e3)


def test_rates_are_those_of_a_real_machine_and_are_only_raised() -> None:
    """No memory is slower than 100 MB/s or faster than 10 TB/s; measured again, none goes down."""
    first = rates(2)
    assert 1e8 < first.cold < 1e13
    assert 1e8 < first.operations < 1e14
    again = rates(2, again=True)
    assert (again.cold >= first.cold, again.warm >= first.warm, again.operations >= first.operations) == (True,) * 3
    assert rates(2) == again


def test_an_impossible_time_is_refused_with_its_floor() -> None:
    """A nanosecond for 4 MiB is no speed; a second is."""
    rows = Case("rows", (TensorSpec((512, 1024)),))
    check = possible(operator("softmax"), rows, Samples(candidate_ms=[1e-6] * 20), 2, cold=True)
    assert (check.ok, "the floor is" in check.detail) == (False, True)
    assert possible(operator("softmax"), rows, Samples(candidate_ms=[1e3] * 20), 2, cold=True).ok


@pytest.mark.parametrize(("claimed_us", "held"), [(1000, True), (800, True), (500, False), (1, False)])
def test_a_claim_is_held_against_what_the_judge_saw(claimed_us: int, held: bool) -> None:
    """Seen 1.1 ms, of it 0.1 ms for the way: at least 0.8 x 1 ms - 0.06 ms = 0.74 ms must be claimed."""
    samples = Samples(called=[Called(0, claimed_us * 1000, 1_100_000, 0, 1_000_000)] * 30)
    assert honest_clock(samples, 2, 100_000.0).ok is held


def test_time_without_a_core_is_nobodys_fault() -> None:
    """Of 5 ms seen the system counts 4 ms of waiting: 0.9 ms claimed are believed.

    Threads that keep each other waiting use the cores meanwhile: 8 ms of processor time on two cores are 4 ms.
    """
    waited = Samples(called=[Called(0, 900_000, 5_000_000, 4_000_000, 1_000_000)] * 30)
    assert honest_clock(waited, 2, 100_000.0).ok
    hiding = Samples(called=[Called(0, 900_000, 5_000_000, 4_000_000, 8_000_000)] * 30)
    assert not honest_clock(hiding, 2, 100_000.0).ok


def test_a_slow_warm_up_is_told_from_a_slow_first_call() -> None:
    """Tables are filled once; 150 ms in every call until the clock starts, and 1 ms from then on, is a trick."""
    assert settled_warm_up(Samples(candidate_ms=[1.0] * 20, warm_up_ms=[400.0, 1.0, 1.1, 0.9, 1.0])).ok
    assert not settled_warm_up(Samples(candidate_ms=[1.0] * 20, warm_up_ms=[150.0] * 5)).ok


def test_torch_is_compared_with_itself() -> None:
    """Half as long again in the second leg is no machine's noise; a hundredth that comes and goes is."""
    assert same_reference(Samples(twins_ms=[(1.0, 1.01), (1.01, 1.0)] * 10)).ok
    check = same_reference(Samples(twins_ms=[(1.0, 1.5), (1.01, 1.51)] * 10))
    assert not check.ok
    assert "the machine does not measure evenly" in check.detail


def test_a_great_speedup_waits_for_a_second_run() -> None:
    """Twenty times, then fifteen: believed. Twenty times, then three: not. Nine times needs no second run."""
    runs = {times: (_case(times),) for times in (20.0, 15.0, 9.0, 3.0)}
    assert (great(runs[20.0]), great(runs[9.0])) == (True, False)
    assert seen_again(runs[20.0], runs[15.0]).ok
    assert not seen_again(runs[20.0], runs[3.0]).ok
    assert not seen_again(runs[20.0], ()).ok


def _case(times: float) -> CaseMeasurement:
    samples = [1.0, 1.0] * 10
    return CaseMeasurement(
        "plain",
        ((1,),),
        summarise(samples),
        summarise([times] * 20),
        0.1,
        ratio([times] * 20, samples),
        ratio(samples, samples),
    )
