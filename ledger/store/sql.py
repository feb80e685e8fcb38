"""The log in SQLite or PostgreSQL.

Statements are SQLAlchemy Core, compiled once for the engine's dialect and then run on the driver's cursor: at one
event a transaction, Core's own cost per statement would be of the order of the commit.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, overload

from sqlalchemy.exc import DBAPIError

from ledger.errors import (
    BlobMismatchError,
    IdempotencyConflictError,
    LogCorruptError,
    StoreUnavailableError,
    UnknownBlobError,
)
from ledger.store import chain, migrate
from ledger.store.engine import make_engine
from ledger.store.log import (
    ABSENT,
    NO_BLOBS,
    Answer,
    Draft,
    Expected,
    Head,
    Idempotency,
    Log,
    Stored,
    check_blob,
    check_expected,
)
from ledger.store.memory import MemoryLog
from ledger.store.statements import Statements

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.pool import PoolProxiedConnection

_PAGE = 1000
_CHUNK = 1000
"""Rows a driver call: psycopg's pipeline hangs where one call sends far more than the server may answer."""


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
        # SQLite has one writer at a time whatever we do; waiting in turn here is fair and wakes at once.
        self._turn: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if self._is_sqlite else contextlib.nullcontext()
        )
        self._writer: PoolProxiedConnection | None = None
        with self._failures():
            migrate.prepare(engine)

    # --- writing ---------------------------------------------------------------------------------------------------

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
        with self._writing() as cursor:
            while True:
                # The head is locked first, so that of two requests with one key the later sees the earlier's answer.
                head = self._lock_head(cursor, library)
                kept = None if idempotency is None else self._kept(cursor, library, idempotency)
                if kept is not None:
                    return kept
                check_expected(library, expected, head, empty=not drafts)
                rows = chain.extend(library, head, drafts)
                after = Head(rows[-1].sequence, rows[-1].hash) if rows else head
                if self._move_head(cursor, library, head, after):
                    break
            self._insert_events(cursor, library, rows)
            if idempotency is not None:
                cursor.execute(
                    self._sql.insert_answer,
                    (
                        library,
                        idempotency.key,
                        idempotency.digest,
                        head.sequence + 1,
                        after.sequence,
                        idempotency.answer,
                    ),
                )
            self._insert_blobs(cursor, blobs)
        return after

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content under its SHA-256."""
        check_blob(sha256, data)
        if not self.has_blob(sha256):
            with self._writing() as cursor:
                self._insert_blobs(cursor, {sha256: data})

    def _lock_head(self, cursor: Any, library: str) -> Head:
        row = cursor.execute(self._sql.lock_head, (library,)).fetchone()
        return ABSENT if row is None else Head(*row)

    def _kept(self, cursor: Any, library: str, idempotency: Idempotency) -> Answer | None:
        row = cursor.execute(self._sql.answer, (library, idempotency.key)).fetchone()
        if row is None:
            return None
        kept = Answer(*row)
        if kept.digest != idempotency.digest:
            raise IdempotencyConflictError(library, idempotency.key)
        return kept

    def _move_head(self, cursor: Any, library: str, head: Head, after: Head) -> bool:
        """Write the head. False: the library was created by another one meanwhile (an absent row can not be locked)."""
        if head.sequence:
            if after is not head:
                cursor.execute(self._sql.move_head, (after.sequence, after.hash, library))
            return True
        cursor.execute(self._sql.insert_library, (library, after.sequence, after.hash))
        return bool(cursor.rowcount == 1)

    def _insert_events(self, cursor: Any, library: str, rows: list[Stored]) -> None:
        values = [(library, row.sequence, row.type, row.record, row.hash) for row in rows]
        try:
            if len(values) == 1:
                cursor.execute(self._sql.insert_event, values[0])
            else:
                for start in range(0, len(values), _CHUNK):
                    cursor.executemany(self._sql.insert_event, values[start : start + _CHUNK])
        except self._errors.IntegrityError as error:
            raise LogCorruptError(library, rows[0].sequence, "a record stands behind the head already") from error

    def _insert_blobs(self, cursor: Any, blobs: Mapping[str, bytes]) -> None:
        for sha256, data in blobs.items():
            cursor.execute(self._sql.insert_blob, (sha256, len(data), data))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Any]:
        """One transaction: committed at the end, rolled back at any error. Gives the driver's cursor."""
        with self._turn:
            connection = self._writer or self._connect()
            self._writer = None
            try:
                cursor = connection.cursor()
                if self._is_sqlite:
                    # A transaction that starts with a read could not become a writing one once another wrote between.
                    cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                connection.commit()
                cursor.close()
            except self._errors.Error as error:
                # The connection may be beyond use, e.g. cut or its file gone: the next one starts afresh.
                connection.invalidate()
                connection.close()
                raise StoreUnavailableError(self._url, str(error)) from error
            except BaseException:
                connection.rollback()
                self._put_away(connection)
                raise
            self._put_away(connection)

    def _put_away(self, connection: PoolProxiedConnection) -> None:
        if self._is_sqlite:
            self._writer = connection
        else:
            connection.close()

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

    def close(self) -> None:
        """Let go of files and connections."""
        with self._turn:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
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
