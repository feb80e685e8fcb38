"""One library in memory: the state that its log folds to, and the indexes over it. A cache, dropped when in doubt."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ledger import errors
from ledger.domain import events as ev
from ledger.domain.state import State, initial
from ledger.store.log import Answer, Pending

if TYPE_CHECKING:
    from ledger.retrieval.dense import DenseIndex
    from ledger.retrieval.lexical import LexicalIndex


@dataclass(slots=True)
class Opened:
    """One library. Everything here is read and changed under its lock."""

    name: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    state: State = field(default_factory=initial)
    index: LexicalIndex | None = None
    dense: DenseIndex | None = None
    bare: set[str] | None = None
    """Experiences without a vector of the ledger's embedder."""
    pending: Pending | None = None
    """The last batch put in line, if it may not be stored yet: `state` is what the log will hold then."""
    keys: set[str] = field(default_factory=set)
    """Idempotency keys of batches in line."""
    deciding: bool = False
    """A command is under way on `state`."""

    kept: int = 0
    """Sequence of the last snapshot."""

    def forget(self) -> None:
        """Drop everything that can be read again from the log."""
        self.state = initial()
        self.forget_texts()

    def forget_texts(self) -> None:
        """Drop the indexes."""
        self.index = self.dense = self.bare = None

    def settle(self) -> bool:
        """Wait until the state is stored. False: it never will be, and was dropped. The lock is held."""
        pending, self.pending = self.pending, None
        self.keys.clear()
        if pending is None:
            return True
        try:
            stands = not isinstance(pending.wait(), Answer)
        except errors.LedgerError:
            # Whoever submitted it is told; here it is only known that the state did not come to be.
            stands = False
        if not stands:
            self.forget()
        return stands

    def lost(self, pending: Pending) -> None:
        """Drop the state that a batch was to make, and what was decided on it since."""
        with self.lock:
            if self.pending is pending:
                self.pending = None
                self.keys.clear()
            else:
                self.settle()
            self.forget()

    def follow(  # noqa: C901, PLR0912 - one case an event
        self, events: Sequence[ev.Event], blobs: Mapping[str, bytes]
    ) -> None:
        """Let the open indexes follow, so that what was just recorded is found by the next call."""
        index, dense, bare = self.index, self.dense, self.bare
        for event in events:
            match event:
                case ev.ExperienceRecorded():
                    if index is not None:
                        index.add(event.experience, event.title, blobs[event.body].decode())
                    if bare is not None:
                        bare.add(event.experience)
                case ev.ExperienceAmended():
                    if index is not None:
                        index.replace(event.experience, event.title, blobs[event.body].decode())
                    if dense is not None:
                        dense.remove(event.experience)
                    if bare is not None:
                        bare.add(event.experience)
                case ev.ExperienceRetired() | ev.ExperienceSuperseded():
                    if index is not None:
                        index.remove(event.experience)
                    if dense is not None:
                        dense.remove(event.experience)
                    if bare is not None:
                        bare.discard(event.experience)
                case ev.ExperienceEmbedded():
                    if dense is not None:
                        from ledger.retrieval.dense import unpack  # noqa: PLC0415

                        dense.put(event.experience, unpack(blobs[event.vector]))
                    if bare is not None:
                        bare.discard(event.experience)
                case _:
                    pass
