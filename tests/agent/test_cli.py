"""`sagebook develop` and `sagebook run` as a person uses them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from agent.cli import register
from agent.workbench import DeviceWorkbench
from ledger.bootstrap import embedded_client

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, which scripts/setup installs")
SAGEBOOK = [sys.executable, "-c", "from ledger.command import main; main()"]


def sagebook(home: Path, *arguments: str, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SAGEBOOK, *arguments], env=environment(home), capture_output=True, text=True, timeout=timeout, check=False
    )


def environment(home: Path) -> dict[str, str]:
    folders = {"XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state")}
    return {**os.environ, **folders, "COLUMNS": "200"}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A wrong kernel, then the expert's."""
    expert = DeviceWorkbench().expert("add")
    assert expert is not None
    lines = [
        {"source": "int x = ;", "change": "draft", "hypothesis": "none"},
        {"source": expert, "change": "layout = fast_path", "hypothesis": "the expert's"},
    ]
    path = tmp_path / "script.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


@needs_compiler
def test_develop_prints_data_to_standard_output_alone(tmp_path: Path, script: Path) -> None:
    """The summary is JSON on standard output; the rounds go to standard error as plain lines."""
    done = sagebook(tmp_path, "develop", "add", "--model", "scripted", "--script", str(script), "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["attempted"], summary["solved"], summary["execution_rate"]) == (1, 1, 1.0)
    assert summary["operators"][0]["rounds"] == 2
    assert summary["verify"]["clean"]
    assert summary["rederive"]["clean"]
    assert "1/30 correctness  compile error" in done.stderr
    assert "\x1b[" not in done.stderr


def recorded(home: Path) -> list[str]:
    """Types of all events of the library that a run made."""
    with embedded_client(f"sqlite:///{home / 'data' / 'sagebook' / 'ledger.db'}") as client:
        return [event.type for event in client.events("circle")]


@needs_compiler
def _takes_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_run_continues_and_repeats_nothing(tmp_path: Path) -> None:
    """Ctrl-C ends with 130 and the way to go on; the same command then finishes, and the ledger's process is gone."""
    arguments = ["run", "--operators", "gelu", "--budget", "2", "--minutes", "0", "--seed", "5"]
    running = subprocess.Popen(
        [*SAGEBOOK, *arguments],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background hands down that Ctrl-C is ignored.
        preexec_fn=_takes_interrupts,  # noqa: PLW1509 - the test has no other thread
    )
    assert running.stderr is not None
    told: list[str] = []
    for line in running.stderr:
        told.append(line)
        if line.lstrip().startswith("1/2"):
            break
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130, "".join(told) + rest
    assert "run the same command again" in rest

    done = sagebook(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert "continued after round" in done.stderr
    for part in (
        "solved of attempted",
        "median self-acceleration",
        "resident rules",
        "verify:   clean",
        "rederive: clean",
    ):
        assert part in done.stdout
    assert "sagebook state circle" in done.stdout
    assert "\nwhy " in done.stdout
    types = recorded(tmp_path)
    assert types.count("task.started") == 1
    assert types.count("stage.candidate_proposed") == 2
    assert types.count("stage.scored") == 2

    again = sagebook(tmp_path, *arguments, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["operators"][0]["rounds"] == 2
    assert "finished before" in again.stderr
    assert recorded(tmp_path) == types


def invoke(*arguments: str) -> Result:
    """The agent's commands in this process."""
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["develop", "sofmax"], "softmax"),
        (["develop", "gelu", "--model", "chat"], "--base-url"),
        (["develop", "gelu", "--model", "chat", "--base-url", "http://127.0.0.1:9/v1"], "--model-name"),
        (["develop", "gelu", "--model", "oracle"], "search, chat or scripted"),
        (["develop", "gelu", "--model", "scripted"], "--script"),
        (["develop", "gelu", "--model", "scripted", "--script", "nowhere.jsonl"], "nowhere.jsonl"),
        (["develop", "gelu", "--mode", "lenient"], "hardened or paper"),
        (["develop", "gelu", "--policy", "sagee"], "did you mean 'sage'?"),
        (["run", "--operators", "gelu,nothing"], "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_wrong_setting_ends_with_its_name_and_code_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    """No traceback; the message holds the setting and what would be right; no library was created."""
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    done = invoke(*arguments, "--db", database)
    assert done.exit_code == 2
    assert said in done.stderr
    with embedded_client(database) as client:
        assert client.libraries() == []


def test_a_ledger_that_is_not_there_ends_with_code_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is in the message."""
    monkeypatch.setattr("ledger.client._RETRIES", 0)
    done = invoke("develop", "gelu", "--server", "http://127.0.0.1:9", "--patience", "0.1")
    assert done.exit_code == 6
    assert "127.0.0.1:9" in done.stderr
    assert "run the same command again" in done.stderr
