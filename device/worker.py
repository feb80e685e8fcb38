"""The judge's end of one kernel's process: commands out, replies in, and how it ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from device.arena import Arena
from device.endings import Death, classify
from device.errors import SandboxBroken
from device.sandbox import (
    ENDED,
    OUTPUT_BYTES,
    START_SECONDS,
    STARTED,
    Instruments,
    Pipes,
    measure_names,
    read_message,
    start_kernel,
)
from device.types import Called, Ended, Limits

if TYPE_CHECKING:
    import subprocess

_REPLY = struct.Struct("<4q")
_READY, _CALL = -1, 2
"""Words of device/native/protocol.h."""

_STOP_SECONDS = 2.0
_GONE = (b"Z", b"X")
"""States of threads that have ended."""
_FLAGS, _EXITING = 6, 0x4
"""The word after the command's name that holds a thread's flags, and PF_EXITING (linux/sched.h) among them."""


class Worker:
    """One process with one kernel loaded: it computes where it is told, and knows no expected value.

    Nothing it says is trusted: the judge looks at the arena, at its own clock and at how the process ended.
    """

    def __init__(
        self,
        library: Path,
        arena: Arena,
        limits: Limits,
        threads: int,
        without: Sequence[str] = (),
        *,
        fill: int = 0,
        instruments: Instruments | None = None,
    ) -> None:
        self._arena, self._limits = arena, limits
        self._heard = b""
        self._folder = tempfile.mkdtemp(prefix="sagebook-")
        os.chmod(self._folder, 0o755)  # noqa: S103, PTH101  (empty; the worker's own user must be able to enter it)
        control_in, self._control = os.pipe()
        self._reply, reply_out = os.pipe()
        self._status, status_out = os.pipe()
        self._errors, errors_out = os.pipe()
        os.set_blocking(errors_out, False)
        pipes = Pipes(control_in, reply_out, status_out, errors_out)
        self._jail: subprocess.Popen[bytes] | None = None
        try:
            self._jail = start_kernel(
                library, arena, limits, threads, Path(self._folder), pipes, without, fill, instruments
            )
        finally:
            for fd in (control_in, reply_out, status_out, errors_out):
                os.close(fd)
            if self._jail is None:
                self.close()
        self._ended: Ended | None = None
        self._ready = self._stopped = False
        started = read_message(self._status, STARTED, START_SECONDS)
        if started is None:
            self.close()
            raise SandboxBroken("starting the worker", self.said() or "the jail did not start")
        self.pid, bits = started
        self.measures = measure_names(bits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        waited, used = _wait_ns(self.pid) + _wait_ns("thread-self"), self.cpu_ns()
        begin = time.monotonic_ns()
        self._send([_CALL, token, len(slots), *slots])
        if self._stopped:
            os.kill(self.pid, signal.SIGCONT)
        self._stopped = False
        got = self._await(token, self._limits.call_seconds if seconds is None else seconds)
        if isinstance(got, Ended):
            return got
        if not self._wait_until_stopped():
            return self._refuse("the kernel kept its process from stopping after a call")
        seen = time.monotonic_ns() - begin  # what was done between the reply and the stop is part of the call
        waited, used = _wait_ns(self.pid) + _wait_ns("thread-self") - waited, self.cpu_ns() - used
        _, code, first, last = got
        return Called(code, last - first, seen, max(0, waited), max(0, used))

    def _wait_until_stopped(self) -> bool:
        """Wait until every thread has stopped, as the worker does by itself after each call.

        Nothing then works on after the call, and no thread sees the next inputs before the clock starts.
        """
        until = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < until:
            states = set(self._states())
            if states <= {b"T", *_GONE}:
                self._stopped = b"T" in states
                return True
            time.sleep(0)
        return False

    def _refuse(self, message: str) -> Ended:
        self._kill()
        self._ended = Ended("refused", message)
        return self._ended

    def cpu_ns(self) -> int:
        """Return the processor time that all of the worker's threads have used so far, from the kernel's own books."""
        with contextlib.suppress(OSError):
            return time.clock_gettime_ns((~self.pid << 3) | 2)  # the process clock, as in linux/posix-timers.h
        return 0

    def waited_ns(self) -> int:
        """Return how long the worker's threads, all together, were ready to run but had no core (schedstat)."""
        waited = 0
        with contextlib.suppress(OSError, ValueError, IndexError):
            for task in Path(f"/proc/{self.pid}/task").iterdir():
                waited += int(task.joinpath("schedstat").read_text().split()[1])
        return waited

    def threads(self) -> int:
        """Count the worker's threads, without those that have ended and only wait to be cleared away."""
        return sum(state not in _GONE for state in self._states())

    def _states(self) -> list[bytes]:
        """Return the state of each thread, as in proc(5); one that has left user code for good counts as dead.

        A joined thread may be listed, and running, for a while: the kernel wakes the joiner first and clears it away
        after.
        """
        states = []
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{self.pid}/task").iterdir():
                with contextlib.suppress(OSError):  # this thread alone is gone; the others still count
                    words = task.joinpath("stat").read_bytes().rpartition(b")")[2].split()
                    states.append(b"X" if int(words[_FLAGS]) & _EXITING else words[0])
        return states

    def close(self) -> None:
        """End the worker and everything it started, and give back what it used."""
        if self._jail is not None:
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
            return self._refuse("the kernel's process wrote to the judge's reply pipe")
        hung = not events
        if hung:
            self._kill()
        self._ended = self._judge_death(hung=hung, seconds=seconds)
        return self._ended

    def _judge_death(self, *, hung: bool, seconds: float) -> Ended:
        ended = read_message(self._status, ENDED, START_SECONDS)
        if ended is None:
            self._kill(supervisor=True)
            if not hung:
                raise SandboxBroken("waiting for the worker's end", self.said() or "the supervisor is gone")
        status, rss_kib, _ = ended or (int(signal.SIGKILL), 0, 0)
        return classify(
            Death(
                status=status,
                hung_seconds=seconds if hung else None,
                loaded=self._ready,
                note=self._arena.note(),
                said=self.said(),
                peak_bytes=rss_kib * 1024,
                memory_limit=self._limits.memory + self._arena.size,
            )
        )

    def said(self) -> str:
        """Return what the worker wrote to standard error so far, at most a pipe's worth."""
        os.set_blocking(self._errors, False)
        with contextlib.suppress(BlockingIOError):
            self._heard += os.read(self._errors, OUTPUT_BYTES - len(self._heard))
        return self._heard.decode(errors="replace").strip()

    def _kill(self, *, supervisor: bool = False) -> None:
        if not supervisor and hasattr(self, "pid"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
                return
        if self._jail is not None:
            self._jail.kill()


def _wait_ns(task: int | str) -> int:
    """Return how long a thread (of a process, its first) was ready to run but had no core (schedstat)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{task}/schedstat").read_text().split()[1])
    return 0
