"""The ledger as one object: commands in, events out, state kept as a fold. Only this module appends.

Every command decides under its library's lock: catch up with the log, decide, put what was decided in line at the
sequence that it was decided on. It is answered out of the lock, once that is durable; meanwhile others decide on the
state that it makes, and share its commit. A lost race (another service on the same database) is decided again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog
from pydantic import BaseModel

from ledger import errors
from ledger.batch import Batch, Call
from ledger.domain import events as ev
from ledger.domain.state import State
from ledger.folding import Folds
from ledger.opened import Opened
from ledger.progress import Progress
from ledger.proofs import Proofs
from ledger.races import tries
from ledger.record import event_record
from ledger.store import chain, codec
from ledger.store.checkpoint import LogKey
from ledger.store.log import ERASED, Answer, AtSequence, Draft, Idempotency, Log, Pending, Stored

if TYPE_CHECKING:
    from ledger.retrieval.dense import DenseIndex
    from ledger.retrieval.embed import Embedder
    from ledger.retrieval.lexical import LexicalIndex

_NEAR = 32  # sequences that lie this close are cheaper to read together than apart
__all__ = ["Batch", "Call", "Ledger", "event_record"]
_Answer = TypeVar("_Answer", bound=BaseModel | None)


@dataclass(frozen=True, slots=True)
class _Decided(Generic[_Answer]):
    """A batch in line, and the answer to give once it is stored."""

    batch: Batch
    answer: _Answer
    pending: Pending | None  # None: there was nothing to store


class Ledger:
    """All libraries of one database. Safe under threads."""

    def __init__(
        self,
        log: Log,
        *,
        now: Callable[[], str],
        new_id: Callable[[], str],
        embedder: Embedder | None = None,
        key: Callable[[], LogKey] = LogKey.fresh,
    ) -> None:
        """`key` gives the key that signs checkpoints, when the first is asked for; by default one for this process."""
        self._log = log
        self._now = now
        self._new_id = new_id
        self.embedder = embedder
        self.proofs, self.progress = Proofs(log, key), Progress()
        self.judges: frozenset[str] = frozenset()  # those whose reports are taken; empty: any judge's
        self._folds = Folds(log)
        self._opened: dict[str, Opened] = {}
        self._guard = threading.Lock()
        self._flying: dict[str, bytes] = {}  # blobs of batches in line
        self._say = structlog.get_logger("ledger")

    def close(self) -> None:
        """Let go of the database."""
        self._log.close()

    def hold(self, where: str) -> None:
        """Be the service, reached at `where`, that writes this database until `close`. Raises WriterHeldError."""
        self._log.hold(where)

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
            opened.settle()
            self._folds.catch_up(opened)
            if opened.state.sequence == 0:
                raise errors.UnknownLibraryError(library, self.libraries())
            yield opened.state

    def as_of(self, library: str, sequence: int) -> State:
        """The state after that sequence, on its own. Raises InvalidInputError past the head."""
        head = self.head(library)
        if not 0 <= sequence <= head:
            raise errors.InvalidInputError(
                f"library {library!r} has no sequence {sequence}; it ends at {head}", library=library, head=head
            )
        return self._folds.as_of(library, sequence)

    def sequence_at(self, library: str, moment: datetime) -> int:
        """The last sequence recorded at or before a moment; 0 where there is none. Raises UnknownLibraryError."""
        self.head(library)
        return self._folds.sequence_at(library, moment)

    def recorded(self, library: str, *, after: int = 0, until: int | None = None) -> Iterator[codec.Recorded[ev.Event]]:
        """Typed events in order. Inside a command it waits until what the command decides on is stored."""
        self._await(library)
        yield from (codec.decode(stored.record) for stored in self._log.read(library, after=after, until=until))

    def _await(self, library: str) -> None:
        opened = self._opened.get(library)
        if opened is not None and opened.pending is not None:
            with opened.lock:
                if not opened.settle() and opened.deciding:
                    raise errors.SequenceConflictError(library, opened.state.sequence, self._log.head(library).sequence)

    def facts(self, library: str, *, until: int) -> Iterator[ev.Event]:
        """Events alone up to a sequence, checked on the way: quicker than `recorded`, and waits as that does."""
        self._await(library)
        return self._folds.facts(library, until=until)

    def raw(self, library: str, sequence: int) -> bytes:
        """One record as stored. Raises InvalidInputError where there is none."""
        stored = next(iter(self._log.read(library, after=sequence - 1, until=sequence)), None)
        if stored is None:
            raise errors.InvalidInputError(f"library {library!r} has no record {sequence}", library=library)
        return stored.record

    def raw_records(self, library: str) -> Iterator[bytes]:
        """All records as stored."""
        return (stored.record for stored in self._log.read(library))

    def recorded_at(self, library: str, sequences: Sequence[int]) -> Iterator[codec.Recorded[ev.Event]]:
        """Typed events at these sequences, which rise."""
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

    def listen(self, library: str, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` made, on any thread, after the library has grown, as a hint; returns what ends that."""
        return self._log.bell.listen(library, call)

    def verify(self, library: str) -> chain.Verdict:
        """Check every stored record against the chain, the head and the checkpoints that were signed."""
        return self.proofs.verify(library)

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its hash."""
        self._log.put_blob(sha256, data)

    def blob(self, sha256: str) -> bytes:
        """Content by its hash. Raises UnknownBlobError."""
        flying = self._flying.get(sha256)
        return self._log.blob(sha256) if flying is None else flying

    def text(self, sha256: str) -> str | None:
        """A blob as text; None where it was erased."""
        try:
            return self.blob(sha256).decode("utf-8", errors="replace")
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
            opened.settle()
            self._folds.catch_up(opened)
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
        for _ in tries():
            decided = self._decide(opened, call, command, answer)
            if decided is None:
                continue
            if isinstance(decided, bytes):
                return decided
            if decided.pending is None:
                return decided.answer
            # Out of the lock, so that others decide on the state that this batch makes, and share its commit.
            try:
                outcome = decided.pending.wait()
            except BaseException as error:
                opened.lost(decided.pending)
                if isinstance(error, errors.SequenceConflictError):
                    continue
                raise
            finally:
                for sha256 in decided.batch.blobs:
                    self._flying.pop(sha256, None)
            if isinstance(outcome, Answer):
                opened.lost(decided.pending)
                return outcome.answer
            if decided.batch.erase is not None:
                # The state and the indexes hold what was erased.
                with opened.lock:
                    opened.settle()
                    opened.forget()
            self._tell(library, call, decided.batch)
            return decided.answer
        raise errors.LibraryContendedError(library)

    def _decide(
        self, opened: Opened, call: Call, command: Callable[[Batch], None], answer: Callable[[Batch], _Answer]
    ) -> _Decided[_Answer] | bytes | None:
        """Decide under the lock and put the batch in line; a kept answer; or None where the race was lost."""
        with opened.lock:
            kept = self._kept(opened, call)
            if kept is not None:
                return kept
            if opened.pending is None or opened.pending.done:
                opened.settle()
                self._folds.catch_up(opened)
            # Else the state is ahead of the log, and the batch stands or falls with the one that it is decided on.
            batch = Batch(opened.state)
            opened.deciding = True
            try:
                command(batch)
                result = answer(batch)
                pending = self._submit(opened, call, batch, result)
            except errors.SequenceConflictError:
                opened.forget()
                return None
            except BaseException as error:
                # Decided on what is not stored yet, a refusal holds only once that is.
                stands = opened.settle()
                if batch.events:
                    # The state has moved past what is stored; fold it again from the log.
                    opened.forget()
                if not stands:
                    return None
                # Another service may have stored this very request since it was looked for.
                if isinstance(error, errors.LedgerError) and (kept := self._kept(opened, call)) is not None:
                    return kept
                raise
            finally:
                opened.deciding = False
            if pending is None and not opened.settle():
                return None
            opened.follow(batch.events, batch.blobs)
            return _Decided(batch, result, pending)

    def _kept(self, opened: Opened, call: Call) -> bytes | None:
        if call.key is None:
            return None
        if call.key in opened.keys:
            opened.settle()
        kept = self._log.answer(opened.name, call.key)
        if kept is None:
            return None
        if kept.digest != call.digest:
            raise errors.IdempotencyConflictError(opened.name, call.key)
        if kept.answer == ERASED:
            raise errors.AnswerErasedError(opened.name, call.key, kept.first, kept.last)
        return kept.answer

    def _submit(self, opened: Opened, call: Call, batch: Batch, result: BaseModel | None) -> Pending | None:
        """Put the batch in line behind the one that it was decided on. None: there is nothing to store."""
        if not batch.events:
            return None
        if opened.state is not batch.state:
            # Dropped while the command looked at it.
            raise errors.SequenceConflictError(opened.name, batch.first - 1, self._log.head(opened.name).sequence)
        idempotency = None
        if call.key is not None:
            content = b"" if result is None else result.model_dump_json(by_alias=True).encode()
            idempotency = Idempotency(call.key, call.digest, content)
            opened.keys.add(call.key)
        self._flying.update(batch.blobs)
        opened.pending = self._log.submit(
            opened.name,
            [self._draft(batch.state, call, event) for event in batch.events],
            expected=AtSequence(batch.first - 1),
            idempotency=idempotency,
            blobs=batch.blobs,
            after=opened.pending,
            erase=batch.erase,
        )
        return opened.pending

    def _draft(self, state: State, call: Call, event: ev.Event) -> Draft:
        name, schema, payload = codec.encode(event)
        stage = getattr(event, "stage", None)
        task = getattr(event, "task", None)
        if task is None and stage is not None:
            task = state.stages[stage].task
        return Draft(name, schema, self._new_id(), self._now(), call.actor, task, stage, payload)

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

    def _open(self, library: str, *, create: bool = False) -> Opened:
        with self._guard:
            opened = self._opened.get(library)
            if opened is not None and (create or opened.state.sequence):
                return opened
            if not create and self._log.head(library).sequence == 0:
                raise errors.UnknownLibraryError(library, self._log.libraries())
            return self._opened.setdefault(library, Opened(library))
