"""How a worker's end is put into words: a hang, a crash, memory, a forbidden call, each as what it is."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import dataclass

from device.types import Ended, Ending

_LOAD_FAILED = 122
_NO_ROOM = ("Cannot allocate memory", "cannot map", "failed to map")

# Calls that candidates are known to try; any other is named by its number.
_X86_64 = {
    2: "open", 41: "socket", 42: "connect", 49: "bind", 56: "clone", 57: "fork", 58: "vfork", 59: "execve", 62: "kill",
    85: "creat", 101: "ptrace", 157: "prctl", 257: "openat", 310: "process_vm_readv", 311: "process_vm_writev",
    319: "memfd_create", 322: "execveat", 9: "mmap of executable memory", 10: "mprotect to executable memory",
    87: "unlink", 82: "rename", 83: "mkdir", 90: "chmod", 321: "bpf", 1: "write", 272: "unshare", 165: "mount",
    298: "perf_event_open", 425: "io_uring_setup", 234: "tgkill", 38: "setitimer", 222: "timer_create",
}  # fmt: skip
_AARCH64 = {
    198: "socket", 203: "connect", 200: "bind", 220: "clone", 221: "execve", 129: "kill", 117: "ptrace", 56: "openat",
    270: "process_vm_readv", 271: "process_vm_writev", 279: "memfd_create", 281: "execveat", 64: "write",
    222: "mmap of executable memory", 226: "mprotect to executable memory", 35: "unlinkat", 167: "prctl",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Death:
    """All that is known about the end of a worker; `note` holds the words of `Note` in device/native/protocol.h."""

    status: int
    hung_seconds: float | None
    loaded: bool
    note: tuple[int, ...]
    said: str
    peak_bytes: int
    memory_limit: int


def call_name(number: int) -> str:
    """Name a system call of this machine by its number."""
    table = _AARCH64 if os.uname().machine == "aarch64" else _X86_64
    return table.get(number, f"system call {number}" if number >= 0 else "one that it hid from its signal handler")


def classify(death: Death) -> Ended:
    """Tell what ended the process, from facts that the judge saw, with the worker's note only to word it."""
    doing = "during a call" if death.loaded else "while it was being loaded"
    said = f"; it said: {death.said[:400]}" if death.said else ""
    if death.hung_seconds is not None:
        return Ended("hang", f"the kernel did not return within {death.hung_seconds:g} s and was ended")
    if os.WIFEXITED(death.status):
        code = os.WEXITSTATUS(death.status)
        if code == _LOAD_FAILED and not death.loaded:
            how: Ending = "resource" if any(word in death.said for word in _NO_ROOM) else "crash"
            return Ended(how, f"the kernel could not be loaded{said}")
        return Ended("crash", f"the kernel ended its process with exit code {code} {doing}{said}")
    return _killed(death, os.WTERMSIG(death.status), doing, said)


def _killed(death: Death, number: int, doing: str, said: str) -> Ended:
    """Tell what a signal means."""
    _, address, error, syscall, refused = death.note
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    plain = {
        signal.SIGSYS: Ended(
            "refused", f"the kernel made a call that kernels may not make: {call_name(syscall)} {doing}"
        ),
        signal.SIGXFSZ: Ended("refused", f"the kernel wrote to a file {doing}"),
        signal.SIGXCPU: Ended("hang", "the kernel used up its processor time and was ended"),
    }
    if number in plain:
        return plain[signal.Signals(number)]
    starved = refused > 0 or error in {errno.ENOMEM, errno.EAGAIN} or death.peak_bytes > 0.9 * death.memory_limit
    if starved or number == signal.SIGKILL:
        limits = f"limit {death.memory_limit >> 20} MiB, peak {death.peak_bytes >> 20} MiB"
        return Ended("resource", f"the kernel ran out of memory or threads and ended with {name} ({limits}){said}")
    where = f" at address {address:#x}" if number in {signal.SIGSEGV, signal.SIGBUS} else ""
    return Ended("crash", f"the kernel crashed with {name}{where} {doing}{said}")
