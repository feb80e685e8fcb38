"""A disk that is full, that fails to sync, or that loses its power: nothing acknowledged is lost, nothing false is said."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.store import chain
from ledger.store.log import AnySequence
from ledger.store.sql import open_log
from tests.ledger.store.test_sql import draft

SOURCE = Path(__file__).with_name("disk.cpp")
WRITER = """
import sys, msgspec
from ledger.errors import StoreUnavailableError
from ledger.store.log import AnySequence, NewLibrary, Draft
from ledger.store.sql import open_log
log = open_log(sys.argv[1])
log.hold("here")
def draft(n, of):
    return Draft("test.happened", 1, f"{n}", "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"[%d,%d]" % (n, of)))
refused = 0
for number in range(int(sys.argv[2])):
    size = 1 + number % 4
    try:
        expected = AnySequence() if log.head("lib").sequence else NewLibrary()
        head = log.append("lib", [draft(n, size) for n in range(size)], expected=expected)
        print(head.sequence, flush=True)
    except StoreUnavailableError as error:
        refused += 1
        print("refused", str(error).replace(chr(10), " "), flush=True)
        if refused == 3:
            break
"""
# What `FULL` is for: the same without it, which must lose what it acknowledged.
CARELESS = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("PRAGMA journal_mode=WAL"); c.execute("PRAGMA synchronous=NORMAL"); c.execute("PRAGMA wal_autocheckpoint=20")
c.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)")
for n in range(1, 200):
    c.execute("INSERT INTO t VALUES (?)", (n,)); print(n, flush=True)
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim, built."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ to build the disk that fails")
    built = tmp_path_factory.mktemp("disk") / "disk.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", str(built), str(SOURCE), "-ldl"], check=True, timeout=120)
    return built


def run(disk: Path, script: str, *arguments: str, **faults: int) -> tuple[int, list[int], list[str]]:
    """Run a writer on that disk: exit code, sequences that it acknowledged, what it was refused with."""
    environment = {**os.environ, "LD_PRELOAD": str(disk), "SHIM_FILES": "ledger.db"}
    environment |= {f"SHIM_{name.upper()}": str(value) for name, value in faults.items()}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    acknowledged = [int(line) for line in lines if line.isdigit()]
    refused = [line for line in lines if line.startswith("refused")]
    assert done.returncode in {0, 99}, done.stderr
    return done.returncode, acknowledged, refused


def check(path: Path, acknowledged: int) -> int:
    """Open the file as any start does: all acknowledged are there, no batch is torn, the chain holds, it goes on."""
    log = open_log(f"sqlite:///{path}")
    log.hold("here")
    verdict = chain.audit(log, "lib")
    assert verdict.ok, verdict.reason
    assert verdict.events >= acknowledged
    marks = [
        row.record.rsplit(b'"payload":', 1)[1].rstrip(b"}") for row in log.read("lib") if b"test.happened" in row.record
    ]
    while marks:
        size = int(marks[0].split(b",")[1].rstrip(b"]")) if marks[0].startswith(b"[") else 1
        assert len({mark.split(b",")[-1] for mark in marks[:size]}) == 1
        assert len(marks) >= size
        del marks[:size]
    if verdict.events:
        assert log.append("lib", [draft(1)], expected=AnySequence()).sequence == verdict.events + 1
    log.close()
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()
    return verdict.events


@pytest.mark.parametrize("torn", [0, 1])
def test_a_power_cut_before_any_sync_loses_nothing_acknowledged(disk: Path, tmp_path: Path, torn: int):
    """Six cuts, each before another sync, on one file; what was not synced is dropped, or its first write torn."""
    rng = random.Random(20261201 + torn)
    path = tmp_path / "ledger.db"
    open_log(f"sqlite:///{path}").close()
    cuts = acknowledged = 0
    for _ in range(6):
        code, seen, refused = run(disk, WRITER, f"sqlite:///{path}", "400", power=rng.randint(2, 30), torn=torn)
        cuts += code == 99
        assert refused == []
        acknowledged = max([acknowledged, *seen])
        acknowledged = check(path, acknowledged) + 1 if acknowledged else 0
    assert cuts == 6
    assert acknowledged > 30


def test_the_same_cut_shows_what_a_careless_writer_loses(disk: Path, tmp_path: Path):
    """The test can fail: without a sync at each commit, rows that were acknowledged are gone after some cut."""
    lost = []
    for power in (5, 6, 7):
        path = tmp_path / f"{power}.ledger.db"
        code, seen, _ = run(disk, CARELESS, str(path), power=power)
        assert code == 99
        with sqlite3.connect(path) as raw:
            made = raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            left = raw.execute("SELECT count(*) FROM t").fetchone()[0] if made else 0
        raw.close()
        lost.append(max(seen) - left)
    assert max(lost) > 3


def test_after_a_failed_sync_nothing_more_is_acknowledged(disk: Path, tmp_path: Path):
    """The append is refused, and so is each that follows, until a restart, which needs no repair."""
    path = tmp_path / "ledger.db"
    open_log(f"sqlite:///{path}").close()
    code, seen, refused = run(disk, WRITER, f"sqlite:///{path}", "400", fail=12)
    assert code == 0
    assert len(refused) == 3
    assert "nothing of this request is acknowledged" in refused[0]
    assert all("until a restart" in line for line in refused[1:])
    events = check(path, max(seen))
    # The batch whose sync failed may have come through; it was never acknowledged.
    assert max(seen) <= events <= max(seen) + 4


def test_a_full_disk_refuses_and_keeps_what_was_acknowledged(disk: Path, tmp_path: Path):
    """Three refusals that name the reason; a start with space goes on without repair."""
    path = tmp_path / "ledger.db"
    open_log(f"sqlite:///{path}").close()
    code, seen, refused = run(disk, WRITER, f"sqlite:///{path}", "4000", space=300_000)
    assert (code, len(refused)) == (0, 3)
    assert all("full" in line or "I/O" in line for line in refused)
    assert len(seen) > 10
    assert check(path, max(seen)) == max(seen)
