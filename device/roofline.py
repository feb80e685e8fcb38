"""The shortest time that a call can take on this machine: what it must read, write and multiply, at measured rates.

A time below that is no speed but a mistake or a lie (the roofline model: Williams, Waterman and Patterson, CACM 52(4),
2009). The rates are the best of several tries of plain code, kept until the next boot; a busy machine shows them too
low, so they are measured anew before anything is refused, and only ever raised.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from device.arena import element_bytes
from device.operators.base import Case, Operator, TensorSpec
from device.sandbox import cache_folder, native

MARGIN = 2.0
"""Rates are taken to be this much better than measured: a kernel may use a way that the plain code does not."""

READS_EVERYTHING = frozenset({"elementwise", "reduction", "matmul", "attention"})
"""Families whose operators look at every element of their inputs; others may pick some."""

MULTIPLIES = frozenset({"matmul"})
"""Families where each output element is a sum of `accumulation` products."""

COLD_BYTES, WARM_BYTES = 64 << 20, 1 << 16
_TRIES, _AGAIN_SECONDS = 6, 0.5


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second from memory and from the nearest cache, and float operations a second, all threads together."""

    cold: float
    warm: float
    operations: float

    def best(self, other: Rates) -> Rates:
        """Return the higher of each."""
        return Rates(max(self.cold, other.cold), max(self.warm, other.warm), max(self.operations, other.operations))


@dataclass(frozen=True, slots=True)
class Floor:
    """The shortest time of one call, in milliseconds, and in words what it is made of."""

    ms: float
    words: str


def floor(operator: Operator, case: Case, rates: Rates, *, cold: bool) -> Floor:
    """Work out the floor for one case; `cold`: nothing of it is in a cache when the call begins."""
    moved, done = work(operator, case)
    rate = rates.cold if cold else rates.warm
    moving, doing = moved / (MARGIN * rate) * 1e3, done / (MARGIN * rates.operations) * 1e3
    words = (
        f"{moved / 1e6:.3g} MB at {MARGIN:g} x {rate / 1e9:.3g} GB/s, "
        f"{done / 1e6:.3g} M operations at {MARGIN:g} x {rates.operations / 1e9:.3g} G/s"
    )
    return Floor(max(moving, doing), words)


def work(operator: Operator, case: Case) -> tuple[int, int]:
    """Return the bytes that a call has to read and write, and the float operations that it has to do, at least."""
    outputs = operator.outputs(case)
    moved = sum(_bytes(spec) for spec in outputs)
    if operator.family in READS_EVERYTHING:
        moved += sum(_bytes(spec) for spec in case.inputs)
    done = sum(spec.elements for spec in outputs)
    if operator.family in MULTIPLIES and not any(spec.dtype in {"int8", "uint8", "bool"} for spec in case.inputs):
        done *= 2 * operator.accumulation(case)
    return moved, done


def _bytes(spec: TensorSpec) -> int:
    """Bytes of memory that hold the tensor's elements; an expanded axis holds none of its own."""
    return min(spec.elements, spec.storage) * element_bytes(spec.dtype)


def rates(threads: int, *, again: bool = False) -> Rates:
    """Return the machine's rates for so many threads, kept since the boot or measured now; `again` raises them."""
    path = cache_folder() / "rates" / f"{_boot()}-{threads}.json"
    kept = _read(path)
    if kept is not None and not again:
        return kept
    best = measure(threads)
    until = time.monotonic() + (_AGAIN_SECONDS if again else 0.0)
    while time.monotonic() < until:
        best = best.best(measure(threads))
    if kept is not None:
        best = best.best(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(asdict(best)), encoding="utf-8")
    partial.replace(path)
    return best


def measure(threads: int) -> Rates:
    """Measure all three rates, each as the best of a few tries; takes about 50 ms."""
    library = ctypes.CDLL(str(native().cache))
    read, multiply, flush = library.sagebook_read_seconds, library.sagebook_multiply_seconds, library.sagebook_make_cold
    read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    multiply.argtypes = [ctypes.c_int, ctypes.c_long]
    flush.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    read.restype = multiply.restype = ctypes.c_double
    flush.restype = None
    memory = np.ones(COLD_BYTES, dtype=np.uint8)
    address, share = memory.ctypes.data, WARM_BYTES // 2 * threads
    best = Rates(0.0, 0.0, 0.0)
    for _ in range(_TRIES):
        flush(address, COLD_BYTES)
        cold = COLD_BYTES / read(address, COLD_BYTES, threads, 1)
        warm = share * 100 / read(address, share, threads, 100)
        turns = 10_000
        done = 2 * 16 * 12 * turns * threads / multiply(threads, turns)
        best = best.best(Rates(cold, warm, done))
    return best


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return "unknown"


def _read(path: Path) -> Rates | None:
    try:
        return Rates(**{name: float(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
