"""The writing side of a SQL log: one connection, one transaction at a time, and what to do when it fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from ledger.errors import LedgerError, StoreUnavailableError
from ledger.store import batch
from ledger.store.committer import Append, Committer
from ledger.store.statements import Statements
from ledger.store.writer_lock import WriterLock

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.pool import PoolProxiedConnection


class Writer:
    """Commits what the committer gathers. One transaction at a time: the committer's leader is the only caller."""

    def __init__(self, engine: Engine, sql: Statements, grown: Callable[[Iterable[str]], None]) -> None:
        self._engine = engine
        self._sql = sql
        self._grown = grown
        self._errors: Any = engine.dialect.loaded_dbapi
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._connection: PoolProxiedConnection | None = None
        self._broken: str | None = None
        self.url = engine.url.render_as_string(hide_password=True)
        self.lock = WriterLock(Path(str(engine.url.database))) if self._is_sqlite else None
        self.committer = Committer(self._commit)

    def hold(self, where: str) -> None:
        """Become the one service that writes this database. Raises WriterHeldError.

        First everything that the operating system may hold in memory alone is written again and synced, in case an
        earlier process ended after a failed sync.
        """
        if self.lock is None:
            return
        self.lock.hold(where)
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.close()
        except self._errors.Error as error:
            raise StoreUnavailableError(self.url, str(error)) from error
        finally:
            connection.close()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the right to write for another transaction than the committer's."""
        if self.lock is None:
            yield
            return
        self.lock.begin()
        try:
            yield
        finally:
            self.lock.end()

    def _leave_no_trace(self) -> None:
        """Have what was erased leave the files: the write-ahead log, and on PostgreSQL the dead rows."""
        with contextlib.suppress(self._errors.Error, StoreUnavailableError):
            connection = self._connect()
            try:
                if self._is_sqlite:
                    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
                else:
                    driver: Any = connection.driver_connection
                    driver.autocommit = True
                    driver.execute("VACUUM events, blobs, idempotency, snapshots")
                    driver.autocommit = False
            finally:
                connection.close()

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store content that no batch carries."""
        with self.locked():
            connection = self._connect()
            try:
                cursor = connection.cursor()
                if self._is_sqlite:
                    cursor.execute("BEGIN IMMEDIATE")
                cursor.execute(self._sql.insert_blob, (sha256, len(data), data))
                connection.commit()
                cursor.close()
            except self._errors.Error as error:
                connection.invalidate()
                raise StoreUnavailableError(self.url, str(error)) from error
            finally:
                connection.close()

    def close(self) -> None:
        """Let go of the connection and the lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self.lock is not None:
            self.lock.release()

    def _commit(self, items: list[Append]) -> None:
        try:
            with self.locked():
                self._transact(items)
        except LedgerError as error:
            for item in items:
                item.error = error
        if any(item.erase is not None and item.error is None for item in items):
            self._leave_no_trace()
        grown = {item.library for item in items if item.error is None and item.drafts}
        if grown:
            self._grown(grown)

    def _transact(self, items: list[Append]) -> None:
        if self._broken is not None:
            raise StoreUnavailableError(self.url, self._broken)
        reused = self._connection is not None
        connection = self._connection or self._connect()
        self._connection = None
        cursor = connection.cursor()
        try:
            if self._is_sqlite:
                # A transaction that starts with a read could not become a writing one once another wrote between.
                cursor.execute("BEGIN IMMEDIATE")
            batch.perform(cursor, self._sql, items, self._errors.IntegrityError)
        except (self._errors.Error, ValueError, OverflowError) as error:
            _drop(connection, cursor)
            # Nothing was committed. The connection may have been cut since it was last used, or one append may be
            # what the database refuses: each alone, on a new connection, fails for nobody else.
            if reused or len(items) > 1:
                self._one_by_one(items)
            else:
                ours = StoreUnavailableError(self.url, str(error))
                ours.__cause__ = error
                # A text that the driver can not even send is no failure of the store.
                items[0].error = ours if isinstance(error, self._errors.Error) else error
            return
        except LedgerError as error:
            self._put_back(connection)
            if len(items) > 1:
                self._one_by_one(items)
            else:
                items[0].error = error
            return
        except BaseException:
            _drop(connection, cursor)
            raise
        self._finish(connection, cursor, items)

    def _one_by_one(self, items: list[Append]) -> None:
        for item in items:
            self._transact([item])

    def _finish(self, connection: PoolProxiedConnection, cursor: Any, items: list[Append]) -> None:
        if all(item.error is not None for item in items):
            self._put_back(connection)
            return
        try:
            connection.commit()
            cursor.close()
        except self._errors.Error as error:
            _drop(connection, cursor)
            if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_IOERR"):
                # After a failed sync the operating system may hold as written what never reached the disk.
                self._broken = f"{error}; the disk failed at a commit, so nothing more is written until a restart"
            for item in items:
                item.error = item.error or StoreUnavailableError(self.url, str(error))
            return
        self._connection = connection

    def _put_back(self, connection: PoolProxiedConnection) -> None:
        try:
            connection.rollback()
        except self._errors.Error:
            _drop(connection)
        else:
            self._connection = connection

    def _connect(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except DBAPIError as error:
            raise StoreUnavailableError(self.url, str(error.orig)) from error


def _drop(connection: PoolProxiedConnection, cursor: Any = None) -> None:
    # It may be beyond use, e.g. cut or its file gone: the next one starts afresh. SQLite lets go of its locks only once
    # no statement is open.
    if cursor is not None:
        cursor.close()
    connection.invalidate()
    connection.close()
