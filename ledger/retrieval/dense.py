"""Nearest experiences by the cosine of their vectors, exact up to a size, then through a coarse pass.

A scan is bound by memory. From `COARSE_FROM` vectors on it reads their leading principal components only and measures
the best of these exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]

COARSE_FROM: Final = 20_000
"""Vectors from which on the coarse pass pays."""
COARSE_DIMENSIONS: Final = 96
COARSE_POOL: Final = 2_000
"""Vectors of the coarse pass that are measured exactly."""


def unit(vector: Vector) -> Vector:
    """The vector at length 1, so that a product is a cosine. A zero vector stays one and is near nothing."""
    length = float(np.linalg.norm(vector))
    return vector if length == 0.0 else (vector / np.float32(length)).astype(np.float32)


def pack(vector: Vector) -> bytes:
    """Little-endian float32, as it is stored."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def unpack(data: bytes) -> Vector:
    """A stored vector."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


class DenseIndex:
    """Vectors by experience; one that is added is found by the next search."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._rows: Matrix = np.zeros((64, dimensions), dtype=np.float32)
        self._names: list[str] = []
        self._place: dict[str, int] = {}
        self._basis: Matrix | None = None
        self._coarse: Matrix | None = None
        self._coarse_size = 0

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._place

    def put(self, name: str, vector: Vector) -> None:
        """Add a vector, or replace the one of that name. Raises ValueError on another number of dimensions."""
        if vector.shape != (self.dimensions,):
            raise ValueError(f"vector of {name!r} has shape {vector.shape}, the index ({self.dimensions},)")
        place = self._place.get(name)
        if place is None:
            place = len(self._names)
            self._names.append(name)
            self._place[name] = place
            if place == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[place] = unit(vector)
        if self._basis is not None and self._coarse is not None:
            if place >= len(self._coarse):
                self._coarse = np.concatenate([self._coarse, np.zeros_like(self._coarse)])
            self._coarse[place] = self._rows[place] @ self._basis

    def remove(self, name: str) -> None:
        """Take a vector out; the last one moves into its place."""
        place = self._place.pop(name, None)
        if place is None:
            return
        last = len(self._names) - 1
        moved = self._names.pop()
        if place != last:
            self._names[place] = moved
            self._place[moved] = place
            self._rows[place] = self._rows[last]
            if self._coarse is not None:
                self._coarse[place] = self._coarse[last]

    def search(self, query: Vector, k: int, allow: Callable[[str], bool] | None = None) -> list[tuple[str, float]]:
        """The `k` nearest that are allowed, best first, ties by name, as (experience, cosine above 0)."""
        size = len(self._names)
        if size == 0 or k <= 0:
            return []
        wanted = unit(query)
        places, cosines = self._near(wanted, size)
        # Far more are ordered than asked for, because `allow` may turn many away.
        take = min(len(cosines), max(4 * k, 256))
        while True:
            best = np.argpartition(-cosines, take - 1)[:take] if take < len(cosines) else np.arange(len(cosines))
            found = [
                (self._names[places[i]], float(cosines[i]))
                for i in best[np.argsort(-cosines[best], kind="stable")]
                if cosines[i] > 0.0 and (allow is None or allow(self._names[places[i]]))
            ]
            if len(found) >= k or take >= len(cosines):
                found.sort(key=lambda hit: (-hit[1], hit[0]))
                return found[:k]
            take = min(len(cosines), take * 8)

    def _near(self, query: Vector, size: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Places and cosines of the vectors that were measured exactly."""
        if size < COARSE_FROM:
            return np.arange(size), self._rows[:size] @ query
        if self._basis is None or size > 2 * self._coarse_size:
            self._build_coarse(size)
        assert self._basis is not None  # noqa: S101 - built just above
        assert self._coarse is not None  # noqa: S101
        rough = self._coarse[:size] @ (query @ self._basis)
        places = np.argpartition(-rough, COARSE_POOL)[:COARSE_POOL]
        return places, self._rows[places] @ query

    def _build_coarse(self, size: int) -> None:
        """Principal components of a sample; they are kept until the index has doubled."""
        sample = self._rows[: size : max(1, size // 20_000)]
        _, directions = np.linalg.eigh(sample.T @ sample)
        kept = min(COARSE_DIMENSIONS, self.dimensions)
        self._basis = np.ascontiguousarray(directions[:, ::-1][:, :kept], dtype=np.float32)
        self._coarse = np.zeros((len(self._rows), kept), dtype=np.float32)
        self._coarse[:size] = self._rows[:size] @ self._basis
        self._coarse_size = size
