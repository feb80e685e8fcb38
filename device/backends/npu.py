"""An Ascend NPU through torch_npu: what it is called, how it is timed, and what a machine needs to have one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

from device.backends.accelerator import AcceleratorBackend
from device.errors import DeviceUnavailable

REMEDY = (
    "Install CANN (set_env.sh sourced) and the driver, then `pip install 'sagebook[npu]'` with the torch_npu that "
    "pairs with them, in an environment of its own"
)


class NpuBackend(AcceleratorBackend):
    """Timed by torch_npu's events; kernels in Ascend C or Triton need a language that this version does not have."""

    kind = "npu"
    namespace = "npu"
    remedy = REMEDY

    def _import(self) -> ModuleType:
        """Import torch with torch_npu beside it. Raises DeviceUnavailable."""
        if importlib.util.find_spec("torch_npu") is None:  # before torch, which takes its time to load
            raise DeviceUnavailable(self.kind, "torch_npu is not installed (the `npu` extra)", REMEDY)
        # With torch_npu installed but no CANN, `import torch` itself fails when it loads its extensions on its own.
        before = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        try:
            import torch  # noqa: PLC0415  (slow, and may be absent)
            import torch_npu  # noqa: F401, PLC0415  (registers torch.npu)
        except ModuleNotFoundError as error:
            raise DeviceUnavailable(self.kind, f"{error.name} is not installed (the `npu` extra)", REMEDY) from error
        except (ImportError, RuntimeError, OSError) as error:
            missing = f"torch_npu is installed but does not load: {error}"
            raise DeviceUnavailable(self.kind, missing, REMEDY) from error
        finally:
            if before is None:
                del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
            else:
                os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = before
        return torch

    def toolkit(self) -> str | None:
        """Version of CANN, from the folder that its set_env.sh names."""
        return cann_version()


def cann_home() -> Path | None:
    """Return the folder of CANN: $ASCEND_HOME_PATH, or its usual place."""
    for place in (os.environ.get("ASCEND_HOME_PATH"), "/usr/local/Ascend/ascend-toolkit/latest"):
        if place and Path(place).is_dir():
            return Path(place)
    return None


def cann_version() -> str | None:
    """Return the version of CANN as its own files give it, None when there is no CANN or none says so."""
    home = cann_home()
    if home is None:
        return None
    for path in sorted(home.glob("**/ascend_toolkit_install.info")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("version="):
                return f"CANN {line.removeprefix('version=').strip()}"
    return None
