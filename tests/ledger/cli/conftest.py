"""`sagebook …` in this process or in one of its own, on databases that are migrated once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ledger.cli import register
from tests.sources import ROOT

PROGRAM = "import typer; from ledger.cli import register; app = typer.Typer(); register(app); app()"


class Ended:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ended]


def _app() -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)
    return app


# Built once: the runner's own `invoke` would build all commands anew for each call.
COMMAND, RUNNER = typer.main.get_command(_app()), CliRunner()


def called(*words: str, code: int = 0, stdin: bytes | str | None = None) -> Ended:
    """`sagebook …` in this process, which must end with that code."""
    with RUNNER.isolation(input=stdin) as (out, err, _):
        with pytest.raises(SystemExit) as ended:
            COMMAND.main(list(words), prog_name="sagebook")
        found = Ended(int(ended.value.code or 0), out.getvalue().decode(), err.getvalue().decode())
    assert found.code == code, found.err
    assert "Traceback" not in found.err
    return found


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a library: migrating it once is enough."""
    file = tmp_path_factory.mktemp("empty") / "cli.db"
    called("library", "list", "--db", f"sqlite:///{file}")
    return file


@pytest.fixture
def run(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`sagebook …` on a database of the test's own."""
    shutil.copy(empty, tmp_path / "cli.db")
    monkeypatch.setenv("SAGEBOOK_DATABASE_URL", f"sqlite:///{tmp_path}/cli.db")
    return called


def process(*words: str, stdin: bytes = b"", **environment: str) -> Ended:
    """`sagebook …` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def record(**fields: object) -> str:
    return json.dumps(fields) + "\n"


def stage(name: str, operator: str = "gelu", **fields: object) -> str:
    return record(
        **{
            "record": "stage",
            "id": name,
            "task": f"t-{name}",
            "operator": operator,
            "kind": "correctness",
            "retrieved": [],
            "adoptions": [],
            "outcome": {"correct": True},
        }
        | fields
    )


def adoption(experience: str, *, adopted: bool = True, **fields: object) -> dict[str, object]:
    return {"experience": experience, "adopted": adopted, "reason": "fits"} | fields


HOT_AND_COLD = "".join(
    [
        record(record="experience", id="hot", title="Hot"),
        record(record="experience", id="cold", title="Cold"),
        record(record="experience", id="fast", title="Fast", stages=["optimization"]),
        record(record="experience", id="other", title="Other"),
        *(stage(f"s{i}", f"op{i}", retrieved=["hot"], adoptions=[adoption("hot")]) for i in range(3)),
        record(record="rule", experience="hot", text="Pad.", tokens=2),
    ]
)


@pytest.fixture(scope="session")
def filled(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the library `lib`: resident `hot`; cold `cold`, `other` and `fast`."""
    file = tmp_path_factory.mktemp("filled") / "cli.db"
    shutil.copy(empty, file)
    called("import", "lib", "-", "--db", f"sqlite:///{file}", stdin=HOT_AND_COLD)
    return file


@pytest.fixture
def lib(run: Run, filled: Path, tmp_path: Path) -> Run:
    """`sagebook …` on a copy of it."""
    shutil.copy(filled, tmp_path / "cli.db")
    return run
