"""One class for each thing that can go wrong in the device house; a verdict on a kernel is never an error.

Each error names the thing that stands in the way and what clears it.
"""

# ruff: noqa: N818  (an error is named for what happened; its root says that it is one)

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class DeviceError(Exception):
    """Root of every error that the device house raises on purpose."""


class UnknownOperator(DeviceError):
    """No operator of this name is in the suite."""

    def __init__(self, name: str, close: Sequence[str] = (), known: int = 0) -> None:
        self.name, self.close, self.known = name, tuple(close), known
        hint = f"; close names: {', '.join(close)}" if close else ""
        super().__init__(f"no operator is named {name!r}{hint}; `sagebook device operators` lists all {known}")


class UnknownSuite(DeviceError):
    """No suite of operators has this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(f"no suite of operators is named {name!r}; known suites: {', '.join(known)}")


class InvalidOperator(DeviceError):
    """An operator, a case or a tensor of the suite is defined in a way that cannot be judged."""

    def __init__(self, subject: str, problem: str) -> None:
        self.subject, self.problem = subject, problem
        super().__init__(f"{subject}: {problem}")


class UnknownDevice(DeviceError):
    """No backend has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(f"no device is named {name!r}; known devices: {', '.join(known)}")


class UnknownLanguage(DeviceError):
    """The device does not compile this language."""

    def __init__(self, device: str, language: str, known: tuple[str, ...]) -> None:
        self.device, self.language, self.known = device, language, known
        names = ", ".join(known) or "none yet"
        super().__init__(f"the {device} device does not compile {language!r}; its languages: {names}")


class UnknownMode(DeviceError):
    """The judge has no mode or rule of this name."""

    def __init__(self, what: str, name: str, known: tuple[str, ...]) -> None:
        self.what, self.name, self.known = what, name, known
        super().__init__(f"no {what} is named {name!r}; known: {', '.join(known)}")


class DeviceUnavailable(DeviceError):
    """The device cannot be used on this machine; says what is missing and the way to get it."""

    def __init__(self, device: str, missing: str, remedy: str) -> None:
        self.device, self.missing, self.remedy = device, missing, remedy
        super().__init__(f"the {device} device cannot be used here: {missing}. {remedy}")


class CompilerMissing(DeviceError):
    """There is no usable g++."""

    def __init__(self, compiler: str, detail: str = "") -> None:
        self.compiler = compiler
        more = f" ({detail})" if detail else ""
        super().__init__(f"{compiler} was not found or does not run{more}; on Debian: apt-get install g++")


class ReferenceUnavailable(DeviceError):
    """The torch reference cannot be computed here."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"torch cannot be imported ({detail}); pip install 'sagebook[device]'")


class NotDiagnosable(DeviceError):
    """A diagnosis cannot be made of a candidate in this language, on this device, or by a tool of this name."""

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        super().__init__(f"no diagnosis for the {what} {name!r}; known: {', '.join(known)}")


class SandboxBroken(DeviceError):
    """The judge's own helper process failed: a fault of the machine or of the judge, never of the kernel."""

    def __init__(self, doing: str, detail: str) -> None:
        self.doing, self.detail = doing, detail
        super().__init__(
            f"the sandbox failed while {doing}: {detail}; `sagebook device doctor` shows what it found here"
        )


class JudgeKeyUnreadable(DeviceError):
    """The judge's key file holds no usable key, or others may read it."""

    def __init__(self, path: Path, detail: str) -> None:
        self.path = path
        super().__init__(f"judge key {path}: {detail}; remove the file to have a new key made, or restore it")


class ReportRejected(DeviceError):
    """A report's signature does not fit its text, or its text is no report."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"this report cannot be trusted: {detail}")


class SuiteUnreadable(DeviceError):
    """A path holds no checkout of the suite that it was said to be."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(
            f"{path} is no checkout that can be read: {problem}; give the folder that holds the tasks' folders"
        )


class UnknownTask(DeviceError):
    """A suite has no task of this name, or more than one."""

    def __init__(self, name: str, close: Sequence[str]) -> None:
        self.name, self.close = name, tuple(close)
        hint = f"; close names: {', '.join(close)}" if close else ""
        super().__init__(f"the suite has no one task named {name!r}{hint}; `sagebook device suite PATH` lists all")


class TaskRefused(DeviceError):
    """A task of a suite cannot be judged: what stands in the way is in it, not in any candidate."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"task {name} is refused: {reason}")
