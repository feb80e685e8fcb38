"""The benchmarks' own arithmetic, and the runner's answers to a person's slips."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.measure import Measurement, timed
from tests.sources import ROOT


def test_a_row_reads_its_samples_right() -> None:
    """Of 20 samples 1..20 ms: the median is 10.5, the 19th is not exceeded by 95 %, and 5 items take 10.5 ms."""
    row = Measurement("n", "w", tuple(float(i) for i in range(20, 0, -1)), items=5)
    assert row.median_ms == 10.5
    assert row.p95_ms == 19.0
    assert row.items_per_second == pytest.approx(476.19047619)


def test_one_sample_is_its_own_median_and_p95() -> None:
    """Nearest rank needs no special case."""
    row = Measurement("n", "w", (2.0,))
    assert (row.median_ms, row.p95_ms, row.items_per_second) == (2.0, 2.0, 500.0)


def test_warm_up_calls_are_not_kept() -> None:
    """Three warm-up calls, then as many samples as asked for; no index comes twice."""
    calls: list[int] = []
    row = timed("n", "w", calls.append, times=4)
    assert calls == [0, 1, 2, 3, 4, 5, 6]
    assert len(row.samples_ms) == 4


def test_an_unknown_benchmark_is_named() -> None:
    """The answer lists what there is, with a usage error's status."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonesuch"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "no such benchmark: nonesuch; there are " in done.stderr
    assert "ledger_service" in done.stderr
