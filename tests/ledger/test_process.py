"""`sagebook serve` as a process of its own: killed in the middle of writes, started again, nothing acknowledged lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from tests.sources import ROOT

PROGRAM = "import typer; from ledger.cli import register; app = typer.Typer(); register(app); app()"
WRITERS = 4
EACH = 15


class Service:
    """One `sagebook serve`."""

    def __init__(self, database: Path | str, port: int = 0) -> None:
        """`database`: a SQLite file, or a URL."""
        url = database if isinstance(database, str) else f"sqlite:///{database}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", "--db", url, "--port", str(port)],
            cwd=ROOT,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.match(r"ledger on (http://127\.0\.0\.1:(\d+)), database (?:sqlite|postgresql)", line)
            if found:
                self.url, self.port = found[1], int(found[2])
                return
        raise AssertionError(f"the service ended with {self.process.wait()} before it listened")

    def end(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        """End it and give its exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(timeout=30)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services on the test's database; those still running are ended."""
    started: list[Service] = []

    def start(port: int = 0) -> Service:
        started.append(Service(tmp_path / "ledger.db", port))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.end(signal.SIGKILL)


def test_killed_in_the_middle_of_writes(serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    """Four writers go on over a kill -9: each record of theirs is there once, in order of its acknowledgement, and verifies.

    The clients repeat what was cut under the same key, so what had been stored but not answered is not stored again.
    """
    monkeypatch.setattr("ledger.client._RETRIES", 10)
    service = serve()
    acknowledged: list[str] = []
    killed = threading.Event()
    enough = threading.Event()

    def write(writer: int) -> None:
        with LedgerClient.connect(service.url, actor=f"w{writer}") as client:
            for i in range(EACH):
                made = client.record_experience(
                    "lib", wire.NewExperience(experience=f"{writer}-{i}", title="t", body="b" * 2000)
                )
                acknowledged.append(made.experience)
                if len(acknowledged) >= WRITERS * EACH // 3:
                    enough.set()

    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(write, writer) for writer in range(WRITERS)]
            assert enough.wait(60)
            service.end(signal.SIGKILL)
            before = list(acknowledged)
            killed.set()
            again = serve(service.port)
            for future in running:
                future.result()
        assert again.url == service.url
        assert WRITERS * EACH // 3 <= len(before) < WRITERS * EACH
        events = list(client.events("lib"))
        recorded = [e.payload["experience"] for e in events if e.type == "experience.recorded"]
        assert sorted(recorded) == sorted(f"{w}-{i}" for w in range(WRITERS) for i in range(EACH))
        assert set(before) <= set(recorded)
        assert [e.sequence for e in events] == list(range(1, WRITERS * EACH + 2))
        for writer in range(WRITERS):
            own = [name for name in recorded if name.startswith(f"{writer}-")]
            assert own == [f"{writer}-{i}" for i in range(EACH)]
        verdict = client.verify("lib")
        assert (verdict.ok, verdict.events) == (True, len(events))
        assert client.rederive("lib").first_difference is None


def test_a_stage_goes_on_after_a_kill(serve: Callable[..., Service]) -> None:
    """What was opened, told and decided before the kill is there after it; the score comes from it, once."""
    service = serve()
    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
        client.start_task("lib", wire.NewTask(task="t", operator="gelu", model="m"))
        client.open_stage("lib", "t", wire.NewStage(stage="s", kind="correctness", basis="reported"))
        client.report_outcome("lib", "s", wire.ReportedOutcome(correct=True))
    key = {"Idempotency-Key": "close"}
    service.end(signal.SIGKILL)
    again = serve(service.port)
    with LedgerClient.connect(again.url) as client:
        assert client.task("lib", "t").stages[0].status == "open"
        first = client._http.post("/v1/libraries/lib/stages/s/score", headers=key)
        assert first.json()["score"] == 1.0
    again.end(signal.SIGKILL)
    with LedgerClient.connect(serve(service.port).url) as client:
        assert client._http.post("/v1/libraries/lib/stages/s/score", headers=key).content == first.content
        with pytest.raises(errors.StageClosedError):
            client.score_stage("lib", "s")


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_asked_to(serve: Callable[..., Service], stop: signal.Signals) -> None:
    """An interrupt is no failure, and nothing goes to standard output meanwhile."""
    service = serve()
    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
    assert service.process.stdout is not None
    service.process.send_signal(stop)
    assert service.process.stdout.read() == ""
    assert service.end(stop) in {0, -stop, 128 + stop}


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """It says so and ends; it does not share the port or hang."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "serve", "--db", f"sqlite:///{tmp_path}/x.db", "--port", str(taken.getsockname()[1])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert "in use; choose others by --host and --port" in done.stderr
    assert "Traceback" not in done.stderr
