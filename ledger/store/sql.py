"""The log in SQLite or PostgreSQL.

Statements are SQLAlchemy Core, compiled once for the engine's dialect and then run on the driver's cursor: at one
event a transaction, Core's own cost per statement would be of the order of the commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, overload

from sqlalchemy.exc import DBAPIError

from ledger.errors import (
    BlobMismatchError,
    StoreUnavailableError,
    UnknownBlobError,
)
from ledger.store import migrate
from ledger.store.bell import Bell
from ledger.store.committer import Append
from ledger.store.engine import make_engine
from ledger.store.log import (
    ABSENT,
    BLOCK,
    NO_BLOBS,
    Answer,
    Block,
    Draft,
    Erasure,
    Expected,
    Head,
    Idempotency,
    Log,
    Pending,
    Stored,
    check_blob,
)
from ledger.store.memory import MemoryLog
from ledger.store.sql_shelf import SqlShelf
from ledger.store.statements import Statements
from ledger.store.writer import Writer

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.pool import PoolProxiedConnection

    from ledger.store.signals import Listener, Teller

_PAGE = 1000
_BLOCKS = 40
"""Blocks a statement."""


def open_log(url: str) -> Log:
    """Open the log at `sqlite:///path`, `postgresql://…` or `memory:`.

    A SQLite file is made, with its folder, where there is none; a PostgreSQL database must be migrated already.
    Raises InvalidInputError, SchemaOutdatedError, SchemaUnknownError, StoreUnavailableError.
    """
    if url.rstrip("/") == "memory:":
        return MemoryLog()
    return SqlLog(make_engine(url))


class SqlLog:
    """See `ledger.store.log.Log`. Safe to share between threads; several may be open on one database."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._errors: Any = engine.dialect.loaded_dbapi
        self._sql = Statements(engine.dialect)
        self._url = engine.url.render_as_string(hide_password=True)
        self._is_sqlite = engine.dialect.name == "sqlite"
        with self._failures():
            migrate.prepare(engine)
        self._teller: Teller | None = None
        self._listener: Listener | None = None
        self.bell = Bell()
        if not self._is_sqlite:
            self._connect_signals()
        self.writer = Writer(engine, self._sql, self._grown)
        self.shelf = SqlShelf(engine, self.writer.locked)

    def hold(self, where: str) -> None:
        """Become the service that writes here; see `Log.hold`."""
        self.writer.hold(where)

    def _connect_signals(self) -> None:
        from ledger.store.signals import Listener, Teller  # noqa: PLC0415 - psycopg is there for PostgreSQL alone

        target = self.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._teller = Teller(target)
        self.bell = Bell(on_listen=lambda: self._listener.start() if self._listener else None)
        self._listener = Listener(target, self.bell)

    def _grown(self, libraries: Iterable[str]) -> None:
        self.bell.ring(libraries)
        if self._teller is not None:
            self._teller.tell(libraries)

    # --- writing ---------------------------------------------------------------------------------------------------

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
    ) -> Append:
        """Queue a batch; see `Log.submit`."""
        for sha256, data in blobs.items():
            check_blob(sha256, data)
        item = Append(self.writer.committer, library, drafts, expected, idempotency, blobs, after, erase)
        self.writer.committer.put(item)
        return item

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
        return self.submit(library, drafts, expected=expected, idempotency=idempotency, blobs=blobs).wait()

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its SHA-256."""
        check_blob(sha256, data)
        if not self.has_blob(sha256):
            self.writer.put_blob(sha256, data)

    # --- reading ---------------------------------------------------------------------------------------------------

    def answer(self, library: str, key: str) -> Answer | None:
        """Find what was kept under an idempotency key."""
        row = self._one(self._sql.answer, (library, key))
        return None if row is None else Answer(*row)

    def head(self, library: str) -> Head:
        """Where the library ends."""
        row = self._one(self._sql.head, (library,))
        return ABSENT if row is None else Head(*row)

    def libraries(self) -> tuple[str, ...]:
        """Names of all libraries, sorted."""
        return tuple(sorted(name for (name,) in self._all(self._sql.libraries, ())))

    def read(
        self, library: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> Iterator[Stored]:
        """Give the records in order; see `Log.read`."""
        last = 2**63 - 1 if until is None else until
        while limit is None or limit > 0:
            size = _PAGE if limit is None else min(limit, _PAGE)
            page = self._page((library, after, last, size))
            yield from page
            if len(page) < size:
                return
            after = page[-1].sequence
            if limit is not None:
                limit -= size

    def blob(self, sha256: str) -> bytes:
        """Content by its SHA-256."""
        row = self._one(self._sql.blob, (sha256,))
        if row is None:
            raise UnknownBlobError(sha256)
        data = row[0]
        try:
            check_blob(sha256, data)
        except TypeError:  # damaged: no longer bytes
            raise BlobMismatchError(sha256, "nothing that is bytes") from None
        return bytes(data)

    def has_blob(self, sha256: str) -> bool:
        """Whether the content is stored."""
        return self._one(self._sql.has_blob, (sha256,)) is not None

    def hashes(self, library: str, *, after: int, until: int) -> list[bytes]:
        """Hashes of the records in order; see `Log.hashes`."""
        return [hash_ for (hash_,) in self._all(self._sql.hashes, (library, after, until))]

    def blocks(self, library: str, *, after: int, until: int) -> Iterator[Block]:
        """Records in pieces; see `Log.blocks`."""
        # Joined by the database: a row each through the driver costs more than all that is done with it.
        while after < until:
            # Not all in one statement: on SQLite a long read keeps the write-ahead log from being emptied.
            end = min(after - after % BLOCK + _BLOCKS * BLOCK, until)
            first = min(after - after % BLOCK + BLOCK, end)
            for start, last, hash_, lines in self._each(
                self._sql.blocks, (after, first, BLOCK, end, BLOCK, end, end, library, library)
            ):
                if not (isinstance(hash_, bytes | None) and isinstance(lines, bytes | None)):
                    raise StoreUnavailableError(self._url, "a hash is stored as something else than bytes")
                yield Block(start, last, hash_ or b"", lines or b"")
            after = end

    def of_type(self, library: str, kind: str) -> list[bytes]:
        """Records of one type; see `Log.of_type`."""
        return [record for (record,) in self._all(self._sql.of_type, (library, kind))]

    def close(self) -> None:
        """Let go of files and connections."""
        self.writer.close()
        for thread in (self._teller, self._listener):
            if thread is not None:
                thread.close()
        self.engine.dispose()

    def _page(self, values: tuple[Any, ...]) -> list[Stored]:
        try:
            return list(starmap(Stored, self._all(self._sql.page, values)))
        except StoreUnavailableError:
            if not self._is_sqlite:
                raise
            # A damaged text makes the driver refuse the whole page: take it as bytes, for `chain` to name the record.
            rows = self._all(self._sql.page_of_bytes, values)
            return [Stored(s, t.decode("utf-8", "replace") if isinstance(t, bytes) else t, r, h) for s, t, r, h in rows]

    def _one(self, statement: str, values: tuple[Any, ...]) -> Any:
        rows = self._all(statement, values)
        return rows[0] if rows else None

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        # One statement is one transaction: a read holds nothing up, and nothing is left open between pages.
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            rows = list(cursor.fetchall())
            cursor.close()
        except self._errors.Error as error:
            raise StoreUnavailableError(self._url, str(error)) from error
        finally:
            connection.close()
        return rows

    def _each(self, statement: str, values: tuple[Any, ...]) -> Iterator[Any]:
        """Rows one by one, as they are found."""
        connection = self._connect()
        try:
            cursor: Any = connection.cursor()
            try:
                cursor.execute(statement, values)
                yield from cursor
            finally:
                cursor.close()
        except self._errors.Error as error:
            raise StoreUnavailableError(self._url, str(error)) from error
        finally:
            connection.close()

    def _connect(self) -> PoolProxiedConnection:
        with self._failures():
            return self.engine.raw_connection()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of SQLAlchemy's own calls into ours."""
        try:
            yield
        except DBAPIError as error:
            raise StoreUnavailableError(self._url, str(error.orig)) from error
