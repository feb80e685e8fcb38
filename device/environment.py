"""What verdicts of a device are made under, for those who must say so before the first report."""

from __future__ import annotations

import re

from device import backends


def environment(device: str = "cpu") -> dict[str, str]:
    """Chip, toolkit and compiler of a device, as reports name them; what it does not say is left out.

    Where a device has no toolkit of its own, the compiler is what a kernel's behaviour depends on, and its version
    stands for it. Raises UnknownDevice, DeviceUnavailable, CompilerMissing.
    """
    description = backends.get(device).describe()
    compiler = description.compiler or ""
    version = re.search(r"\d+(?:\.\d+)+", compiler)
    toolkit = description.toolkit or (version.group() if version else "")
    told = {"chip": description.name, "toolkit": toolkit, "compiler": compiler}
    return {name: value for name, value in told.items() if value}
