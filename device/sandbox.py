"""The only module that starts processes: the compiler, and the worker that a candidate runs in.

Both run inside the jail (device/native/jail.cpp), a small program that is compiled once and kept by its content. The
jail asks the machine for namespaces, a private root, a user of its own, limits and a filter of system calls, and says
which of them it got. It starts in a few milliseconds, so that each phase of an evaluation gets a fresh worker.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from device.arena import Arena
from device.cheats import starts_pool
from device.errors import CompilerMissing, SandboxBroken
from device.types import Limits

NATIVE = Path(__file__).with_name("native")
QUIET_POOL = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
"""An idle OpenMP thread sleeps at once, on both sides. By default it would spin for 3 ms, take a core from the other
side of an interleaved measurement, and on a busy machine keep its own side from the core that the last needs."""

USERS = 2_000_000_000
"""Kernels that root judges run as users above this number, one for each worker; no account has such a number."""

MEASURES = (
    "user namespace",
    "mount namespace",
    "process namespace",
    "no network",
    "ipc namespace",
    "private root",
    "read-only root",
    "user of its own",
    "system call filter",
    "landlock",
)
"""Names of the bits of `Measure` in device/native/protocol.h, lowest first."""

STARTED, ENDED = struct.Struct("<2q"), struct.Struct("<3q")
START_SECONDS = 10.0
OUTPUT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Native:
    """The judge's own compiled helpers: the jail, and the library that makes memory cold in all caches."""

    jail: Path
    cache: Path


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a kernel's process is watched with: a jail that has the watcher's library in it, and the watcher's settings.

    `launcher` goes before the jail. Address space and stack have no limit then: the watchers map terabytes of it.
    """

    jail: Path
    environment: tuple[tuple[str, str], ...] = ()
    launcher: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a confined command ended; `code` is negative for a signal, as in subprocess."""

    code: int
    output: str
    timed_out: bool
    seconds: float
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipes:
    """The ends of the pipes that the jail gets: it reads control, and writes the others."""

    control: int
    reply: int
    status: int
    errors: int


def cache_folder() -> Path:
    """Return the folder for compiled things: $SAGEBOOK_CACHE, or the user's cache folder."""
    chosen = os.environ.get("SAGEBOOK_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("sagebook"))


def compiler() -> str:
    """Path of the C++ compiler: $SAGEBOOK_CXX or g++. Raises CompilerMissing when there is none."""
    name = os.environ.get("SAGEBOOK_CXX", "g++")
    found = shutil.which(name)
    if found is None:
        raise CompilerMissing(name)
    return found


def ask(command: Sequence[str], seconds: float = 10.0) -> str | None:
    """Output of a trusted program of the machine (`g++ --version`, `npu-smi info`), None when it does not run."""
    try:
        done = subprocess.run(  # noqa: S603  (fixed commands of the judge itself)
            command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def native() -> Native:
    """Return the judge's helpers, compiled at the first use on a machine and kept by the content of their sources."""
    gxx = compiler()
    sources = sorted([*NATIVE.glob("*.cpp"), *NATIVE.glob("*.h"), NATIVE.parent / "languages" / "sagebook_kernel.h"])
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = cache_folder() / "native" / digest.hexdigest()[:24]
    made = Native(folder / "jail", folder / "cache.so")
    if not (made.jail.exists() and made.cache.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        _make(gxx, [*_JAIL, str(NATIVE / "jail.cpp")], made.jail)
        _make(gxx, ["-march=native", "-shared", "-fPIC", str(NATIVE / "cache.cpp")], made.cache)
    return made


_JAIL = ("-fopenmp", "-Wl,-z,now")


def instrumented_jail(name: str, flags: Sequence[str]) -> Path:
    """Return the jail compiled with more flags (`-fsanitize=…`), made at its first use. Raises SandboxBroken."""
    jail = native().jail.with_name(f"jail-{name}")
    if not jail.exists():
        _make(compiler(), [*_JAIL, *flags, str(NATIVE / "jail.cpp")], jail)
    return jail


def own_program(source: Path, flags: Sequence[str]) -> Path:
    """Return a program of the judge's own, compiled at its first use and kept by its text. Raises SandboxBroken."""
    digest = hashlib.sha256(source.read_bytes() + "\0".join(flags).encode()).hexdigest()
    program = cache_folder() / "native" / digest[:24] / source.stem
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        _make(compiler(), [*flags, str(source)], program)
    return program


def _make(gxx: str, arguments: list[str], target: Path) -> None:
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    command = [gxx, "-std=c++17", "-O2", *arguments, "-o", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    if done.returncode != 0:
        raise SandboxBroken(f"compiling {target.name}", done.stderr.strip()[:2000])
    partial.replace(target)


def _limit_arguments(limits: Limits, *, memory: int, cpu: float, file_bytes: int, files: int) -> list[str]:
    return [
        f"memory={memory}",
        f"cpu={int(cpu) + 1}",
        f"processes={limits.processes}",
        f"files={files}",
        f"file_bytes={file_bytes}",
        f"stack={limits.stack}",
        f"user={USERS}",
    ]


def measure_names(bits: int) -> tuple[str, ...]:
    """Name the confinements that the jail reports."""
    return tuple(name for place, name in enumerate(MEASURES) if bits >> place & 1)


def run_command(
    command: Sequence[str], place: Path, limits: Limits, masks: Sequence[Path] = (), *, confined: bool = False,
    keep: int = OUTPUT_BYTES,
) -> Finished:  # fmt: skip
    """Run a compiler in `place`, the only folder that it can write to; the folders in `masks` are empty to it.

    `confined`: the program runs a candidate's code, so that it is a user of its own and reads nothing but programs and
    `place`. The first `keep` bytes of its output are kept. Raises SandboxBroken when the jail itself fails.
    """
    status_in, status_out = os.pipe()
    log = place / "output.log"
    begin = time.monotonic()
    arguments = _limit_arguments(
        limits, memory=limits.compile_memory, cpu=2 * limits.compile_seconds, file_bytes=1 << 27, files=256
    )
    with log.open("wb") as output:
        jail = subprocess.Popen(  # noqa: S603  (the jail is ours; what it runs is confined)
            [str(native().jail), "command", f"place={place}", f"status={status_out}", *arguments,
             *(f"mask={mask}" for mask in masks), *(("confined=1",) if confined else ()), "--", *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=place, pass_fds=(status_out,),
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(place)},
        )  # fmt: skip
    os.close(status_out)
    try:
        started = read_message(status_in, STARTED, START_SECONDS)
        ended = read_message(status_in, ENDED, limits.compile_seconds) if started else None
    finally:
        os.close(status_in)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(jail.pid, signal.SIGKILL)
        jail.wait()
    with log.open("rb") as written:
        text = written.read(keep).decode(errors="replace")
    log.unlink()
    if started is None:
        raise SandboxBroken("starting the compiler", text.strip() or "the jail did not start")
    code = os.waitstatus_to_exitcode(ended[0]) if ended else -int(signal.SIGKILL)
    return Finished(code, text, ended is None, time.monotonic() - begin, measure_names(started[1]))


def read_message(fd: int, form: struct.Struct, seconds: float) -> tuple[int, ...] | None:
    """Read one message, or None when the pipe closed or nothing came in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(max(0.0, seconds) * 1000):
        return None
    data = os.read(fd, form.size)
    return form.unpack(data) if len(data) == form.size else None


def start_kernel(
    library: Path,
    arena: Arena,
    limits: Limits,
    threads: int,
    place: Path,
    pipes: Pipes,
    without: Sequence[str] = (),
    fill: int = 0,
    instruments: Instruments | None = None,
) -> subprocess.Popen[bytes]:
    """Start the jail with a kernel; `place` is an empty folder, the kernel's root where that is granted.

    `without` names layers ("namespaces", "filter") to leave out, as on a machine that does not grant them. Memory that
    is freed is filled with the byte `fill`, memory that is allocated with its complement, unless it is 0. A kernel with
    OpenMP regions finds their pool filled, so that no other thread can pass for one of it.
    """
    pool = instruments is None and starts_pool(library)
    cpu = limits.total_seconds * threads
    watch = instruments or Instruments(native().jail)
    return subprocess.Popen(  # noqa: S603  (the jail is ours; what it loads is confined)
        [*watch.launcher, str(watch.jail), "kernel", f"library={library}", f"place={place}", f"arena={arena.fd}",
         f"size={arena.size}", f"control={pipes.control}", f"reply={pipes.reply}", f"status={pipes.status}",
         *_limit_arguments(limits, memory=limits.memory, cpu=cpu, file_bytes=limits.file_bytes, files=limits.files),
         *(f"{layer}=0" for layer in without), *(("instrumented=1",) if instruments else ()),
         *(("pool=1",) if pool else ())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=pipes.errors, cwd=place, start_new_session=True,
        pass_fds=(arena.fd, pipes.control, pipes.reply, pipes.status),
        env={**_environment(threads, fill), **dict(watch.environment)},
    )  # fmt: skip


def _environment(threads: int, fill: int) -> dict[str, str]:
    """Everything that a kernel's process finds in its environment."""
    return {
        **({"MALLOC_PERTURB_": str(fill)} if fill else {}),
        "LC_ALL": "C",
        "OMP_NUM_THREADS": str(threads),
        "OMP_THREAD_LIMIT": str(threads),
        "OMP_DYNAMIC": "false",
        **QUIET_POOL,
    }


def start_program(
    command: Sequence[str], place: Path, limits: Limits, threads: int, status: int, errors: int,
    masks: Sequence[Path] = (),
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Start a program that talks over its standard input and output; it can write to no file, and sees no `masks`.

    The jail writes its `Started` and `Ended` messages to the descriptor `status`; standard error goes to `errors`.
    """
    arguments = _limit_arguments(
        limits, memory=limits.memory, cpu=limits.total_seconds * threads, file_bytes=limits.file_bytes, files=256
    )
    return subprocess.Popen(  # noqa: S603  (the jail is ours; what it runs is confined)
        [str(native().jail), "command", f"place={place}", f"status={status}", *arguments,
         *(f"mask={mask}" for mask in masks), "--", *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=place, pass_fds=(status,),
        start_new_session=True, env={**_environment(threads, 0), "TMPDIR": str(place), "HOME": str(place)},
    )  # fmt: skip
