"""Importing a module does nothing, and the command line loads only what a command needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.sources import ROOT, modules

# Each costs a tenth of a second or more, which `--help` has no use for.
HEAVY = (
    "torch",
    "torch_npu",
    "sqlalchemy",
    "alembic",
    "fastapi",
    "uvicorn",
    "openai",
    "numpy",
    "bm25s",
    "httpx",
    "pydantic",
)

# Runs in a process of its own, and prints what the imports did as JSON.
WATCH = """
import importlib, json, sys, threading
effects, names = [], json.loads(sys.argv[1])
WRITES = {"os.mkdir", "os.remove", "os.rename", "os.symlink", "os.chmod", "os.truncate", "shutil.rmtree"}
STARTS = {"subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system", "_thread.start_new_thread"}
REACHES = {"socket.connect", "socket.bind", "socket.getaddrinfo", "sqlite3.connect"}
current = None
def hook(event, args):
    if current is None:
        return
    if event == "open":
        path, mode = str(args[0]), args[1] or ""
        if any(letter in mode for letter in "wax+") and "__pycache__" not in path and path != "/dev/null":
            effects.append([current, f"writes {path}"])
    elif event in WRITES | STARTS | REACHES:
        if "__pycache__" not in str(args[0] if args else ""):
            effects.append([current, event])
sys.addaudithook(hook)
for name in names:
    current = name
    importlib.import_module(name)
current = None
print(json.dumps({"effects": effects, "threads": threading.active_count(), "loaded": sorted(sys.modules)}))
"""


def _watched(names: list[str]) -> dict[str, list[str] | int]:
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", WATCH, json.dumps(names)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"importing printed: {lines[:-1]}"
    assert done.stderr == "", f"importing wrote to standard error: {done.stderr}"
    return json.loads(lines[0])


def test_importing_any_module_does_nothing() -> None:
    """No file, process, thread, connection or line of output: settings are read and work begins when something is called."""
    # What third parties do when they are first loaded is not ours, so they are loaded before the watch begins.
    names = [name for name in modules() if not name.endswith("__main__")]
    warm = _watched([])["loaded"]
    third_parties = sorted({name for name in _watched(names)["loaded"] if name not in warm and not _is_ours(name)})
    seen = _watched([*_importable(third_parties), *names])
    assert [effect for effect in seen["effects"] if _is_ours(effect[0])] == []
    assert seen["threads"] == 1


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in {"ledger", "agent", "device", "migrations"}


def _importable(names: list[str]) -> list[str]:
    """Top-level names suffice: a package is loaded before what is in it."""
    return [name for name in names if "." not in name and not name.startswith("_")]


@pytest.fixture(scope="module")
def help_run() -> dict[str, object]:
    """`sagebook --help` in a process of its own, and the modules it had loaded at its end."""
    code = (
        "import sys, json\nsys.argv = ['sagebook', '--help']\nfrom ledger.command import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    status = stop.code\nelse:\n    status = 0\n"
        "print(json.dumps([status or 0, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
    )  # fmt: skip
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    status, loaded = json.loads(done.stderr.splitlines()[-1])
    return {"status": status, "loaded": set(loaded), "stdout": done.stdout, "seconds": seconds}


def test_help_answers(help_run: dict[str, object], record_property: pytest.FixtureRequest) -> None:
    """The list of commands comes on standard output with status 0. Its time is reported, not judged: cores are shared."""
    record_property("help_seconds", f"{help_run['seconds']:.2f}")
    assert help_run["status"] == 0
    for command in ("serve", "run", "why", "verify", "rederive", "device"):
        assert command in str(help_run["stdout"])


@pytest.mark.parametrize("heavy", HEAVY)
def test_help_does_not_load(heavy: str, help_run: dict[str, object]) -> None:
    """An answer in under 0.4 s leaves no room for these."""
    assert heavy not in help_run["loaded"]
