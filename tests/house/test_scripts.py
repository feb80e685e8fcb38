"""The scripts stand alone: what a bare machine lacks is installed or named, and a second call does nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sources import ROOT, relative, tracked

NAMES = {"setup", "run", "test", "lint", "bench", "serve", "hostile"}
# What a minimal Debian has: the coreutils and friends that the set-up calls, no compiler.
TOOLS = ("bash", "dirname", "sha256sum", "cut", "cat", "sed", "mkdir", "flock", "grep", "tr", "tail", "rm", "mv", "tee")


def _shell_files() -> list[Path]:
    return [path for path in tracked() if relative(path).startswith(("scripts/", ".ci/"))]


def test_scripts_are_the_promised_ones() -> None:
    """The README and the Makefile promise these seven."""
    assert {path.name for path in _shell_files() if path.parent.name == "scripts"} == NAMES


@pytest.mark.parametrize("path", _shell_files(), ids=relative)
def test_a_script_can_be_run_and_parsed(path: Path) -> None:
    """Executable, strict about failures, and free of syntax errors in branches that no test enters."""
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", path], check=True, timeout=30)


def test_make_forwards_the_same_names() -> None:
    """With make absent nothing is lost: it has no name of its own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.search(r"^names := (.*)$", makefile, re.MULTILINE)
    assert names is not None
    assert set(names[1].split()) == NAMES


def test_the_continuous_check_runs_tests_and_lint() -> None:
    """What lands was tested by the same scripts that a developer calls."""
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert {"scripts/test", "scripts/lint"} <= set(text.split())


class Machine:
    """A copy of what the set-up reads, and a PATH that has only chosen commands."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "a project"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("pyproject.toml", "constraints.txt", "constraints-npu.txt", "scripts/setup"):
            shutil.copy(ROOT / name, self.root / name)
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        self.calls = tmp_path / "calls"
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, f"{tool} is in every Debian image"
            (self.bin / tool).symlink_to(found)

    def command(self, name: str, script: str) -> None:
        """Put a command on the machine."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def setup(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Call the set-up as a person on this machine would."""
        return subprocess.run(
            [self.root / "scripts/setup"], cwd="/", env={"PATH": str(self.bin), **environment},
            capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with apt-get and a python3 that lacks ensurepip, as Debian's minimal image has it."""
    made = Machine(tmp_path)
    made.command("python3", 'case "$*" in *ensurepip*) exit 1 ;; *version_info*) exit 0 ;; esac; exit 3')
    made.command("apt-get", f'echo "$*" >> "{made.calls}"; exit 100')
    return made


def test_without_root_the_one_command_is_printed(machine: Machine) -> None:
    """Nothing is installed and nothing half-made is left; the printed command names all that is missing."""
    machine.command("id", "echo 1000")
    result = machine.setup()
    assert result.returncode == 1
    assert 'sudo sh -c "apt-get update && apt-get install -y --no-install-recommends python3-venv g++' in result.stderr
    assert not machine.calls.exists()
    assert not (machine.root / ".venv").exists()
    assert result.stdout == ""


def test_with_root_what_is_missing_is_installed(machine: Machine) -> None:
    """One update, then one install; an apt-get that fails is reported with its command."""
    machine.command("id", "echo 0")
    result = machine.setup()
    update, install = machine.calls.read_text(encoding="utf-8").splitlines()
    assert update == "-qq update"
    assert install.startswith("-qq install -y --no-install-recommends python3-venv g++")
    assert result.returncode == 1
    assert "could not install python3-venv g++" in result.stderr


def test_a_server_without_the_device_needs_no_compiler(machine: Machine) -> None:
    """The base is a ledger: no torch and no g++ are asked for."""
    machine.command("id", "echo 1000")
    stderr = machine.setup(SAGEBOOK_EXTRAS="none").stderr
    assert "python3-venv" in stderr
    assert "g++" not in stderr


def test_another_distribution_is_told_what_is_needed(machine: Machine) -> None:
    """Without apt-get no command can be given, so the needs are named."""
    (machine.bin / "apt-get").unlink()
    machine.command("id", "echo 0")
    result = machine.setup()
    assert result.returncode == 1
    assert "Python 3.11 or newer" in result.stderr
    assert "C++17 compiler" in result.stderr


def test_an_old_python_counts_as_missing(machine: Machine) -> None:
    """Python 3.9 cannot run Sagebook; the message must not be a syntax error later on."""
    machine.command("python3", "exit 1")
    machine.command("id", "echo 1000")
    assert "python3 python3-venv" in machine.setup().stderr


def test_odd_extras_are_refused(machine: Machine) -> None:
    """The list goes into a pip requirement; a slip is named before anything is touched."""
    result = machine.setup(SAGEBOOK_EXTRAS="agent device")
    assert result.returncode == 1
    assert "SAGEBOOK_EXTRAS is 'agent device'" in result.stderr


def _set_up_is_current() -> bool:
    """Whether scripts/setup ran since what it reads was last written; it always did where scripts/test runs this."""
    stamp = ROOT / ".venv/sagebook-setup.stamp"
    inputs = [ROOT / name for name in ("pyproject.toml", "constraints.txt", "constraints-npu.txt")]
    return stamp.exists() and all(path.stat().st_mtime <= stamp.stat().st_mtime for path in inputs)


@pytest.mark.skipif(not _set_up_is_current(), reason="scripts/setup has to run first")
def test_a_second_set_up_is_silent_and_offline() -> None:
    """A set-up that is in place starts no pip: with one that can reach nothing it still succeeds, silently."""
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    result = subprocess.run(
        [ROOT / "scripts/setup"], cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
