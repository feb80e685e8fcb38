"""The judge's end of a process that runs one module of a suite (`device.suites.child`)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from device.arena import NUMPY_DTYPES, Array
from device.errors import SandboxBroken
from device.sandbox import START_SECONDS, STARTED, measure_names, read_message, start_program
from device.types import Ended, Limits

CHILD = Path(__file__).with_name("child.py")
IMPORT_SECONDS = 120.0
"""A process that imports torch on a machine that is busy with other things starts within that time."""

PIPE_BYTES = 1 << 20
MOST_BYTES = 1 << 30
"""Tensors of one message, all together."""

LIMITS = Limits(call_seconds=60.0, total_seconds=900.0, memory=16 << 30)
"""What a task of a suite may use: torch alone maps some GiB of address space, and tasks have full sizes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as it came over a pipe: torch's name of its dtype, its shape, its bits row-major."""

    dtype: str
    bits: Array

    @property
    def floating(self) -> bool:
        """Whether it holds real numbers."""
        return self.dtype in {"float32", "float64", "float16", "bfloat16"}


class Said(Exception):  # noqa: N818  (what a module did, for whoever asked it)
    """A module did not do what it was asked to; `ended` says how, in the judge's words."""

    def __init__(self, ended: Ended) -> None:
        self.ended = ended
        super().__init__(ended.message)


def unusable(reason: str) -> Said:
    """Make what is raised where a module's answer is none that can be judged."""
    return Said(Ended("refused", reason))


class Process:
    """One confined process. Every answer is data: nothing that comes back is run here."""

    def __init__(self, limits: Limits, threads: int, masks: Sequence[Path] = ()) -> None:
        self._limits = limits
        self._folder = tempfile.mkdtemp(prefix="sagebook-")
        self._status, status_out = os.pipe()
        self._errors, errors_out = os.pipe()
        os.set_blocking(errors_out, False)
        try:
            command = [sys.executable, "-I", "-B", str(CHILD)]
            folder = Path(self._folder)
            self._jail = start_program(command, folder, limits, threads, status_out, errors_out, masks)
        finally:
            os.close(status_out)
            os.close(errors_out)
        assert self._jail.stdin is not None  # noqa: S101  (both were asked to be pipes)
        assert self._jail.stdout is not None  # noqa: S101  (the same)
        self._to, self._from = self._jail.stdin.fileno(), self._jail.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        started = read_message(self._status, STARTED, START_SECONDS)
        if started is None:
            said = self._said()
            self.close()
            raise SandboxBroken("starting a suite's process", said or "the jail did not start")
        self.pid, bits = started
        try:
            landed = self._receive(time.monotonic() + IMPORT_SECONDS)
        except Said as said:
            self.close()
            raise SandboxBroken("starting a suite's process", str(said)) from said
        self.measures = (*measure_names(bits), "system call filter", *(["landlock"] if landed else []))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, do: str, seconds: float | None = None, **order: Any) -> Any:
        """Send an order and return its answer. Raises Said when the module fails, hangs or refuses."""
        until = time.monotonic() + (self._limits.call_seconds if seconds is None else seconds)
        parts: list[bytes] = []
        words = {name: _pack(value, parts) if name in _DATA else value for name, value in order.items()}
        text = json.dumps({"do": do, **words, "parts": [len(part) for part in parts]}).encode()
        self._write(b"".join([struct.pack("<Q", len(text)), text, *parts]), until)
        return self._receive(until)

    def cpu_ns(self) -> int:
        """Return the processor time that the process has used, from the operating system's books."""
        with contextlib.suppress(OSError):
            return time.clock_gettime_ns((~self.pid << 3) | 2)
        return 0

    def close(self) -> None:
        """End the process and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._jail.pid, signal.SIGKILL)
        for stream in (self._jail.stdin, self._jail.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._jail.wait()
        for fd in (self._status, self._errors):
            with contextlib.suppress(OSError):
                os.close(fd)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, data: bytes, until: float) -> None:
        view = memoryview(data)
        poll = select.poll()
        poll.register(self._to, select.POLLOUT)
        while view:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise Said(Ended("hang", "the module did not take its inputs in time and was ended"))
            try:
                view = view[os.write(self._to, view) :]
            except BrokenPipeError:
                raise Said(self._death()) from None

    def _read(self, count: int, until: float) -> bytes:
        data = bytearray()
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        while len(data) < count:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise Said(Ended("hang", "the module did not answer in time and was ended"))
            piece = os.read(self._from, min(count - len(data), 1 << 20))
            if not piece:
                raise Said(self._death())
            data += piece
        return bytes(data)

    def _receive(self, until: float) -> Any:
        size = struct.unpack("<Q", self._read(8, until))[0]
        try:
            head = json.loads(self._read(_bounded([size]), until))
            lengths = [int(length) for length in head["parts"]]
            _bounded(lengths)
            parts = [self._read(length, until) for length in lengths]
            answer = _unpack(head["ok"], parts) if "ok" in head else None
            ended = _ending(head)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise Said(Ended("refused", f"the module wrote something else than answers: {error}")) from error
        if ended is not None:
            raise Said(ended)
        return answer

    def _death(self) -> Ended:
        said = self._said()
        return Ended("crash", f"the module's process ended{f'; it said: {said}' if said else ''}")

    def _said(self) -> str:
        poll = select.poll()
        poll.register(self._errors, select.POLLIN)
        ready = poll.poll(200)
        return os.read(self._errors, 4000).decode(errors="replace").strip()[-1000:] if ready else ""


def _bounded(lengths: Sequence[int]) -> int:
    """Add lengths up; raises ValueError where they are more than the judge takes."""
    if min(lengths, default=0) < 0 or sum(lengths) > MOST_BYTES:
        raise ValueError("too many bytes")
    return sum(lengths)


def _ending(head: dict[str, Any]) -> Ended | None:
    if "ok" in head:
        return None
    return Ended("refused", str(head["refused"])) if "refused" in head else Ended("error", str(head["error"]))


_DATA = frozenset({"inputs", "init", "state"})


def _pack(value: Any, parts: list[bytes]) -> Any:
    if isinstance(value, Tensor):
        raw = value.bits.tobytes()
        parts.append(raw)
        return {"tensor": [value.dtype, list(value.bits.shape), len(raw)]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_pack(part, parts) for part in value]}
    if isinstance(value, dict):
        return {"dict": {name: _pack(part, parts) for name, part in value.items()}}
    return None if value is None else {"plain": value}


def _unpack(word: Any, parts: list[bytes]) -> Any:
    ((kind, value),) = word.items()
    if kind == "tensor":
        dtype, shape, _ = value
        if dtype not in NUMPY_DTYPES:
            raise Said(Ended("refused", f"a tensor of {dtype} is not known to the judge"))
        return Tensor(dtype, np.frombuffer(parts.pop(0), dtype=NUMPY_DTYPES[dtype]).reshape(shape))
    if kind == "dict":
        return {name: _unpack(part, parts) for name, part in value.items()}
    if kind == "plain":
        return value
    made = [_unpack(part, parts) for part in value]
    return tuple(made) if kind == "tuple" else made
