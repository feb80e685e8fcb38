"""kill -9: see `tests.faults.kill_loop`, which as a script takes any number of kills."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.sources import ROOT

# A change's own seed is fixed, so that red stays red; SAGEBOOK_TEST_SEED tries another.
SEED = os.environ.get("SAGEBOOK_TEST_SEED", "20261201")


def kill_loop(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_loop", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(240)
def test_two_hundred_kills_lose_double_and_tear_nothing():
    """Four threads recording; every acknowledged experience is there once, where it was said to be; the chain holds."""
    done = kill_loop("200", SEED)
    assert done.returncode == 0, done.stderr
    assert "200 of 200 kills, " in done.stderr
    found = re.search(r"'kills': 200, 'acknowledged': (\d+), 'sent again': (\d+), 'lost': 0, 'doubled': 0", done.stdout)
    assert found, done.stdout
    assert int(found[1]) > 200
    assert int(found[2]) > 50


def test_a_stopped_run_goes_on_where_it_said():
    """Kills that were done are left out; a place inside a file is refused, since its kills belong together."""
    done = kill_loop("203", SEED, "200")
    assert done.returncode == 0, done.stderr
    assert "203 of 203 kills, " in done.stderr
    assert re.search(r"'kills': 3, 'acknowledged': \d+, ", done.stdout), done.stdout
    assert "no multiple of 200" in kill_loop("400", SEED, "30").stderr
