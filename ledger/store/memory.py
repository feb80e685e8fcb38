"""A log in memory, for tests, trials and replays that are thrown away. It stores the same bytes as the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from msgspec import structs

from ledger.errors import IdempotencyConflictError, LedgerError, SequenceConflictError, UnknownBlobError
from ledger.store import chain
from ledger.store.bell import Bell
from ledger.store.log import (
    ABSENT,
    ERASED,
    NO_BLOBS,
    Answer,
    Block,
    Draft,
    Erasure,
    Expected,
    Head,
    Idempotency,
    Pending,
    Settled,
    Stored,
    check_blob,
    check_expected,
    cuts,
)
from ledger.store.redaction import holds
from ledger.store.shelf import MADE_OF_TEXTS, MemoryShelf


class MemoryLog:
    """See `ledger.store.log.Log`. Safe to share between threads; nothing outlives the process."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.shelf = MemoryShelf()
        self._lock = threading.Lock()
        self._rows: dict[str, list[Stored]] = {}
        self._answers: dict[tuple[str, str], Answer] = {}
        self._blobs: dict[str, bytes] = {}

    def hold(self, where: str) -> None:
        """Nobody else could write here; see `Log.hold`."""

    def submit(
        self,
        library: str,
        drafts: Sequence[Draft],
        *,
        expected: Expected,
        idempotency: Idempotency | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
        after: Pending | None = None,
        erase: Erasure | None = None,
    ) -> Settled:
        """Store a batch at once; see `Log.submit`."""
        for sha256, data in blobs.items():
            check_blob(sha256, data)
        try:
            if after is not None and not isinstance(after.wait(), Head):
                raise SequenceConflictError(library, -1, self.head(library).sequence)
            head = self.append(library, drafts, expected=expected, idempotency=idempotency, blobs=blobs)
            if erase is not None and isinstance(head, Head):
                self._erase(library, erase)
            return Settled(head)
        except LedgerError as error:
            return Settled(error)

    @overload
    def append(
        self,
        library: str,
        drafts: Sequence[Draft],
        *,
        expected: Expected,
        idempotency: None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
    ) -> Head: ...

    @overload
    def append(
        self,
        library: str,
        drafts: Sequence[Draft],
        *,
        expected: Expected,
        idempotency: Idempotency | None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
    ) -> Head | Answer: ...

    def append(
        self,
        library: str,
        drafts: Sequence[Draft],
        *,
        expected: Expected,
        idempotency: Idempotency | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
    ) -> Head | Answer:
        """Store a batch; see `Log.append`."""
        for sha256, data in blobs.items():
            check_blob(sha256, data)
        with self._lock:
            if idempotency is not None:
                kept = self._answers.get((library, idempotency.key))
                if kept is not None:
                    if kept.digest != idempotency.digest:
                        raise IdempotencyConflictError(library, idempotency.key)
                    return kept
            head = self._head(library)
            check_expected(library, expected, head, empty=not drafts)
            rows = chain.extend(library, head, drafts)
            # Nothing below can fail, so the batch is stored whole or, above, not at all.
            self._blobs.update(blobs)
            self._rows.setdefault(library, []).extend(rows)
            last = head.sequence + len(rows)
            if idempotency is not None:
                self._answers[library, idempotency.key] = Answer(
                    idempotency.digest, head.sequence + 1, last, idempotency.answer
                )
            after = self._head(library)
        self.bell.ring((library,))
        return after

    def hashes(self, library: str, *, after: int, until: int) -> list[bytes]:
        """Hashes of the records in order; see `Log.hashes`."""
        return [row.hash for row in self._rows.get(library, [])[max(after, 0) : until]]

    def blocks(self, library: str, *, after: int, until: int) -> Iterator[Block]:
        """Records in pieces; see `Log.blocks`."""
        for start, end in cuts(after, until):
            rows = self._rows.get(library, [])[start:end]
            last = rows[-1].hash if len(rows) == end - start else b""
            yield Block(start, end, last, b"\n".join(row.record for row in rows))

    def _erase(self, library: str, erase: Erasure) -> None:
        with self._lock:
            for sha256 in erase.blobs:
                self._blobs.pop(sha256, None)
            rows = self._rows[library]
            for sequence, record in erase.records.items():
                rows[sequence - 1] = structs.replace(rows[sequence - 1], record=record)
            for key, kept in self._answers.items():
                if key[0] == library and holds(kept.answer, erase.texts):
                    self._answers[key] = structs.replace(kept, answer=ERASED)
        for kind in MADE_OF_TEXTS:
            self.shelf.drop_snapshots(library, kind)

    def of_type(self, library: str, kind: str) -> list[bytes]:
        """Records of one type; see `Log.of_type`."""
        return [row.record for row in self._rows.get(library, []) if row.type == kind]

    def answer(self, library: str, key: str) -> Answer | None:
        """Find what was kept under an idempotency key."""
        return self._answers.get((library, key))

    def head(self, library: str) -> Head:
        """Where the library ends."""
        return self._head(library)

    def libraries(self) -> tuple[str, ...]:
        """Names of all libraries, sorted."""
        with self._lock:
            return tuple(sorted(self._rows))

    def read(
        self, library: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> Iterator[Stored]:
        """Give the records in order; see `Log.read`."""
        rows = self._rows.get(library, [])
        # Row i holds sequence i + 1, and the list only grows.
        index = first = max(after, 0)
        while index < len(rows) and (until is None or index < until) and (limit is None or index - first < limit):
            yield rows[index]
            index += 1

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its SHA-256."""
        check_blob(sha256, data)
        self._blobs[sha256] = data

    def blob(self, sha256: str) -> bytes:
        """Content by its SHA-256."""
        try:
            return self._blobs[sha256]
        except KeyError:
            raise UnknownBlobError(sha256) from None

    def has_blob(self, sha256: str) -> bool:
        """Whether the content is stored."""
        return sha256 in self._blobs

    def close(self) -> None:
        """Nothing to let go of."""

    def _head(self, library: str) -> Head:
        rows = self._rows.get(library)
        return Head(rows[-1].sequence, rows[-1].hash) if rows else ABSENT
