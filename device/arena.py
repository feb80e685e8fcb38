"""The memory that the judge and one worker share: a note page, then slots of guarded inputs and outputs.

The judge owns it. Each tensor lies between guard zones; an output is poisoned before each call, so that an element that
was never written is seen, and so are writes beside it. The file behind the memory is sealed: nobody can shrink it.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from device.operators.base import DTYPES, TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]

PAGE = 4096
GUARD = 4096
ALIGNMENT = 64
GUARD_BYTE = 0x7F
"""Fills what is not a tensor: as float32 this is 3.4e38, so that a sum or a maximum that reads too far shows it."""

NUMPY_DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "int32": np.int32,
    "int64": np.int64,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.uint8,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "complex64": np.complex64,
}
"""What holds the bits of each element type; numpy has no bfloat16."""

# F_ADD_SEALS and the seals, from linux/fcntl.h; Python names them from 3.8 on only on some builds.
_ADD_SEALS, _SEALS = 1033, 0x0001 | 0x0002 | 0x0004


@dataclass(frozen=True, slots=True)
class Place:
    """Where one tensor lies in the arena; the offset counts bytes from the arena's start."""

    spec: TensorSpec
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Slot:
    """Places of all tensors of one call, and the end of the slot."""

    number: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    begin: int
    end: int


def element_bytes(dtype: str) -> int:
    """Size of one element of that torch dtype name."""
    return int(np.dtype(NUMPY_DTYPES[dtype]).itemsize)


def lay_out(number: int, begin: int, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> Slot:
    """Place the tensors one after the other from byte `begin`, each with a guard zone on both sides."""
    places: list[Place] = []
    at = begin + GUARD
    for spec in (*inputs, *outputs):
        size = spec.storage * element_bytes(spec.dtype)
        places.append(Place(spec, at, size))
        at = -(-(at + size + GUARD) // ALIGNMENT) * ALIGNMENT
    return Slot(number, tuple(places[: len(inputs)]), tuple(places[len(inputs) :]), begin, -(-at // PAGE) * PAGE)


class Arena:
    """One sealed memory file, mapped here and handed to one worker."""

    def __init__(self, size: int) -> None:
        self.size = PAGE + size
        self.fd = os.memfd_create("sagebook-arena", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, _ADD_SEALS, _SEALS)
        self._map = mmap.mmap(self.fd, self.size)
        self.bytes: Array = np.frombuffer(self._map, dtype=np.uint8)
        self.clear_note()

    def close(self) -> None:
        """Give the memory back; arrays that still look into it keep it alive until they go."""
        os.close(self.fd)
        self.bytes = np.empty(0, dtype=np.uint8)

    def note(self) -> tuple[int, ...]:
        """Return the note page's words: signal, address, errno, system call, refused allocations."""
        return tuple(int(word) for word in self.bytes[:40].view(np.int64))

    def clear_note(self) -> None:
        """Forget the note, so that what is found there later was written later."""
        self.bytes[:PAGE] = 0
        self.bytes[24:32] = 0xFF

    def flat(self, place: Place) -> Array:
        """Return all the memory that a tensor reaches over, as one row of elements."""
        raw = self.bytes[place.offset : place.offset + place.bytes]
        return raw.view(NUMPY_DTYPES[place.spec.dtype])

    def view(self, place: Place) -> Array:
        """Return the tensor itself, with its shape and strides."""
        return strided(self.flat(place), place.spec)

    def guard(self, slot: Slot) -> None:
        """Fill the slot, its guard zones included, with the guard byte."""
        self.bytes[slot.begin : slot.end] = GUARD_BYTE

    def poison(self, slot: Slot, byte: int) -> None:
        """Fill every output of the slot, gaps between strided elements included, with one byte."""
        for place in slot.outputs:
            self.bytes[place.offset : place.offset + place.bytes] = byte

    def trespass(self, slot: Slot) -> str | None:
        """Say which guard zone of the slot was written to, with the first byte's distance from its tensor."""
        end = slot.begin
        before = "the start"
        for kind, places in (("input", slot.inputs), ("output", slot.outputs)):
            for number, place in enumerate(places):
                zone = self.bytes[end : place.offset]
                if hit := _first_change(zone):
                    return f"wrote {hit} bytes behind {before}, outside of every tensor"
                end, before = place.offset + place.bytes, f"the end of {kind} {number}"
        if hit := _first_change(self.bytes[end : slot.end]):
            return f"wrote {hit} bytes behind {before}, outside of every tensor"
        return None


def same_bytes(one: Array, other: Array) -> bool:
    """Whether two dense arrays hold the same bytes; several times as fast as comparing elements."""
    if one.nbytes != other.nbytes:
        return False
    return _memcmp(one.ctypes.data, other.ctypes.data, one.nbytes) == 0


def _memcmp(one: int, other: int, count: int) -> int:
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return int(compare(one, other, count))


def strided(flat: Array, spec: TensorSpec) -> Array:
    """View a row of elements with the spec's shape and strides."""
    size = flat.dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, spec.shape, tuple(step * size for step in spec.layout))


def _first_change(zone: Array) -> int:
    """Count bytes up to and including the first that is no longer the guard byte; 0 when none changed."""
    changed = zone != GUARD_BYTE
    return int(changed.argmax()) + 1 if changed.any() else 0


def describe(slot: Slot, attributes: Sequence[float]) -> list[int]:
    """Put a slot into the words of a DESCRIBE message (device/native/protocol.h)."""
    words = [1, slot.number, len(slot.inputs), len(slot.outputs), len(attributes)]
    for place in (*slot.inputs, *slot.outputs):
        spec = place.spec
        words += [place.offset, DTYPES[spec.dtype], len(spec.shape), *spec.shape, *spec.layout]
    words += [int(word) for word in np.asarray(attributes, dtype=np.float64).view(np.int64)]
    return words
