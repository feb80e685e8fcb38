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
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import platformdirs

from device.arena import Arena
from device.endings import Death, classify
from device.errors import CompilerMissing, SandboxBroken
from device.types import Called, Ended, Limits

NATIVE = Path(__file__).with_name("native")
SPIN_COUNT = 2000
"""How many turns an idle OpenMP thread spins before it sleeps, about a tenth of a millisecond: so short that the pool of one side does not
take a core from the other, yet long enough that not every region of a call has to wake threads."""

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

_STARTED, _ENDED, _REPLY = struct.Struct("<2q"), struct.Struct("<3q"), struct.Struct("<4q")
_READY, _CALL = -1, 2
_START_SECONDS = 10.0
_OUTPUT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Native:
    """The judge's own compiled helpers: the jail, and the library that makes memory cold in all caches."""

    jail: Path
    cache: Path


@dataclass(frozen=True, slots=True)
class Finished:
    """How a confined command ended; `code` is negative for a signal, as in subprocess."""

    code: int
    output: str
    timed_out: bool
    seconds: float
    measures: tuple[str, ...]


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
    sources = sorted([*NATIVE.iterdir(), NATIVE.parent / "languages" / "sagebook_kernel.h"])
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = cache_folder() / "native" / digest.hexdigest()[:24]
    made = Native(folder / "jail", folder / "cache.so")
    if not (made.jail.exists() and made.cache.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        _make(gxx, ["-fopenmp", "-Wl,-z,now", str(NATIVE / "jail.cpp")], made.jail)
        _make(gxx, ["-march=native", "-shared", "-fPIC", str(NATIVE / "cache.cpp")], made.cache)
    return made


def _make(gxx: str, arguments: list[str], target: Path) -> None:
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    command = [gxx, "-std=c++17", "-O2", *arguments, "-o", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    if done.returncode != 0:
        raise SandboxBroken(f"compiling {target.name}", done.stderr.strip()[:2000])
    partial.replace(target)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _limit_arguments(limits: Limits, *, memory: int, cpu: float, file_bytes: int, files: int) -> list[str]:
    return [
        f"memory={memory}",
        f"cpu={int(cpu) + 1}",
        f"processes={limits.processes}",
        f"files={files}",
        f"file_bytes={file_bytes}",
        f"stack={limits.stack}",
        f"user={2_000_000_000 + os.getpid()}",
    ]


def _names(bits: int) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(MEASURES) if bits >> place & 1)


def run_command(command: Sequence[str], place: Path, limits: Limits, masks: Sequence[Path] = ()) -> Finished:
    """Run a compiler in `place`, the only folder that it can write to; the folders in `masks` are empty to it.

    Raises SandboxBroken when the jail itself fails.
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
             *(f"mask={mask}" for mask in masks), "--", *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=place, pass_fds=(status_out,),
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(place)},
        )  # fmt: skip
    os.close(status_out)
    try:
        started = _read(status_in, _STARTED, _START_SECONDS)
        ended = _read(status_in, _ENDED, limits.compile_seconds) if started else None
    finally:
        os.close(status_in)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(jail.pid, signal.SIGKILL)
        jail.wait()
    text = log.read_bytes()[:_OUTPUT_BYTES].decode(errors="replace")
    log.unlink()
    if started is None:
        raise SandboxBroken("starting the compiler", text.strip() or "the jail did not start")
    code = os.waitstatus_to_exitcode(ended[0]) if ended else -int(signal.SIGKILL)
    return Finished(code, text, ended is None, time.monotonic() - begin, _names(started[1]))


def _read(fd: int, form: struct.Struct, seconds: float) -> tuple[int, ...] | None:
    """Read one message, or None when the pipe closed or nothing came in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(max(0.0, seconds) * 1000):
        return None
    data = os.read(fd, form.size)
    return form.unpack(data) if len(data) == form.size else None


class Worker:
    """One process with one kernel loaded: it computes where it is told, and knows no expected value.

    Nothing it says is trusted: the judge looks at the arena, at its own clock and at how the process ended.
    """

    def __init__(self, library: Path, arena: Arena, limits: Limits, threads: int) -> None:
        self._arena, self._limits = arena, limits
        self._folder = tempfile.mkdtemp(prefix="sagebook-")
        os.chmod(self._folder, 0o755)  # noqa: S103, PTH101  (empty; the worker's own user must be able to enter it)
        control_in, self._control = os.pipe()
        self._reply, reply_out = os.pipe()
        self._status, status_out = os.pipe()
        self._errors, errors_out = os.pipe()
        os.set_blocking(errors_out, False)
        given = (arena.fd, control_in, reply_out, status_out)
        cpu = limits.total_seconds * threads
        try:
            self._jail = subprocess.Popen(  # noqa: S603  (the jail is ours; what it loads is confined)
                [str(native().jail), "kernel", f"library={library}", f"place={self._folder}", f"arena={arena.fd}",
                 f"size={arena.size}", f"control={control_in}", f"reply={reply_out}", f"status={status_out}",
                 *_limit_arguments(limits, memory=limits.memory, cpu=cpu, file_bytes=limits.file_bytes,
                                   files=limits.files)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors_out, pass_fds=given,
                cwd=self._folder, start_new_session=True, env=_environment(threads),
            )  # fmt: skip
        finally:
            for fd in (control_in, reply_out, status_out, errors_out):
                os.close(fd)
        self._ended: Ended | None = None
        self._ready = False
        started = _read(self._status, _STARTED, _START_SECONDS)
        if started is None:
            self.close()
            raise SandboxBroken("starting the worker", self._said() or "the jail did not start")
        self.pid, bits = started
        self.measures = _names(bits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def load(self) -> Ended | None:
        """Wait until the kernel is loaded; return how the process ended if it ended or hung instead."""
        got = self._await(_READY, self._limits.call_seconds)
        self._ready = isinstance(got, tuple)
        return None if isinstance(got, tuple) else got

    def describe(self, words: Sequence[int]) -> None:
        """Tell the worker what a slot holds (`device.arena.describe`)."""
        self._send(words)

    def call(self, slots: Sequence[int], seconds: float | None = None) -> Called | Ended:
        """Call the kernel once for each slot, in order; return both clocks, or how the process ended."""
        token = secrets.randbits(62)
        begin = time.monotonic_ns()
        self._send([_CALL, token, len(slots), *slots])
        got = self._await(token, self._limits.call_seconds if seconds is None else seconds)
        seen = time.monotonic_ns() - begin
        if isinstance(got, Ended):
            return got
        _, code, first, last = got
        return Called(code, last - first, seen)

    def cpu_ns(self) -> int:
        """Return the processor time that all of the worker's threads have used so far, from the kernel's own books."""
        with contextlib.suppress(OSError):
            return time.clock_gettime_ns((~self.pid << 3) | 2)  # the process clock, as in linux/posix-timers.h
        return 0

    def threads(self) -> int:
        """Count the worker's threads."""
        with contextlib.suppress(OSError):
            return len(os.listdir(f"/proc/{self.pid}/task"))  # noqa: PTH208  (a count, not paths)
        return 0

    def close(self) -> None:
        """End the worker and everything it started, and give back what it used."""
        if self._jail.poll() is None:
            self._kill()
        self._jail.wait()
        for fd in (self._control, self._reply, self._status, self._errors):
            with contextlib.suppress(OSError):
                os.close(fd)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, words: Sequence[int]) -> None:
        with contextlib.suppress(BrokenPipeError):  # a dead worker is noticed when its answer is awaited
            os.write(self._control, struct.pack(f"<{len(words) + 1}q", len(words), *words))

    def _await(self, token: int, seconds: float) -> tuple[int, ...] | Ended:
        if self._ended is not None:
            return self._ended
        poll = select.poll()
        poll.register(self._reply, select.POLLIN)
        poll.register(self._status, select.POLLIN)
        events = dict(poll.poll(seconds * 1000))
        if events.get(self._reply, 0) & select.POLLIN:
            data = os.read(self._reply, _REPLY.size)
            reply = _REPLY.unpack(data) if len(data) == _REPLY.size else (0, 0, 0, 0)
            if reply[0] == token:
                return reply
            self._kill()
            self._ended = Ended("refused", "the kernel's process wrote to the judge's reply pipe")
            return self._ended
        hung = not events
        if hung:
            self._kill()
        self._ended = self._judge_death(hung=hung, seconds=seconds)
        return self._ended

    def _judge_death(self, *, hung: bool, seconds: float) -> Ended:
        ended = _read(self._status, _ENDED, _START_SECONDS)
        if ended is None:
            self._kill(supervisor=True)
            if not hung:
                raise SandboxBroken("waiting for the worker's end", self._said() or "the supervisor is gone")
        status, rss_kib, _ = ended or (int(signal.SIGKILL), 0, 0)
        return classify(
            Death(
                status=status,
                hung_seconds=seconds if hung else None,
                loaded=self._ready,
                note=self._arena.note(),
                said=self._said(),
                peak_bytes=rss_kib * 1024,
                memory_limit=self._limits.memory + self._arena.size,
            )
        )

    def _said(self) -> str:
        """Return what the worker wrote to standard error, at most a pipe's worth."""
        os.set_blocking(self._errors, False)
        with contextlib.suppress(BlockingIOError):
            return os.read(self._errors, _OUTPUT_BYTES).decode(errors="replace").strip()
        return ""

    def _kill(self, *, supervisor: bool = False) -> None:
        if not supervisor and hasattr(self, "pid"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
                return
        with contextlib.suppress(ProcessLookupError):
            self._jail.kill()


def _environment(threads: int) -> dict[str, str]:
    """Everything that a kernel's process finds in its environment."""
    return {
        "LC_ALL": "C",
        "OMP_NUM_THREADS": str(threads),
        "OMP_THREAD_LIMIT": str(threads),
        "OMP_DYNAMIC": "false",
        "GOMP_SPINCOUNT": str(SPIN_COUNT),
    }
