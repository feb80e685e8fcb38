"""Killing the writer loses nothing that it acknowledged."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.store import chain
from ledger.store.sql import open_log

WRITER = """
import sys, msgspec
from ledger.store.log import AnySequence, AtSequence, Draft
from ledger.store.sql import open_log
log = open_log(sys.argv[1])
while True:
    head = log.head("lib").sequence
    size = 1 + head // 3 % 4
    drafts = [
        Draft("test.happened", 1, f"{head}-{i}", "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"[%d,%d]" % (i, size)))
        for i in range(size)
    ]
    print(log.append("lib", drafts, expected=AtSequence(head)).sequence, flush=True)
"""


@pytest.mark.timeout(120)
def test_no_acknowledged_event_is_lost_when_the_writer_is_killed(tmp_path: Path):
    """Six rounds of kill -9 at random moments: all acknowledged are there, no batch is torn, the chain holds."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    rng = random.Random(20261201)
    acknowledged = 0
    for _ in range(6):
        child = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        acknowledged = max(acknowledged, int(next(line for line in child.stdout if line.strip().isdigit())))
        time.sleep(rng.uniform(0.0, 0.15))
        child.send_signal(signal.SIGKILL)
        lines = [line for line in child.stdout.read().splitlines() if line.strip().isdigit()]
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        acknowledged = max([acknowledged, *map(int, lines)])
        log = open_log(url)
        verdict = chain.audit(log, "lib")
        assert verdict.ok, verdict.reason
        assert acknowledged <= verdict.events <= acknowledged + 4
        marks = [row.record.rsplit(b'"payload":', 1)[1].rstrip(b"}") for row in log.read("lib")]
        while marks:
            size = int(marks[0].split(b",")[1].rstrip(b"]"))
            assert marks[:size] == [b"[%d,%d]" % (i, size) for i in range(size)]
            del marks[:size]
        log.close()
    assert acknowledged > 12
