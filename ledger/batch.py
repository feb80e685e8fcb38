"""What a caller asks in, and what one command decides."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.domain import events as ev
from ledger.domain.state import State, evolve
from ledger.store.log import Erasure


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, and under which idempotency key. `content` is what the key stands for."""

    actor: str
    key: str | None = None
    content: bytes = b""

    @property
    def digest(self) -> bytes:
        """SHA-256 of the request's content, 32 bytes."""
        return hashlib.sha256(self.content).digest()


class Batch:
    """What one command appends: events, applied to the state as they are decided, and the blobs that they name."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.events: list[ev.Event] = []
        self.blobs: dict[str, bytes] = {}
        self.erase: Erasure | None = None
        """What is taken out of the store with it."""
        self.first = state.sequence + 1
        """Sequence of the first event."""

    def emit(self, events: Sequence[ev.Event]) -> None:
        """Take what was decided; later decisions of the same command see it."""
        for event in events:
            # Before it is applied: a state that was half moved is known to have moved.
            self.events.append(event)
            evolve(self.state, event)

    def blob(self, data: bytes | str) -> str:
        """Store a text or file with the batch; returns its SHA-256."""
        content = data.encode() if isinstance(data, str) else data
        sha256 = hashlib.sha256(content).hexdigest()
        self.blobs[sha256] = content
        return sha256

    def numbered(self) -> list[tuple[int, ev.Event]]:
        """The events with the sequences that they get."""
        return list(enumerate(self.events, self.first))
