"""A CUDA device through torch."""

from __future__ import annotations

from types import ModuleType

from device.backends.accelerator import AcceleratorBackend
from device.errors import DeviceUnavailable

REMEDY = "Install the NVIDIA driver and a torch built for CUDA (https://pytorch.org/get-started/locally)"


class CudaBackend(AcceleratorBackend):
    """Timed by CUDA events; kernels need a language that this version does not have."""

    kind = "cuda"
    namespace = "cuda"
    remedy = REMEDY

    def _import(self) -> ModuleType:
        """Import torch. Raises DeviceUnavailable."""
        try:
            import torch  # noqa: PLC0415  (slow, and may be absent)
        except (ImportError, RuntimeError) as error:
            raise DeviceUnavailable(self.kind, f"torch does not load: {error}", REMEDY) from error
        return torch

    def toolkit(self) -> str | None:
        """Version of CUDA that torch was built for."""
        version = getattr(getattr(self._load(), "version", None), "cuda", None)
        return None if version is None else f"CUDA {version}"
