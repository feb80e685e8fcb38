"""The port of the event log: append what was decided, read what was stored.

It knows bytes and sequences, never a typed event.

One library is one stream: sequences 1, 2, 3 … without gaps, each record linked to the one before it by its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, overload

import msgspec

from ledger.errors import (
    BlobMismatchError,
    InvalidInputError,
    LibraryExistsError,
    SequenceConflictError,
    UnknownLibraryError,
)
from ledger.store.bell import Bell
from ledger.store.shelf import Shelf

GENESIS: Final = bytes(32)
"""The hash before the first record."""

BLOCK: Final = 500
"""Records a block: few enough that they, and what is read from them, stay in the processor's cache."""

NO_BLOBS: Final[Mapping[str, bytes]] = {}


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event that is to be appended: everything but its place in the log."""

    type: str
    """Name on disk, e.g. `stage.scored`."""
    schema: int
    id: str
    time: str
    """When it was recorded: RFC 3339, UTC."""
    actor: str
    task: str | None
    stage: str | None
    payload: msgspec.Raw
    """JSON text."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One row of the log, byte for byte."""

    sequence: int
    type: str
    record: bytes
    """Canonical JSON: what the hash covers."""
    hash: bytes
    """SHA-256 (32 bytes) of the hash before it and the record."""


class Block(NamedTuple):
    """Records that follow each other."""

    after: int
    until: int
    """The sequence that the last should have."""
    hash: bytes
    """As stored with that one; empty where it is missing."""
    lines: bytes
    """The records, one a line, in order; only a damaged one holds a line feed itself. Empty where there is none."""


class Head(msgspec.Struct, frozen=True):
    """Where a library ends. Sequence 0 and 32 zero bytes: there is no such library."""

    sequence: int
    hash: bytes


ABSENT: Final = Head(0, GENESIS)


class AtSequence(msgspec.Struct, frozen=True):
    """Append only if the library ends at this sequence; 0: only if it does not exist."""

    sequence: int


class NewLibrary(msgspec.Struct, frozen=True):
    """Append only if the library does not exist."""


class AnySequence(msgspec.Struct, frozen=True):
    """Append wherever the library ends, if it exists."""


Expected: TypeAlias = AtSequence | NewLibrary | AnySequence


class Idempotency(msgspec.Struct, frozen=True):
    """What is kept with a batch so that a repeated request gets the first answer."""

    key: str
    digest: bytes
    """Of the request's content."""
    answer: bytes


class Answer(msgspec.Struct, frozen=True):
    """What was kept with a batch that was appended before."""

    digest: bytes
    first: int
    """First sequence of the batch; `last + 1` where it held no event."""
    last: int
    answer: bytes


class Erasure(msgspec.Struct, frozen=True):
    """What a batch takes out of the store for good. Hashes stay, so what was there can be told from anything else."""

    blobs: tuple[str, ...] = ()
    records: Mapping[int, bytes] = {}
    """Sequence -> the record that stands there since, made by `ledger.store.redaction`."""
    texts: tuple[str, ...] = ()
    """Kept answers that hold one of these are emptied."""


ERASED: Final = b"\x00erased"
"""What is left of an answer that held an erased text."""


class Pending(Protocol):
    """A batch on its way into the log."""

    @property
    def done(self) -> bool:
        """Whether `wait` returns at once."""
        ...

    def wait(self) -> Head | Answer:
        """Return once it is durable: the new head or, for a key used before, the kept answer. Raises as `append`.

        Any number of threads may wait, and one must: whoever waits does the work.
        """
        ...


class Settled(msgspec.Struct, frozen=True):
    """A batch that needs no waiting for."""

    outcome: Head | Answer | Exception

    @property
    def done(self) -> bool:
        """Always."""
        return True

    def wait(self) -> Head | Answer:
        """Return the outcome, or raise it."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Log(Protocol):
    """An append-only log of many libraries, with the content-addressed blobs that its events name."""

    @property
    def shelf(self) -> Shelf:
        """What is kept beside the records."""
        ...

    @property
    def bell(self) -> Bell:
        """Rings after a library has grown, by this log or, on PostgreSQL, by another process."""
        ...

    def hold(self, where: str) -> None:
        """Be the service, reached at `where`, that writes here until `close`.

        On SQLite there is one, and other processes only read. Raises WriterHeldError.
        """
        ...

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
    ) -> Pending:
        """Put a batch in line and return at once; `append` is this and `wait`.

        What waits at the same time is committed together, and each is decided on its own. Batches of one library are
        decided in the order in which they were put in line, so one may expect the sequence that the one before makes;
        where it names that one as `after`, it loses the race (SequenceConflictError) if that one was not appended.

        `erase` is carried out in the same transaction.

        Raises BlobMismatchError; everything else is raised by `wait`.
        """
        ...

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
        """Store the batch, its blobs (SHA-256 in hex -> content) and its answer, all or nothing; returns the new head.

        Where the idempotency key was used before with the same digest, nothing is stored and the kept `Answer` is
        returned, whatever `expected` says. Durable when it returns.

        Raises SequenceConflictError, LibraryExistsError, UnknownLibraryError, IdempotencyConflictError (same key, other
        digest), BlobMismatchError, StoreUnavailableError.
        """
        ...

    def answer(self, library: str, key: str) -> Answer | None:
        """Find what was kept under an idempotency key."""
        ...

    def head(self, library: str) -> Head:
        """Where the library ends; `ABSENT` if there is none."""
        ...

    def libraries(self) -> tuple[str, ...]:
        """Names of all libraries, sorted."""
        ...

    def read(
        self, library: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> Iterator[Stored]:
        """Give the records with `after` < sequence <= `until`, in order, at most `limit`; none for an absent library.

        Read in short transactions: it never blocks a writer, and what is appended meanwhile may be seen at its end.
        """
        ...

    def hashes(self, library: str, *, after: int, until: int) -> list[bytes]:
        """Hashes of the records with `after` < sequence <= `until`, in order."""
        ...

    def blocks(self, library: str, *, after: int, until: int) -> Iterator[Block]:
        """The records of `read` in pieces that end at multiples of `BLOCK`, and at `until`.

        For walks over a whole log, where an object for each record would cost. Raises StoreUnavailableError also where
        a piece is too long for the database, or damaged.
        """
        ...

    def of_type(self, library: str, kind: str) -> list[bytes]:
        """Records of one type, in order. Looks at all."""
        ...

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its SHA-256 (hex), once. Raises BlobMismatchError."""
        ...

    def blob(self, sha256: str) -> bytes:
        """Content by its SHA-256. Raises UnknownBlobError; BlobMismatchError where the stored content was damaged."""
        ...

    def has_blob(self, sha256: str) -> bool:
        """Whether the content is stored."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def cuts(after: int, until: int) -> Iterator[tuple[int, int]]:
    """(after, until) of the blocks between two sequences."""
    while after < until:
        end = min(after - after % BLOCK + BLOCK, until)
        yield after, end
        after = end


def check_blob(sha256: str, data: bytes) -> None:
    """Raise BlobMismatchError where the content has another hash."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise BlobMismatchError(sha256, found)


def check_expected(library: str, expected: Expected, head: Head, *, empty: bool) -> None:
    """Raise where `head` is not what an append expects. `empty`: the batch holds no event, so it opens no library."""
    match expected:
        case AtSequence(sequence):
            if head.sequence == 0 and sequence > 0:
                raise UnknownLibraryError(library)
            if sequence != head.sequence:
                raise SequenceConflictError(library, sequence, head.sequence)
        case NewLibrary():
            if head.sequence > 0:
                raise LibraryExistsError(library)
        case AnySequence():
            if head.sequence == 0:
                raise UnknownLibraryError(library)
    if empty and head.sequence == 0:
        raise InvalidInputError(
            f"library {library!r} can not be opened by an empty batch; append its first event with it"
        )
