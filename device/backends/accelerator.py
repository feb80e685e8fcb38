"""What the npu and the cuda device share: torch brings the device, its names, its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from device import machine
from device.arena import Arena
from device.errors import DeviceUnavailable, UnknownLanguage
from device.port import Session
from device.timing import EventTimer, Timer
from device.types import Build, DeviceDescription, Limits

LoadTorch = Callable[[], ModuleType]


class AcceleratorBackend:
    """A device that torch drives through a namespace such as `torch.npu`; what differs is in the subclasses.

    `load` imports torch with the device's extension; tests pass another.
    """

    kind = ""
    namespace = ""
    remedy = ""
    languages: tuple[str, ...] = ()

    def __init__(self, load: LoadTorch | None = None) -> None:
        self._load: LoadTorch = load or self._import

    def _import(self) -> ModuleType:
        """Import torch as this device needs it. Raises DeviceUnavailable."""
        raise NotImplementedError

    def accelerator(self) -> Any:
        """Return torch's namespace for the device. Raises DeviceUnavailable, saying what is missing."""
        namespace = getattr(self._load(), self.namespace, None)
        if namespace is None:
            raise DeviceUnavailable(self.kind, f"this torch has no torch.{self.namespace}", self.remedy)
        try:
            usable, count = bool(namespace.is_available()), int(namespace.device_count())
        except Exception as error:  # a broken driver is named, never taken for no device
            detail = f"torch.{self.namespace} fails with {type(error).__name__}: {error}"
            raise DeviceUnavailable(self.kind, detail, "Look at the driver first") from error
        if not usable or count < 1:
            raise DeviceUnavailable(self.kind, f"torch.{self.namespace} finds no device", self.remedy)
        return namespace

    def describe(self) -> DeviceDescription:
        """Name the first device and the toolkit. Raises DeviceUnavailable."""
        accelerator = self.accelerator()
        return DeviceDescription(
            kind=self.kind, name=str(accelerator.get_device_name(0)), cores=machine.cores(), toolkit=self.toolkit()
        )

    def toolkit(self) -> str | None:
        """Version of the toolkit below torch, None when it does not say."""
        raise NotImplementedError

    def build(self, source: str, language: str, limits: Limits, masks: Sequence[Path] = ()) -> Build:  # noqa: ARG002
        """Compile a candidate. Raises DeviceUnavailable, then UnknownLanguage: no language is compiled here yet."""
        self._no_language(language)

    def open(self, build: Build, arena: Arena, limits: Limits, threads: int, *, fill: int = 0) -> Session:  # noqa: ARG002
        """Start a session with a built kernel: there can be none."""
        self._no_language("a built kernel")

    def timer(self) -> Timer:
        """Return a timer over the device's events. Raises DeviceUnavailable."""
        return EventTimer(self.accelerator())

    def _no_language(self, language: str) -> NoReturn:
        self.accelerator()
        raise UnknownLanguage(self.kind, language, self.languages)
