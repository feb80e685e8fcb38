"""The time step: fair, complete, and not to be lied to."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from device import Limits, plausible, timing
from device.operators.base import Case, Operator, TensorSpec
from device.timed import TimedCase
from device.types import Ratio
from tests.device.conftest import Judge
from tests.device.small import double_reference, kernel

if TYPE_CHECKING:
    from torch import Tensor

FORGE = """
    timespec w; clock_gettime(CLOCK_MONOTONIC, &w);
    const int64_t start = w.tv_sec * 1000000000LL + w.tv_nsec;
    int64_t now = start;
    while (now - start < 2000000) { clock_gettime(CLOCK_MONOTONIC, &w); now = w.tv_sec * 1000000000LL + w.tv_nsec; }
    volatile int64_t *p = (volatile int64_t *)__builtin_frame_address(0);
    for (int i = 0; i < 200; ++i) if (p[i] <= start && start - p[i] < 1000000) p[i] = now - 1000;
"""
"""Works for 2 ms, then looks on the stack for the time at which the worker noted the start, and moves it to the end."""

BIG = Operator(
    name="double_big",
    level=1,
    family="elementwise",
    summary="y = 2 x",
    cases=(Case("plain", (TensorSpec((64, 1024)),), timed=True), Case("other", (TensorSpec((33, 1000)),), timed=True)),
    reference=double_reference,
    baseline=double_reference,
    outputs=lambda case: (TensorSpec(case.inputs[0].shape),),
    hidden_cases=lambda _: (),
    accumulation=lambda _: 1,
)


def test_both_sides_are_measured_and_the_samples_kept(judge: Judge) -> None:
    """100 samples a side after 5 of warm-up; the summary is that of the samples, the geometric mean that of the cases."""
    data = judge(kernel(), BIG, measure=True).data
    assert data["outcome"] == "correct", data["summary"]
    measure = data["measure"]
    assert (measure["warm_up"], measure["timed"]) == (5, 100)
    assert [case["case"] for case in measure["cases"]] == ["plain", "other"]
    for case in measure["cases"]:
        for side in (case["candidate"], case["reference"]):
            samples = side["samples_ms"]
            assert len(samples) == 100
            assert all(0 < sample < 1000 for sample in samples)
            assert side["mean_ms"] == pytest.approx(statistics.fmean(samples))
            assert side["median_ms"] == pytest.approx(statistics.median(samples))
            assert side["min_ms"] == min(samples)
            assert side["std_ms"] == pytest.approx(statistics.stdev(samples))
        assert case["speedup"] == pytest.approx(case["reference"]["mean_ms"] / case["candidate"]["mean_ms"])
        assert case["noise_ms"] > 0
    means = [case["candidate"]["mean_ms"] for case in measure["cases"]]
    assert measure["latency_ms"] == pytest.approx(math.sqrt(means[0] * means[1]))
    assert measure["speedup"] == pytest.approx(measure["reference_ms"] / measure["latency_ms"])
    assert measure["cases"][0]["shapes"] == [[64, 1024], [64, 1024]]


def test_a_slow_kernel_is_timed_fewer_times_and_the_report_says_so(judge: Judge) -> None:
    """At 60 ms a call a hundred would take six seconds: about 2 s / 60 ms = 33 are taken."""
    data = judge(
        kernel("if (n * m == 256) usleep(60000);\n", includes="#include <unistd.h>\n"), measure=True, limits=Limits()
    ).data
    assert data["outcome"] == "correct", data["summary"]
    case = data["measure"]["cases"][0]
    assert data["measure"]["timed"] == len(case["candidate"]["samples_ms"]) == len(case["reference"]["samples_ms"])
    assert 20 <= data["measure"]["timed"] <= 33  # 2 s / 60 ms
    assert 60 < case["candidate"]["min_ms"] < 80


def test_a_clock_that_is_set_back_is_not_believed(judge: Judge) -> None:
    """A kernel that moves the worker's own notes claims a microsecond for two milliseconds: the judge's clock saw them."""
    data = judge(kernel(FORGE, includes="#include <time.h>\n"), measure=True).data
    assert data["outcome"] == "refused", data["summary"]
    assert "clocks agree" in data["summary"]
    assert data["measure"] is None
    assert data["verify"]["ok"] is False


@pytest.mark.parametrize("after", [12, 60])
def test_a_kernel_that_stops_working_when_it_is_timed_is_wrong(after: int, judge: Judge) -> None:
    """Real work in the first calls of a process, none later: each timed call has fresh inputs and its own look."""
    skip = f"static int calls; if (++calls > {after} + 24) return 0;\n"
    data = judge(kernel(skip), measure=True).data
    assert data["outcome"] == "wrong"
    assert "timed call" in data["summary"]


def test_a_stored_answer_is_stale_in_a_timed_call(judge: Judge) -> None:
    """Replaying the output of the first call at an address, once that address has come by often."""
    replay = """
    static float store[16][256]; static void *seen[16]; static int count[16]; static int used;
    if (n * m == 256) {
        int k = 0; while (k < used && seen[k] != x.data) ++k;
        if (k == used && used < 16) seen[used++] = x.data;
        if (k < used && ++count[k] > 9) { for (int i = 0; i < 256; ++i) b[i] = store[k][i]; return 0; }
        for (int i = 0; i < 256; ++i) store[k][i] = 2.0f * a[i / m * s + i % m * t];
    }
    """
    data = judge(kernel(replay), measure=True).data
    assert (data["outcome"], "timed call" in data["summary"]) == ("wrong", True), data["summary"]


def test_a_crash_in_a_timed_call_is_a_crash(judge: Judge) -> None:
    """The measurement is then absent, and the report says where it ended."""
    data = judge(kernel("static int calls; if (++calls > 80) __builtin_trap();\n"), measure=True).data
    assert (data["outcome"], data["measure"]) == ("crash", None)
    assert "SIGILL" in data["summary"]
    assert "timed call" in data["summary"]


def test_the_paper_mode_keeps_its_inputs(judge: Judge) -> None:
    """Same inputs in each call, the benchmark's rule, visible cases as given."""
    data = judge(kernel(), measure=True, mode="paper").data
    assert (data["judge"]["mode"], data["judge"]["rule"]) == ("paper", "npukernelbench")
    assert (data["outcome"], data["verify"]["cases"]) == ("correct", 3)
    assert data["measure"]["timed"] == 100


def test_noise_is_the_half_width_of_the_interval_of_the_mean() -> None:
    """Samples 1 and 3 in turn: mean 2, deviation sqrt(100/99), t(99) = 1.9842; all ten block means are equal."""
    samples = [1.0, 3.0] * 50
    assert timing.noise(samples) == pytest.approx(1.9842 * math.sqrt(100 / 99) / 10, rel=1e-4)


def test_noise_sees_a_machine_that_drifts() -> None:
    """Ten blocks with means 0.5, 1.5 ... 9.5 (deviation 3.0277): 2.2622 * 3.0277 / sqrt(10) = 2.166."""
    samples = [float(block) + (0.25 if i % 2 else 0.75) for block in range(10) for i in range(10)]
    assert timing.noise(samples) == pytest.approx(2.2622 * 3.02765 / math.sqrt(10), rel=1e-3)


@pytest.mark.parametrize(("freedom", "quantile"), [(9, 2.262157), (19, 2.093024), (99, 1.984217), (100000, 1.959988)])
def test_students_quantile(freedom: int, quantile: float) -> None:
    """Against the printed table."""
    assert timing.student(freedom) == pytest.approx(quantile, rel=3e-5)


@pytest.mark.parametrize(
    ("seconds", "budget", "count"),
    [(0.001, 2.0, 100), (0.02, 2.0, 100), (0.04, 2.0, 50), (1.0, 2.0, 20), (0.02, 1.0, 50)],
)
def test_how_many_samples_are_taken(seconds: float, budget: float, count: int) -> None:
    """As many as fit, at most 100, at least 20."""
    assert timing.planned(seconds, budget) == count


def test_the_geometric_mean_of_1_and_4_is_2() -> None:
    """Each case counts alike, whatever its size."""
    assert timing.geometric([1.0, 4.0]) == pytest.approx(2.0)


def test_work_done_before_the_clock_starts_is_refused(judge: Judge) -> None:
    """A helper thread that sees fresh inputs appear, and computes before the call comes, uses time between the calls."""
    includes = """#include <thread>
#include <unistd.h>
static float *from[16], *to[16];
static volatile int known;
static void help() {
    for (;;) { usleep(20); for (int k = 0; k < known; ++k) for (int i = 0; i < 256; ++i) to[k][i] = 2.0f * from[k][i]; }
}
"""
    ahead = """
    static int calls; static std::thread *helper;
    if (n * m == 256 && ++calls > 40) {
        if (!helper) helper = new std::thread(help);
        int k = 0; while (k < known && to[k] != b) ++k;
        if (k < known) return 0;
        if (k < 16) { from[k] = const_cast<float *>(a); to[k] = b; known = k + 1; }
    }
    for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < m; ++j) b[i * m + j] = 2.0f * a[i * s + j * t];
    return 0;"""
    data = judge(kernel(includes=includes, after=ahead), measure=True).data
    assert data["outcome"] in {"refused", "wrong"}, data["summary"]
    assert data["measure"] is None


@pytest.mark.parametrize(("shared", "own"), [(0.0, 0.0), (0.95, 0.0), (0.95, 0.3)])
def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says(shared: float, own: float) -> None:
    """Two sides of one cost, with outliers, on a machine that is slow for a while, for both or for one: 95 % hold 1."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(1000):
        slow, lasting = np.zeros((50, 1)), np.zeros((50, 2))
        for turn in range(1, 50):
            slow[turn] = shared * slow[turn - 1] + 0.05 * rng.standard_normal(1)
            lasting[turn] = own * lasting[turn - 1] + 0.1 * rng.standard_normal(2)
        samples = np.exp(slow + lasting + 1.0 * (rng.random((50, 2)) < 0.04))
        found = timing.ratio(samples[:, 0].tolist(), samples[:, 1].tolist())
        assert found.low < found.value < found.high
        held += found.low <= 1.0 <= found.high
    assert held >= 950


def test_a_ratio_that_is_not_1_is_told_from_1() -> None:
    rng = np.random.default_rng(2)
    ours, theirs = np.exp(0.05 * rng.standard_normal((2, 100)))
    found = timing.ratio((1.1 * theirs).tolist(), ours.tolist())
    assert 1.0 < found.low < 1.1 < found.high < 1.2
    assert found.pairs == 100


def test_ratios_of_cases_make_one() -> None:
    """The geometric mean of 2 and 8 is 4; of two equal half-widths in the logarithm 1 / sqrt(2) is left."""
    one = timing.combined([Ratio(2.0, 1.0, 4.0, 30), Ratio(8.0, 4.0, 16.0, 20)])
    assert one.value == pytest.approx(4.0)
    assert one.high == pytest.approx(4.0 * 2.0 ** math.sqrt(0.5))
    assert one.low * one.high == pytest.approx(16.0)
    assert one.pairs == 20


@pytest.mark.parametrize(("timed", "twins"), [(100, 50), (40, 40), (20, 20)])
def test_every_order_comes_equally_often(timed: int, twins: int) -> None:
    """At least 20 turns in which torch runs against itself; no order of the sides comes twice before all have come."""
    order = timing.Order(np.random.default_rng(1))
    turns = [order.legs(turn, timed) for turn in range(timing.WARM_UP, timing.WARM_UP + timed)]
    three = [legs for legs in turns if "twin" in legs]
    assert len(three) == twins
    assert {tuple(sorted(legs)) for legs in turns} <= {("candidate", "reference"), ("candidate", "reference", "twin")}
    for begin in range(0, twins - 5, 6):
        assert len(set(three[begin : begin + 6])) == 6
    sides = Counter(legs.index("candidate") < legs.index("reference") for legs in turns)
    assert abs(sides[True] - sides[False]) <= 3


def test_chance_says_which_order_comes_when() -> None:
    """Two measurements draw differently, and what follows on an order is no order's own."""
    first, second = (
        [timing.Order(np.random.default_rng(seed)).legs(turn, 20) for turn in range(5, 25)] for seed in (1, 2)
    )
    assert first != second
    order = timing.Order(np.random.default_rng(3))
    drawn = [order.legs(turn, 20) for turn in range(5, 305)]
    followers = {legs: {after for before, after in itertools.pairwise(drawn) if before == legs} for legs in set(drawn)}
    assert all(len(after) >= 5 for after in followers.values())


def test_the_machines_conditions_are_in_the_report(judge: Judge) -> None:
    """Load and frequency before and after, the speedup's interval, and torch against itself, case by case."""
    measure = judge(kernel(), BIG, measure=True).data["measure"]
    assert set(measure["conditions"]) == {"before", "after"}
    for told in measure["conditions"].values():
        assert told["load"] >= 0.0
        assert told["mhz"] is None or 0.0 < told["mhz"][0] <= told["mhz"][1] <= told["mhz"][2]
    for part in (measure, *measure["cases"]):
        low, high = part["speedup_interval"]
        assert low < part["speedup"] < high
    for case in measure["cases"]:
        low, high = case["itself"]["interval"]
        assert low <= 1.0 <= high
        assert case["itself"]["pairs"] >= 20
        assert 1 <= case["itself"]["tries"] <= plausible.ITSELF_TRIES


def test_a_machine_that_measures_unevenly_is_named(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that is slower the second time in a turn, every time: no speedup is told, and the kernel stays right."""
    whole, turns = TimedCase.time_reference, itertools.count()

    def uneven(self: TimedCase, number: int, timer: timing.Timer) -> float:
        took = whole(self, number, timer)
        return took * 100.0 if next(turns) % 2 else took

    monkeypatch.setattr(plausible, "ITSELF_TRIES", 2)
    monkeypatch.setattr(TimedCase, "time_reference", uneven)
    monkeypatch.setattr(timing.Order, "legs", lambda _self, _turn, _timed: ("candidate", "reference", "twin"))
    data = judge(kernel(), BIG, measure=True).data
    assert data["outcome"] == "correct"
    assert data["verify"]["ok"]
    assert "not measured: torch against itself came out as 0.0" in data["summary"]
    checks = {check["name"]: check["ok"] for check in data["verify"]["checks"]}
    assert not checks["torch agrees with itself"]
    assert data["measure"] is None


def _pair(x: Tensor) -> tuple[Tensor, ...]:
    """A large and a small output of one shape."""
    return (x * 1000, x * 0.001)


PAIR = replace(
    BIG,
    name="pair",
    cases=(Case("plain", (TensorSpec((8, 32)),), timed=True),),
    reference=_pair,
    baseline=_pair,
    outputs=lambda case: (TensorSpec(case.inputs[0].shape), TensorSpec(case.inputs[0].shape)),
)


@pytest.mark.parametrize(("late", "outcome"), [("0.0f", "correct"), ("1e-6f", "wrong")])
def test_each_output_of_a_timed_call_has_its_own_size(judge: Judge, late: str, outcome: str) -> None:
    """An error of 1e-6 is nothing to numbers of 1000, and a thousandth of numbers of 0.001, late in the row of calls."""
    after = f"""
    float *c = static_cast<float *>(out[1].data);
    static int calls = 0;
    const float off = ++calls > 150 ? {late} : 0.0f;
    for (int64_t i = 0; i < n * m; ++i) b[i] = a[i] * 1000.0f, c[i] = a[i] * 0.001f + off;
    return 0;"""
    data = judge(kernel(after=after), PAIR, measure=True).data
    assert data["outcome"] == outcome, data["summary"]
    assert ("output 1 of a timed call" in data["summary"]) == (outcome == "wrong")


def test_what_is_no_number_on_both_sides_agrees(judge: Judge) -> None:
    """NaN for NaN is right in a timed call, and a number for NaN is not."""
    nans = replace(BIG, name="nans", cases=(Case("plain", (TensorSpec((8, 32), values="nans"),), timed=True),))
    data = judge(kernel(), nans, measure=True).data
    assert data["outcome"] == "correct", data["summary"]
    after = """
    static int calls = 0;
    const bool late = ++calls > 150;
    for (int64_t i = 0; i < n * m; ++i) b[i] = late && a[i] != a[i] ? 0.0f : 2.0f * a[i];
    return 0;"""
    data = judge(kernel(after=after), nans, measure=True).data
    assert data["outcome"] == "wrong"
    assert "output 0 of a timed call" in data["summary"]
