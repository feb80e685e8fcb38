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


@pytest.mark.timeout(240)
def test_two_hundred_kills_lose_double_and_tear_nothing():
    """Four threads recording; every acknowledged experience is there once, where it was said to be; the chain holds."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_loop", "200", SEED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"'kills': 200, 'acknowledged': (\d+), 'sent again': (\d+), 'lost': 0, 'doubled': 0", done.stdout)
    assert found, done.stdout
    assert int(found[1]) > 200
    assert int(found[2]) > 50
