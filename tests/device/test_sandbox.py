"""The jail: each layer alone still holds, the compiler is confined too, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from device import sandbox
from device.arena import PAGE, Arena, describe, lay_out
from device.endings import Death, call_name, classify
from device.errors import CompilerMissing
from device.languages import cpp
from device.operators.base import TensorSpec
from device.types import Called, Ended, Limits
from device.worker import Worker
from tests.device.small import kernel

LIMITS = Limits(call_seconds=1.0, memory=256 << 20)
SPEC = TensorSpec((8, 32))
C = "#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"
LAYERS = [(), ("namespaces",), ("filter",), ("namespaces", "filter")]


def run(source: str, without: tuple[str, ...] = ()) -> Called | Ended:
    """Build a kernel and call it once on an 8 x 32 input."""
    build = cpp.build(source, LIMITS)
    assert build.artefact is not None, build.summary
    slot = lay_out(0, PAGE, [SPEC], [SPEC])
    arena = Arena(slot.end)
    try:
        with Worker(build.artefact, arena, LIMITS, 2, without) as worker:
            ended = worker.load()
            worker.describe(describe(slot, []))
            return ended or worker.call([0])
    finally:
        arena.close()


@pytest.mark.parametrize("without", LAYERS)
def test_an_honest_kernel_runs_under_any_layers(without: tuple[str, ...]) -> None:
    """A machine that grants fewer layers can still judge."""
    called = run(kernel(), without)
    assert isinstance(called, Called)
    assert called.code == 0
    assert 0 < called.claimed_ns <= called.seen_ns


@pytest.mark.parametrize("without", LAYERS)
def test_no_process_outlives_its_worker(without: tuple[str, ...]) -> None:
    """A daemon made in the call is refused, or dies with the worker: with the namespace, or by the subreaper."""
    run(kernel("daemon(1, 1); for (;;) pause();\n", includes=C), without)
    time.sleep(0.05)
    mine = [pid for pid in _names("/proc") if pid.isdigit() and _command(pid) == str(sandbox.native().jail)]
    assert mine == []


def _names(folder: str) -> list[str]:
    return [entry.name for entry in Path(folder).iterdir()]


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""


@pytest.mark.parametrize("without", LAYERS)
def test_a_fork_bomb_is_bounded(without: tuple[str, ...]) -> None:
    """Without filter and namespaces the limit on processes still stands, and what was started is ended."""
    begin = time.monotonic()
    ended = run(kernel("for (;;) daemon(1, 1);\n", includes=C), without)
    assert isinstance(ended, Ended)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("without", LAYERS)
def test_no_file_is_written_and_none_is_read(without: tuple[str, ...], tmp_path: Path) -> None:
    """Private root, filter, Landlock, and a user that owns nothing: any of them is enough."""
    tmp_path.joinpath("secret").write_text("s")
    tmp_path.chmod(0o755)
    body = f"""
    if (FILE *f = fopen("{tmp_path}/secret", "r")) return 21;
    if (FILE *f = fopen("/tmp/sagebook-left", "w")) {{ if (fputs("x", f) >= 0 && fflush(f) == 0) return 22; }}
    """
    ended = run(kernel(body, includes=C), without)
    assert isinstance(ended, Ended) or ended.code == 0
    left = Path("/tmp/sagebook-left")  # noqa: S108  (the place that a kernel would choose)
    assert not left.exists() or left.stat().st_size == 0


def test_every_layer_of_this_machine_is_reported() -> None:
    """The report says what was in force, by name."""
    build = cpp.build(kernel(), LIMITS)
    assert build.artefact is not None
    arena = Arena(PAGE)
    with Worker(build.artefact, arena, LIMITS, 1) as worker:
        assert worker.load() is None
        full, pid = set(worker.measures), worker.pid
        status = Path(f"/proc/{pid}/status").read_text()
    with Worker(build.artefact, arena, LIMITS, 1, ("namespaces", "filter")) as worker:
        assert worker.load() is None
        assert not full & {"no network"} & set(worker.measures)
    arena.close()
    if "system call filter" in full:
        assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    assert full <= set(sandbox.MEASURES)


def test_the_compiler_writes_nowhere_else_and_sees_no_key(tmp_path: Path) -> None:
    """In the compiler's view the masked folder is empty and everything but its own folder is read-only."""
    place, hidden = tmp_path / "place", tmp_path / "hidden"
    for folder in (place, hidden):
        folder.mkdir()
    hidden.joinpath("judge.key").write_text("secret")
    script = f"cat {hidden}/judge.key; touch {tmp_path}/outside; touch {place}/inside; exit 3"
    done = sandbox.run_command(["/bin/sh", "-c", script], place, LIMITS, [hidden])
    assert done.code == 3
    assert place.joinpath("inside").exists()
    if "read-only root" in done.measures:
        assert "secret" not in done.output
        assert not tmp_path.joinpath("outside").exists()


def test_a_compiler_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """With everything that it started."""
    done = sandbox.run_command(["/bin/sh", "-c", "sleep 60 & sleep 60"], tmp_path, Limits(compile_seconds=0.3))
    assert done.timed_out
    assert done.seconds < 3


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names what was looked for and the one command that gets it."""
    monkeypatch.setenv("SAGEBOOK_CXX", "no-such-g++")
    with pytest.raises(CompilerMissing, match=r"no-such-g\+\+ was not found.*apt-get install"):
        sandbox.compiler()


@pytest.mark.parametrize(
    ("status", "note", "outcome", "words"),
    [
        (signal.SIGSEGV, (11, 0x10, 0, -1, 0), "crash", "SIGSEGV at address 0x10"),
        (signal.SIGSEGV, (11, 0, 12, -1, 0), "resource", "memory"),  # errno 12: ENOMEM
        (signal.SIGABRT, (6, 0, 0, -1, 1), "resource", "memory"),
        (signal.SIGKILL, (0, 0, 0, -1, 0), "resource", "SIGKILL"),
        (signal.SIGXCPU, (24, 0, 0, -1, 0), "hang", "processor time"),
        (signal.SIGXFSZ, (25, 0, 0, -1, 0), "refused", "file"),
        (3 << 8, (0, 0, 0, -1, 0), "crash", "exit code 3"),
    ],
)
def test_an_end_is_read_from_the_status(status: int, note: tuple[int, ...], outcome: str, words: str) -> None:
    """The wait status decides; the note only says more about it."""
    death = Death(int(status), None, loaded=True, note=note, said="", peak_bytes=0, memory_limit=1 << 30)
    ended = classify(death)
    assert (ended.how, words in ended.message) == (outcome, True), ended


def test_system_calls_are_named_for_this_machine() -> None:
    """Openat has another number on each architecture; an unknown number stays a number."""
    number = {"x86_64": 257, "aarch64": 56}[os.uname().machine]
    assert call_name(number) == "openat"
    assert call_name(9999) == "system call 9999"


def test_the_arena_cannot_be_shrunk() -> None:
    """A kernel that truncated the file would kill the judge with SIGBUS."""
    arena = Arena(PAGE)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, 0)
    arena.close()
