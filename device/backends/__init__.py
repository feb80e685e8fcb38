"""One device a file, behind `device.port.Backend`; a device is chosen by name and never replaced by another."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from device.errors import UnknownDevice
from device.port import Backend

BACKENDS = {
    "cpu": ("device.backends.cpu", "CpuBackend"),
    "npu": ("device.backends.npu", "NpuBackend"),
    "cuda": ("device.backends.cuda", "CudaBackend"),
    "null": ("device.backends.null", "NullBackend"),
}


def get(name: str) -> Backend:
    """Return the backend of that name. Raises UnknownDevice."""
    if name not in BACKENDS:
        raise UnknownDevice(name, tuple(BACKENDS))
    module, kind = BACKENDS[name]
    return cast("Backend", getattr(import_module(module), kind)())
