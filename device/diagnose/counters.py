"""Counters of the processor and of the operating system, asked by `perf_event_open` (Linux) for one process.

Virtual machines mostly have none of the processor's; the system's own are there everywhere that perf is allowed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from device.diagnose.types import Source

_NUMBER = {"x86_64": 298, "aarch64": 241}
"""Of the system call."""

_HARDWARE, _SOFTWARE = 0, 1
EVENTS: Mapping[str, tuple[int, int]] = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_misses": (_HARDWARE, 3),
    "branch_misses": (_HARDWARE, 5),
    "page_faults": (_SOFTWARE, 2),
    "migrations": (_SOFTWARE, 4),
}
"""Type and number of each event, from linux/perf_event.h."""

_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 1, 1 << 5, 1 << 6
_SIZE = 112
"""Of `struct perf_event_attr` up to its fifth version."""

_WHY = {
    errno.ENOENT: "this processor, or this virtual machine, has no such counters",
    errno.EOPNOTSUPP: "this processor, or this virtual machine, has no such counters",
    errno.EACCES: "perf is not allowed here",
    errno.EPERM: "perf is not allowed here",
    errno.ENOSYS: "this system has no perf",
}


def _open(event: tuple[int, int], pid: int) -> int:
    """Count an event for a process and the threads that it starts from now on. Raises OSError."""
    kind, config = event
    attributes = bytearray(_SIZE)
    flags = _INHERIT | (_EXCLUDE_KERNEL | _EXCLUDE_HV if kind == _HARDWARE else 0)
    struct.pack_into("<IIQQQQQ", attributes, 0, kind, _SIZE, config, 0, 0, 0, flags)
    number = _NUMBER.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "perf_event_open")
    library = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _SIZE).from_buffer(attributes)
    fd = library.syscall(number, ctypes.byref(buffer), pid, -1, -1, 8)  # 8: close on exec
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return int(fd)


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters that can be had here."""

    names: tuple[str, ...]

    @contextlib.contextmanager
    def of(self, pid: int) -> Iterator[Callable[[], dict[str, int]]]:
        """Count for a process; what is yielded reads the counts so far."""
        with contextlib.ExitStack() as stack:
            opened: dict[str, int] = {}
            for name in self.names:
                with contextlib.suppress(OSError):
                    opened[name] = _open(EVENTS[name], pid)
                    stack.callback(os.close, opened[name])
            yield lambda: {name: int.from_bytes(os.read(fd, 8), "little") for name, fd in opened.items()}


def look() -> tuple[Counters, Source]:
    """Try each event on this process, and say what there is and how to get the rest."""
    have: list[str] = []
    why = ""
    for name, event in EVENTS.items():
        try:
            os.close(_open(event, 0))
        except OSError as error:
            why = why or _WHY.get(error.errno or 0, str(error))
        else:
            have.append(name)
    counters = Counters(tuple(have))
    if "instructions" in have:
        return counters, Source("processor counters", have=True, detail=", ".join(have))
    rest = f"; of the system: {', '.join(have)}" if have else ""
    return counters, Source("processor counters", have=False, detail=f"{why}{rest}", get=_remedy(why))


def _remedy(why: str) -> str:
    if "not allowed" in why:
        level = "unknown"
        with contextlib.suppress(OSError):
            level = Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
        return f"sysctl kernel.perf_event_paranoid=1 (now {level})"
    return "a machine of its own, or a virtual machine with a virtual PMU; counts by valgrind stand in for them"
