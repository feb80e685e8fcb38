"""What the processor and the operating system say about themselves."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path


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


def operating_system() -> str:
    """System, release and machine in one line."""
    name = os.uname()
    return f"{name.sysname} {name.release} {name.machine}"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))
