"""From a log to states: now, as of a sequence or a moment; with snapshots, which are checked and may be missing."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, get_origin

import msgspec
import structlog

from ledger import errors
from ledger.domain import events as ev
from ledger.domain import state as state_module
from ledger.domain.model import FREQUENCY_COURSE
from ledger.domain.state import State, evolve_all, initial
from ledger.opened import Opened
from ledger.store import codec, redaction
from ledger.store.log import Log
from ledger.store.shelf import STATE, Snapshot
from ledger.store.walk import Walker

KIND = STATE
EVERY = 5_000
"""Events folded between two snapshots of one library."""
KEPT = 12
"""Snapshots a library; of more, those that lie closest together go."""
_TEXTS: frozenset[type[ev.Event]] = frozenset(
    (
        *(ev.ExperienceRecorded, ev.ExperienceAmended, ev.ExperienceRetired, ev.ExperienceSuperseded),
        *(ev.ExperienceEmbedded, ev.ExperienceRedacted),
    )
)
"""Events that change what can be found."""
_FEW = 2_000


class Folds:
    """Over one log. Safe under threads; who hands over an `Opened` holds its lock."""

    def __init__(self, log: Log, *, every: int = EVERY) -> None:
        self._log = log
        self._every = every
        self._codec = _StateCodec()
        self._walker = Walker(log)
        self._say = structlog.get_logger("ledger")

    def catch_up(self, opened: Opened) -> None:
        """Fold what was appended since, by this or by another service."""
        head = self._log.head(opened.name)
        try:
            if opened.state.sequence == 0 and head.sequence >= self._every:
                kept = self._kept(opened.name, head.sequence)
                if kept is not None:
                    opened.state, opened.kept = kept[1], kept[0]
            before = opened.state.sequence
            texts_changed = self._fold(opened.name, opened.state, head.sequence)
            if before and texts_changed and self._redacted_since(opened.name, before):
                # What it holds of earlier records may have been erased from them.
                opened.forget()
                self._fold(opened.name, opened.state, head.sequence)
        except BaseException:
            opened.forget()
            raise
        if texts_changed:
            opened.forget_texts()
        self.keep(opened)

    def keep(self, opened: Opened) -> None:
        """Take a snapshot where enough has happened since the last. `opened.state` is what is stored."""
        state = opened.state
        if state.sequence < opened.kept + self._every:
            return
        opened.kept = state.sequence
        hashes = self._log.hashes(opened.name, after=state.sequence - 1, until=state.sequence)
        if not hashes:
            return
        # Kept for later starts' sake: beside a service that writes, or on a full disk, this one does without.
        with contextlib.suppress(errors.WriterHeldError, errors.StoreUnavailableError):
            snapshot = Snapshot(state.sequence, hashes[0], self._codec.encode(state))
            self._log.shelf.put_snapshot(opened.name, KIND, snapshot)
            self._thin(opened.name)
            self._walker.seal(opened.name, after=max(state.sequence - 2 * self._every, 0), until=state.sequence)

    def as_of(self, library: str, sequence: int) -> State:
        """The state after that sequence, on its own."""
        kept = self._kept(library, sequence) if sequence >= self._every else None
        state = initial() if kept is None else kept[1]
        self._fold(library, state, sequence)
        return state

    def sequence_at(self, library: str, moment: datetime) -> int:
        """The last sequence recorded at or before a moment, by bisection; 0 where there is none.

        Times rise with the sequence as long as one clock writes them; where clocks differ, this is one of the places
        at which the time passes the moment.
        """
        low, high = 0, self._log.head(library).sequence
        while low < high:
            middle = (low + high + 1) // 2
            found = next(iter(self._log.read(library, after=middle - 1, limit=1)))
            if datetime.fromisoformat(codec.decode(found.record).time) <= moment:
                low = middle
            else:
                high = middle - 1
        return low

    def facts(self, library: str, *, until: int) -> Iterator[ev.Event]:
        """Events alone up to a sequence that is stored, checked on the way. Raises LogCorruptError."""
        return itertools.chain.from_iterable(self._walker.events(library, after=0, until=until))

    def _fold(self, library: str, state: State, until: int) -> bool:
        """Move the state on to `until`, checking the log on the way. True: what can be found may have changed."""
        texts_changed = False
        with _without_collection(until - state.sequence):
            for events in self._walker.events(library, after=state.sequence, until=until):
                try:
                    evolve_all(state, events)
                except KeyError as error:
                    raise errors.LogCorruptError(
                        library,
                        state.sequence,
                        f"the event names {error}, which no record before it brought; "
                        "`sagebook verify` finds where the log was changed",
                    ) from error
                texts_changed = texts_changed or not _TEXTS.isdisjoint(map(type, events))
        return texts_changed

    def _redacted_since(self, library: str, sequence: int) -> bool:
        told = self._log.of_type(library, redaction.TYPE)
        return bool(told) and codec.decode(told[-1]).sequence > sequence

    def _kept(self, library: str, until: int) -> tuple[int, State] | None:
        """The newest snapshot that the log and this version agree with. Others met on the way are dropped."""
        while True:
            try:
                found = self._log.shelf.snapshot(library, KIND, until=until)
            except errors.StoreUnavailableError:  # damaged beyond reading
                return None
            if found is None:
                return None
            state = self._codec.decode(found.data)
            agrees = self._log.hashes(library, after=found.sequence - 1, until=found.sequence) == [found.hash]
            if agrees and state is not None and state.sequence == found.sequence:
                return found.sequence, state
            self._say.info("snapshot_dropped", library=library, sequence=found.sequence, of_this_log=agrees)
            until = found.sequence - 1
            with contextlib.suppress(errors.WriterHeldError, errors.StoreUnavailableError):
                self._log.shelf.drop_snapshots(library, KIND, sequence=found.sequence)

    def _thin(self, library: str) -> None:
        """Keep few: the newest, and older ones the farther apart."""
        kept = self._log.shelf.snapshot_sequences(library, KIND)
        while len(kept) > KEPT:
            gaps = [(kept[i + 1] - kept[i - 1]) / (kept[-1] - kept[i] + 1) for i in range(1, len(kept) - 1)]
            victim = kept.pop(gaps.index(min(gaps)) + 1)
            self._log.shelf.drop_snapshots(library, KIND, sequence=victim)


class _StateCodec:
    """States as bytes that name the code which they hold for: a state of other code is no state."""

    def __init__(self) -> None:
        self._mark = b""
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self._decoder: msgspec.msgpack.Decoder[State] | None = None

    def mark(self) -> bytes:
        """32 bytes that change with the code that folds."""
        if not self._mark:
            files = [*sorted(Path(str(state_module.__file__)).parent.glob("*.py")), Path(str(codec.__file__))]
            self._mark = hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()
        return self._mark

    def encode(self, state: State) -> bytes:
        """The state, behind the mark of this code."""
        return self.mark() + self._encoder.encode(state)

    def decode(self, data: bytes) -> State | None:
        """The state; None where other code wrote it, or it can not be read."""
        if data[:32] != self.mark():
            return None
        if self._decoder is None:
            self._decoder = msgspec.msgpack.Decoder(State, dec_hook=_made)
        try:
            with _without_collection(_FEW):
                state = self._decoder.decode(data[32:])
        except msgspec.MsgspecError:
            return None
        # One object a conflict: what settles it must be seen from both of its experiences.
        state.conflicts_of = {
            name: [state.conflicts[item.id] for item in items] for name, items in state.conflicts_of.items()
        }
        return state


def _plain(value: Any) -> Any:
    if isinstance(value, deque):
        return list(value)
    raise NotImplementedError(type(value))


def _made(kind: type, value: Any) -> Any:
    if get_origin(kind) is deque:
        # The only one there is; how many it holds is not part of its type.
        return deque(value, maxlen=FREQUENCY_COURSE)
    raise NotImplementedError(kind)


@contextlib.contextmanager
def _without_collection(events: int) -> Iterator[None]:
    """A long fold makes what stays: looking through it for garbage again and again would double its time."""
    if events < _FEW or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
