"""A real ledger service that a run starts for itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from agent.errors import LedgerStartError
from agent.ledger_process import LedgerProcess
from agent.link import connect
from agent.models.scripted import ScriptedModel
from tests.agent.conftest import LIBRARY, build_loop
from tests.agent.stand_in import StandIn, answer


@pytest.fixture
def process(tmp_path: Path) -> Iterator[LedgerProcess]:
    """A service on a SQLite file of its own."""
    with LedgerProcess(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "ledger.log") as started:
        yield started


def ends(pid: int, seconds: float = 15.0) -> bool:
    """Whether the process is gone within the time."""
    try:
        psutil.Process(pid).wait(seconds)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_ledger_killed_in_the_middle_of_a_run_loses_nothing(process: LedgerProcess) -> None:
    """It is killed while a candidate is judged; the run goes on, with each fact recorded once and the log clean."""
    killed: list[int] = []

    def kill(source: str) -> None:
        pid = process.pid
        if source == "correct 0.8" and pid is not None:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with connect(process.url, actor="tester") as client:
        client.create_library(LIBRARY)
        script = [answer("wrong"), answer("correct 0.8"), answer("correct 0.4")]
        loop = build_loop(client, ScriptedModel(script), StandIn(kill))
        loop.journal.line.sleep = time.sleep
        loop.journal.line.revive = process.revive
        result = loop.develop("gelu")
        assert (result.rounds, result.first_ms, result.best_ms) == (3, 0.8, 0.4)
        assert killed
        assert process.pid not in {None, *killed}
        types = [event.type for event in client.events(LIBRARY)]
        assert types.count("stage.scored") == 2
        assert types.count("stage.candidate_proposed") == 3
        assert types.count("stage.candidate_verified") == 3
        assert client.verify(LIBRARY).ok
        assert client.rederive(LIBRARY).first_difference is None


def test_a_repeated_write_is_stored_once(process: LedgerProcess) -> None:
    """A cost that is sent twice in the same step, as after a lost answer, is one event; in the next round it is another."""
    from agent.journal import Journal
    from agent.port import Usage

    with connect(process.url, actor="tester") as client:
        client.create_library(LIBRARY)
        loop = build_loop(client, ScriptedModel([answer("wrong")]), StandIn(), budget=1)
        loop.develop("gelu")
        journal = Journal(client, LIBRARY)
        before = client.library(LIBRARY).sequence
        for step in ("r7", "r7", "r8"):
            journal.model_cost("run.gelu.correctness", Usage("m", 1, 1, 0.5), step)
        assert client.library(LIBRARY).sequence == before + 2


def test_the_service_is_stopped_at_the_end(tmp_path: Path) -> None:
    """By its process id; the port answers no more."""
    with LedgerProcess(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "ledger.log") as started:
        pid, url = started.pid, started.url
        assert httpx.get(f"{url}/health").is_success
    assert pid is not None
    assert ends(pid)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/health")


def test_a_service_that_can_not_start_says_why(tmp_path: Path) -> None:
    """A database in a folder that is a file: the reason stands in the message, and no process stays behind."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    process = LedgerProcess(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}", tmp_path / "ledger.log")
    with pytest.raises(LedgerStartError, match=r"ledger\.log"):
        process.start()
    assert process.pid is None


@pytest.mark.skipif(sys.platform != "linux", reason="the tether is Linux's parent-death signal")
def test_the_service_does_not_outlive_a_run_that_is_killed(tmp_path: Path) -> None:
    """A run that ends by SIGKILL can stop nothing any more; the service ends all the same."""
    code = (
        "import sys, time; from pathlib import Path; from agent.ledger_process import LedgerProcess\n"
        f"p = LedgerProcess('sqlite:///{tmp_path / 'ledger.db'}', Path('{tmp_path / 'ledger.log'}')); p.start()\n"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pid = int(run.stdout.readline())
    run.stdout.close()
    assert psutil.pid_exists(pid)
    run.kill()
    run.wait()
    assert ends(pid)
