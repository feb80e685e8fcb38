"""What a device is to the judge: it describes itself, builds a candidate, runs it elsewhere, and brings a clock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from device.arena import Arena
from device.timing import Timer
from device.types import Build, Called, DeviceDescription, Ended, Limits


class Session(Protocol):
    """One candidate loaded in a process of its own, which shares an arena with the judge."""

    measures: tuple[str, ...]
    """Names of the confinements in force."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, *_: object) -> None:
        """End the process and everything that it started."""

    def load(self) -> Ended | None:
        """Wait until the candidate is loaded; return how its process ended if it did."""

    def describe(self, words: Sequence[int]) -> None:
        """Tell the process what a slot of the arena holds."""

    def call(self, slots: Sequence[int], seconds: float | None = None) -> Called | Ended:
        """Call the candidate once for each slot, in order; from its return to the next call nothing of it runs."""

    def cpu_ns(self) -> int:
        """Processor time that the process has used, from the operating system's books."""

    def waited_ns(self) -> int:
        """Time for which the process's threads were ready but had no core, all together."""

    def threads(self) -> int:
        """Count the process's threads."""


class Backend(Protocol):
    """One kind of device."""

    kind: str
    languages: tuple[str, ...]

    def describe(self) -> DeviceDescription:
        """Name the device and the software around it. Raises DeviceUnavailable."""

    def build(self, source: str, language: str, limits: Limits, masks: Sequence[Path] = ()) -> Build:
        """Compile a candidate. Raises UnknownLanguage and DeviceUnavailable."""

    def open(self, build: Build, arena: Arena, limits: Limits, threads: int, *, fill: int = 0) -> Session:
        """Load a built candidate in a process of its own; `fill` is what the memory holds that it frees, if not 0."""

    def timer(self) -> Timer:
        """Return the clock that times the reference on this device. Raises DeviceUnavailable."""
