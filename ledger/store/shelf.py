"""What is kept beside the records: snapshots, which are a cache, and the checkpoints that were signed."""

from __future__ import annotations

import threading
from typing import Final, Protocol

import msgspec

STATE: Final = "state"
SEALS: Final = "seals"
MADE_OF_TEXTS: Final = (STATE, SEALS)
"""Kinds of snapshots that a redaction drops."""


class Snapshot(msgspec.Struct, frozen=True):
    """What a library folds to at a sequence."""

    sequence: int
    hash: bytes
    """Of the record at that sequence: a snapshot of another history has another one."""
    data: bytes


class Shelf(Protocol):
    """Safe to share between threads. Losing all snapshots costs time and nothing else."""

    def put_snapshot(self, library: str, kind: str, snapshot: Snapshot) -> None:
        """Keep a snapshot in the place of any other at its sequence. Raises WriterHeldError, StoreUnavailableError."""
        ...

    def snapshot(self, library: str, kind: str, *, until: int) -> Snapshot | None:
        """Find the newest undamaged snapshot at or before a sequence."""
        ...

    def drop_snapshots(self, library: str, kind: str | None = None, *, sequence: int | None = None) -> None:
        """Forget them: all, those of a kind, or the one at a sequence."""
        ...

    def snapshot_sequences(self, library: str, kind: str) -> list[int]:
        """Where snapshots stand, rising."""
        ...

    def put_checkpoint(self, library: str, size: int, note: str) -> None:
        """Keep a signed checkpoint, once a size."""
        ...

    def checkpoints(self, library: str) -> list[tuple[int, str]]:
        """All signed checkpoints as (size, note), by size."""
        ...


class MemoryShelf:
    """See `Shelf`."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._snapshots: dict[tuple[str, str], dict[int, Snapshot]] = {}
        self._checkpoints: dict[str, dict[int, str]] = {}

    def put_snapshot(self, library: str, kind: str, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._mutex:
            self._snapshots.setdefault((library, kind), {})[snapshot.sequence] = snapshot

    def snapshot(self, library: str, kind: str, *, until: int) -> Snapshot | None:
        """Find the newest at or before a sequence."""
        with self._mutex:
            kept = self._snapshots.get((library, kind), {})
            at = max((sequence for sequence in kept if sequence <= until), default=None)
            return None if at is None else kept[at]

    def drop_snapshots(self, library: str, kind: str | None = None, *, sequence: int | None = None) -> None:
        """Forget them."""
        with self._mutex:
            for key, kept in self._snapshots.items():
                if key[0] == library and kind in {None, key[1]}:
                    for at in list(kept):
                        if sequence in {None, at}:
                            del kept[at]

    def snapshot_sequences(self, library: str, kind: str) -> list[int]:
        """Where snapshots stand."""
        with self._mutex:
            return sorted(self._snapshots.get((library, kind), {}))

    def put_checkpoint(self, library: str, size: int, note: str) -> None:
        """Keep a signed checkpoint."""
        with self._mutex:
            self._checkpoints.setdefault(library, {}).setdefault(size, note)

    def checkpoints(self, library: str) -> list[tuple[int, str]]:
        """All signed checkpoints."""
        with self._mutex:
            return sorted(self._checkpoints.get(library, {}).items())
