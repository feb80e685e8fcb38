"""The device that is not there: for a ledger or an agent that must never judge anything; it refuses all by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device.arena import Arena
from device.errors import DeviceUnavailable, UnknownLanguage
from device.port import Session
from device.timing import Timer
from device.types import Build, DeviceDescription, Limits


class NullBackend:
    """Compiles nothing and runs nothing; it is only ever there when it was asked for."""

    kind = "null"
    languages: tuple[str, ...] = ()

    def describe(self) -> DeviceDescription:
        """Describe nothing."""
        return DeviceDescription(kind=self.kind, name="no device", cores=0)

    def build(self, source: str, language: str, limits: Limits, masks: Sequence[Path] = ()) -> Build:  # noqa: ARG002
        """Raise UnknownLanguage."""
        raise UnknownLanguage(self.kind, language, self.languages)

    def open(self, build: Build, arena: Arena, limits: Limits, threads: int, *, fill: int = 0) -> Session:  # noqa: ARG002
        """Raise DeviceUnavailable."""
        raise DeviceUnavailable(self.kind, "it runs nothing", "Choose another device, such as cpu")

    def timer(self) -> Timer:
        """Raise DeviceUnavailable."""
        raise DeviceUnavailable(self.kind, "it times nothing", "Choose another device, such as cpu")
