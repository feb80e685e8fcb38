"""The memory that SB_DUMP writes to, read by the judge: named pieces of tensors, whatever a candidate made of them.

The candidate's process can write here as it likes, so nothing in it is believed: what does not fit is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from device.arena import NUMPY_DTYPES, Array, element_bytes
from device.operators.base import DTYPES

MAGIC, NAME_BYTES = 0x53424456, 64
HEADER, RECORD = 32, 40 + NAME_BYTES
"""Bytes of a region's and of a record's head (device/diagnose/native/wrap.cpp)."""

MOST_BYTES, LEAST_BYTES = 64 << 20, 1 << 20
MOST_TENSORS = 64

_NAMES = {number: name for name, number in DTYPES.items()}


@dataclass(slots=True)
class Tensor:
    """One named intermediate result: its pieces in the order of their calls, with the element where each begins."""

    name: str
    dtype: str
    pieces: list[tuple[int, Array]] = field(default_factory=list)
    placed: bool = True
    """Whether each piece says where it belongs; else they follow one another in the order of their calls."""

    @property
    def elements(self) -> int:
        """How many elements it reaches over."""
        return max((first + piece.size for first, piece in self.pieces), default=0)

    def put_together(self, elements: int) -> tuple[Array, Array]:
        """Return so many elements in one row, and marks on those that some piece holds."""
        row = np.zeros(elements, dtype=NUMPY_DTYPES[self.dtype])
        held = np.zeros(elements, dtype=bool)
        for first, piece in self.pieces:
            row[first : first + piece.size] = piece[: max(0, elements - first)]
            held[first : first + piece.size] = True
        return row, held


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a region holds: tensors in the order of their first pieces, pieces without room, and what is broken."""

    tensors: tuple[Tensor, ...] = ()
    lost: int = 0
    problem: str = ""


def size_for(elements: int) -> int:
    """Bytes of the region for a case of so many elements of inputs and outputs: room for each four times over."""
    return min(MOST_BYTES, max(LEAST_BYTES, 4 * 8 * elements)) // 8 * 8


def read(memory: Array) -> Recorded:
    """Read a region, given as bytes."""
    magic, capacity, used, lost = (int(word) for word in memory[:HEADER].view(np.int64))
    if magic != MAGIC:
        return Recorded()
    if capacity != memory.size - HEADER or not 0 <= used <= capacity:
        return Recorded(problem="the region's head was overwritten")
    found: dict[str, Tensor] = {}
    at, end = HEADER, HEADER + used
    while at + RECORD <= end:
        ready, size, code, count, first = (int(word) for word in memory[at : at + 40].view(np.int64))
        dtype = _NAMES.get(code)
        if dtype is None or not RECORD <= size <= end - at or size % 8 or not count >= 0:
            return Recorded(tuple(found.values()), lost, "a record was overwritten")
        if count * element_bytes(dtype) > size - RECORD:
            return Recorded(tuple(found.values()), lost, "a record was overwritten")
        if ready == 1:
            raw = memory[at + RECORD : at + RECORD + count * element_bytes(dtype)]
            name = bytes(memory[at + 40 : at + RECORD]).partition(b"\0")[0].decode(errors="replace")
            problem = _take(found, name, dtype, first, raw.copy().view(NUMPY_DTYPES[dtype]))
            if problem:
                return Recorded(tuple(found.values()), lost, problem)
        at += size
    return Recorded(tuple(found.values()), lost)


def _take(found: dict[str, Tensor], name: str, dtype: str, first: int, piece: Array) -> str:
    """Add one piece; say what is wrong with it, if anything."""
    if name not in found:
        if len(found) == MOST_TENSORS:
            return f"there are more than {MOST_TENSORS} names"
        found[name] = Tensor(name, dtype)
    tensor = found[name]
    if tensor.dtype != dtype:
        return f"{name!r} is {tensor.dtype} in one piece and {dtype} in another"
    if first > MOST_BYTES:
        return f"a piece of {name!r} begins at element {first}, beyond every tensor"
    if first < 0:
        tensor.placed = False
        first = tensor.elements
    tensor.pieces.append((first, piece))
    return ""
