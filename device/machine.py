"""What the processor and the operating system say about themselves."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import statistics
from pathlib import Path

from device.types import Conditions


@functools.lru_cache(maxsize=1)
def _cpu_info() -> dict[str, str]:
    """Return the first processor's lines of /proc/cpuinfo; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_name() -> str:
    """Model name of the processor, as it calls itself."""
    info = _cpu_info()
    return info.get("model name") or info.get("CPU implementer", "") or platform.processor() or platform.machine()


def cpu_features() -> tuple[str, ...]:
    """Feature flags of the processor, sorted: what `-march=native` depends on."""
    info = _cpu_info()
    return tuple(sorted((info.get("flags") or info.get("Features") or "").split()))


def notable_features() -> tuple[str, ...]:
    """Return the flags that matter to an author of kernels: vector and matrix units."""
    wanted = ("sse4_2", "avx", "avx2", "avx512", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm", "fphp", "vnni")
    return tuple(flag for flag in cpu_features() if flag.startswith(wanted))


def conditions() -> Conditions:
    """What the machine is doing now: load, and frequency where it says so."""
    cores = os.sched_getaffinity(0)
    try:
        blocks = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")
    except OSError:
        blocks = []
    found = []
    for block in blocks:
        pairs = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
        if int(pairs.get("processor", "-1")) in cores and "cpu MHz" in pairs:
            found.append(float(pairs["cpu MHz"]))
    governor = None
    with contextlib.suppress(OSError):
        place = Path(f"/sys/devices/system/cpu/cpu{min(cores)}/cpufreq/scaling_governor")
        governor = place.read_text(encoding="ascii").strip()
    mhz = (min(found), statistics.median(found), max(found)) if found else None
    return Conditions(os.getloadavg()[0], mhz, governor)


def operating_system() -> str:
    """System, release and machine in one line."""
    name = os.uname()
    return f"{name.sysname} {name.release} {name.machine}"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))
