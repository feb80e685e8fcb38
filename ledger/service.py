"""The ledger as one object: commands in, events out, state kept as a fold. Only this module appends.

Every command runs under its library's lock: catch up with the log, decide, append what was decided at the sequence that
it was decided on. A lost race (another service on the same database) is decided again on the newer state.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import structlog
from pydantic import BaseModel

from ledger import errors, wire
from ledger.domain import events as ev
from ledger.domain.state import State, evolve, initial
from ledger.store import chain, codec
from ledger.store.log import Answer, AtSequence, Draft, Idempotency, Log, Stored

if TYPE_CHECKING:
    from ledger.retrieval.dense import DenseIndex
    from ledger.retrieval.embed import Embedder
    from ledger.retrieval.lexical import LexicalIndex

_RACES = 20
_NEAR = 32
"""Sequences that lie this close are cheaper to read together than apart."""
_TEXTS = (
    ev.ExperienceRecorded,
    ev.ExperienceAmended,
    ev.ExperienceRetired,
    ev.ExperienceSuperseded,
    ev.ExperienceEmbedded,
)
"""Events that change what can be found."""
_Answer = TypeVar("_Answer", bound=BaseModel | None)


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
        self._first = state.sequence + 1

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
        return list(enumerate(self.events, self._first))


@dataclass(slots=True)
class _Opened:
    """One library in memory: a cache of its log, dropped when in doubt."""

    name: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    state: State = field(default_factory=initial)
    index: LexicalIndex | None = None
    dense: DenseIndex | None = None
    bare: set[str] | None = None
    """Experiences without a vector of the ledger's embedder."""

    def forget(self) -> None:
        """Drop everything that can be read again from the log."""
        self.state = initial()
        self.forget_texts()

    def forget_texts(self) -> None:
        """Drop the indexes."""
        self.index = self.dense = self.bare = None


class Ledger:
    """All libraries of one database. Safe under threads."""

    def __init__(
        self, log: Log, *, now: Callable[[], str], new_id: Callable[[], str], embedder: Embedder | None = None
    ) -> None:
        self._log = log
        self._now = now
        self._new_id = new_id
        self.embedder = embedder
        self._opened: dict[str, _Opened] = {}
        self._guard = threading.Lock()
        self._say = structlog.get_logger("ledger")

    def close(self) -> None:
        """Let go of the database."""
        self._log.close()

    # --- reading ---------------------------------------------------------------------------------------------------

    def libraries(self) -> tuple[str, ...]:
        """Names of all libraries, sorted."""
        return self._log.libraries()

    def head(self, library: str) -> int:
        """The sequence at which a library ends. Raises UnknownLibraryError."""
        found = self._log.head(library).sequence
        if found == 0:
            raise errors.UnknownLibraryError(library, self.libraries())
        return found

    @contextmanager
    def reading(self, library: str) -> Iterator[State]:
        """The state now, for reading only. Raises UnknownLibraryError."""
        opened = self._open(library)
        with opened.lock:
            self._catch_up(opened)
            yield opened.state

    def as_of(self, library: str, sequence: int) -> State:
        """The state after that sequence, on its own. Raises InvalidInputError past the head."""
        head = self._log.head(library).sequence
        if head == 0:
            raise errors.UnknownLibraryError(library, self.libraries())
        if not 0 <= sequence <= head:
            raise errors.InvalidInputError(
                f"library {library!r} has no sequence {sequence}; it ends at {head}", library=library, head=head
            )
        state = initial()
        for recorded in self.recorded(library, until=sequence):
            _fold(state, recorded)
        return state

    def sequence_at(self, library: str, moment: datetime) -> int:
        """The last sequence recorded at or before a moment, by bisection; 0 where there is none.

        Times rise with the sequence as long as one clock writes them; where clocks differ, this is one of the places
        at which the time passes the moment.
        """
        low, high = 0, self.head(library)
        while low < high:
            middle = (low + high + 1) // 2
            found = next(iter(self._log.read(library, after=middle - 1, limit=1)))
            if datetime.fromisoformat(codec.decode(found.record).time) <= moment:
                low = middle
            else:
                high = middle - 1
        return low

    def recorded(self, library: str, *, after: int = 0, until: int | None = None) -> Iterator[codec.Recorded[ev.Event]]:
        """Typed events in order."""
        for stored in self._log.read(library, after=after, until=until):
            yield codec.decode(stored.record)

    def recorded_at(self, library: str, sequences: Sequence[int]) -> Iterator[codec.Recorded[ev.Event]]:
        """Typed events at these sequences, which rise. Near ones are read in one go."""
        start = 0
        while start < len(sequences):
            end = start + 1
            while end < len(sequences) and sequences[end] - sequences[end - 1] <= _NEAR:
                end += 1
            wanted = set(sequences[start:end])
            for stored in self._log.read(library, after=sequences[start] - 1, until=sequences[end - 1]):
                if stored.sequence in wanted:
                    yield codec.decode(stored.record)
            start = end

    def stored(self, library: str, *, after: int, limit: int) -> tuple[list[Stored], bytes, int]:
        """Up to `limit` records after a sequence, the hash before the first of them, and the head's sequence."""
        head = self._log.head(library)
        if head.sequence == 0:
            raise errors.UnknownLibraryError(library, self.libraries())
        rows = list(self._log.read(library, after=max(after - 1, 0), limit=limit + (after > 0)))
        previous = bytes(32)
        if after > 0 and rows and rows[0].sequence == after:
            previous = rows[0].hash
            rows = rows[1:]
        return rows[:limit], previous, head.sequence

    def verify(self, library: str) -> chain.Verdict:
        """Check every stored record against the hash chain and the head."""
        if self._log.head(library).sequence == 0 and not any(True for _ in self._log.read(library, limit=1)):
            raise errors.UnknownLibraryError(library, self.libraries())
        return chain.audit(self._log, library)

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its hash."""
        self._log.put_blob(sha256, data)

    def blob(self, sha256: str) -> bytes:
        """Content by its hash. Raises UnknownBlobError."""
        return self._log.blob(sha256)

    def text(self, sha256: str) -> str | None:
        """A blob as text; None where it was erased."""
        try:
            return self._log.blob(sha256).decode("utf-8", errors="replace")
        except errors.UnknownBlobError:
            return None

    # --- retrieval -------------------------------------------------------------------------------------------------

    def index(self, library: str) -> LexicalIndex:
        """The library's lexical index, up to date; call it inside the command that uses it."""
        from ledger.retrieval.lexical import LexicalIndex  # noqa: PLC0415 - numerical libraries, for retrieval alone

        opened = self._open(library)
        with opened.lock:
            if opened.index is None:
                opened.index = LexicalIndex()
                for item in opened.state.experiences.values():
                    if item.retired:
                        continue
                    opened.index.add(item.id, item.title, self.text(item.body) or "")
            return opened.index

    def dense(self, library: str, key: str, dimensions: int) -> DenseIndex:
        """The library's vectors of one embedding model, up to date; call it inside the command that uses it.

        Raises ValueError where stored vectors have other dimensions than the model has now.
        """
        from ledger.retrieval.dense import DenseIndex, unpack  # noqa: PLC0415

        opened = self._open(library)
        with opened.lock:
            if opened.dense is None or opened.dense.dimensions != dimensions:
                built = DenseIndex(dimensions)
                for item in opened.state.experiences.values():
                    if key in item.vectors and not item.retired:
                        built.put(item.id, unpack(self.blob(item.vectors[key])))
                opened.dense = built
            return opened.dense

    def without_vector(self, library: str, key: str) -> list[str]:
        """Live experiences that have no vector of this model yet."""
        opened = self._open(library)
        with opened.lock:
            self._catch_up(opened)
            if opened.bare is None:
                opened.bare = {
                    e.id for e in opened.state.experiences.values() if not e.retired and key not in e.vectors
                }
            return sorted(opened.bare)

    # --- writing ---------------------------------------------------------------------------------------------------

    def execute(
        self,
        library: str,
        call: Call,
        command: Callable[[Batch], None],
        answer: Callable[[Batch], _Answer],
        *,
        create: bool = False,
    ) -> _Answer | bytes:
        """Decide, append, answer. A repeated key returns the first answer as the bytes that were sent.

        Raises what the command refuses with; then nothing is stored.
        """
        opened = self._open(library, create=create)
        with opened.lock:
            kept = self._kept(library, call)
            if kept is not None:
                return kept
            for _ in range(_RACES):
                self._catch_up(opened)
                batch = Batch(opened.state)
                before = opened.state.sequence
                try:
                    command(batch)
                    result = answer(batch)
                    outcome = self._append(library, call, batch, before, result)
                except errors.SequenceConflictError:
                    opened.forget()
                    continue
                except BaseException:
                    if batch.events:
                        # The state has moved past what is stored; fold it again from the log.
                        opened.forget()
                    raise
                if outcome is not None:
                    opened.forget()
                    return outcome
                self._refresh_index(opened, batch)
                self._tell(library, call, batch)
                return result
        raise errors.SequenceConflictError(library, before, self._log.head(library).sequence)

    def _kept(self, library: str, call: Call) -> bytes | None:
        if call.key is None:
            return None
        kept = self._log.answer(library, call.key)
        if kept is None:
            return None
        if kept.digest != call.digest:
            raise errors.IdempotencyConflictError(library, call.key)
        return kept.answer

    def _append(self, library: str, call: Call, batch: Batch, before: int, result: BaseModel | None) -> bytes | None:
        """Store the batch; an answer comes back only where the key turned out to be used already."""
        if not batch.events:
            return None
        idempotency = None
        if call.key is not None:
            content = b"" if result is None else result.model_dump_json(by_alias=True).encode()
            idempotency = Idempotency(call.key, call.digest, content)
        outcome = self._log.append(
            library,
            [self._draft(batch.state, call, event) for event in batch.events],
            expected=AtSequence(before),
            idempotency=idempotency,
            blobs=batch.blobs,
        )
        return outcome.answer if isinstance(outcome, Answer) else None

    def _draft(self, state: State, call: Call, event: ev.Event) -> Draft:
        name, schema, payload = codec.encode(event)
        stage = getattr(event, "stage", None)
        task = getattr(event, "task", None)
        if task is None and stage is not None:
            task = state.stages[stage].task
        return Draft(name, schema, self._new_id(), self._now(), call.actor, task, stage, payload)

    def _refresh_index(self, opened: _Opened, batch: Batch) -> None:
        """Let the open indexes follow, so that what was just recorded is found by the next call."""
        index, dense, bare = opened.index, opened.dense, opened.bare
        for event in batch.events:
            match event:
                case ev.ExperienceRecorded():
                    if index is not None:
                        index.add(event.experience, event.title, self.text(event.body) or "")
                    if bare is not None:
                        bare.add(event.experience)
                case ev.ExperienceAmended():
                    if index is not None:
                        index.replace(event.experience, event.title, self.text(event.body) or "")
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

                        dense.put(event.experience, unpack(batch.blobs[event.vector]))
                    if bare is not None:
                        bare.discard(event.experience)
                case _:
                    pass

    def _tell(self, library: str, call: Call, batch: Batch) -> None:
        if batch.events:
            self._say.info(
                "appended",
                library=library,
                actor=call.actor,
                sequence=batch.state.sequence,
                events=len(batch.events),
                types=sorted({ev.NAME_OF[type(e)] for e in batch.events}),
            )

    # --- opening ---------------------------------------------------------------------------------------------------

    def _open(self, library: str, *, create: bool = False) -> _Opened:
        with self._guard:
            opened = self._opened.get(library)
            if opened is not None and (create or opened.state.sequence):
                return opened
            if not create and self._log.head(library).sequence == 0:
                raise errors.UnknownLibraryError(library, self._log.libraries())
            return self._opened.setdefault(library, _Opened(library))

    def _catch_up(self, opened: _Opened) -> None:
        """Fold what was appended since, by this or by another service."""
        texts_changed = False
        try:
            for stored in self._log.read(opened.name, after=opened.state.sequence):
                recorded = codec.decode(stored.record)
                texts_changed = texts_changed or isinstance(recorded.event, _TEXTS)
                _fold(opened.state, recorded)
        except BaseException:
            opened.forget()
            raise
        if texts_changed:
            opened.forget_texts()


def _fold(state: State, recorded: codec.Recorded[ev.Event]) -> None:
    """Move the state on. Raises LogCorruptError where the event names what no event before it brought."""
    try:
        evolve(state, recorded.event)
    except KeyError as error:
        raise errors.LogCorruptError(
            recorded.library,
            recorded.sequence,
            f"the event names {error}, which no record before it brought; `sagebook verify` finds where the log was changed",
        ) from error


def event_record(library: str, stored: Stored, previous: bytes) -> wire.EventRecord:
    """One record as the wire shows it."""
    place = codec.decode(stored.record)
    return wire.EventRecord(
        library=library,
        sequence=stored.sequence,
        type=place.type,
        schema_=place.schema,
        id=place.id,
        time=place.time,
        actor=place.actor,
        task=place.task,
        stage=place.stage,
        payload=codec.payload(stored.record),
        previous_hash=previous.hex(),
        hash=stored.hash.hex(),
    )
