"""The processor of this machine: candidates in C++, run in the jail, timed by the monotonic clock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device import machine, sandbox
from device.arena import Arena
from device.errors import UnknownLanguage
from device.languages import cpp, python
from device.timing import MonotonicTimer, Timer
from device.types import Build, DeviceDescription, Limits
from device.worker import Worker


class CpuBackend:
    """Compiles with g++ and runs in a child process."""

    kind = "cpu"
    languages = ("cpp", "python")

    def describe(self) -> DeviceDescription:
        """Name the processor, its cores and the compiler. Raises CompilerMissing."""
        return DeviceDescription(
            kind=self.kind,
            name=machine.cpu_name(),
            cores=machine.cores(),
            features=machine.notable_features(),
            compiler=cpp.compiler_version(sandbox.compiler()),
        )

    def build(self, source: str, language: str, limits: Limits, masks: Sequence[Path] = ()) -> Build:
        """Compile a candidate. Raises UnknownLanguage, CompilerMissing and SandboxBroken."""
        if language not in self.languages:
            raise UnknownLanguage(self.kind, language, self.languages)
        build = python.build if language == "python" else cpp.build
        return build(source, limits, masks)

    def open(self, build: Build, arena: Arena, limits: Limits, threads: int, *, fill: int = 0) -> Worker:
        """Start a worker with the built kernel. Raises SandboxBroken."""
        if build.artefact is None:
            raise ValueError("a candidate that was not built cannot be opened")
        return Worker(build.artefact, arena, limits, threads, fill=fill)

    def timer(self) -> Timer:
        """Return the monotonic clock."""
        return MonotonicTimer()
