"""Engines: how the store connects to SQLite and to PostgreSQL."""

from __future__ import annotations

import ctypes
import functools
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy
import structlog
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from ledger.errors import InvalidInputError, NetworkFileSystemError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

BUSY_SECONDS = 10.0
"""How long a statement waits for another process's transaction."""

WRITE = "sagebook_write"
"""Execution option of a connection whose transactions write."""

_WAL_FAULT_FIRST = (3, 7, 0)
_WAL_FAULT_LAST = (3, 51, 2)


def make_engine(url: str) -> Engine:
    """Make an engine for `sqlite:///path` or `postgresql://…`; connects to nothing yet.

    Raises InvalidInputError for any other URL.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed)
    return sqlalchemy.create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        paramstyle="format",
        pool_pre_ping=True,
        # A connection for each thread that may serve a request.
        pool_size=10,
        max_overflow=40,
        connect_args={
            "options": "-c synchronous_commit=on -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000",
            "application_name": "sagebook",
        },
    )


def _parse(url: str) -> URL:
    hint = "use sqlite:///path/to/file.db, postgresql://user@host/database, or memory:"
    try:
        parsed = make_url(url)
        name = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise InvalidInputError(f"{url!r} is no database URL; {hint}") from error
    if name == "postgres":
        parsed, name = parsed.set(drivername="postgresql"), "postgresql"
    if name not in {"sqlite", "postgresql"}:
        raise InvalidInputError(f"{url!r} names a database that is not supported; {hint}")
    if name == "sqlite" and (parsed.database in {None, "", ":memory:"} or "mode=memory" in str(parsed.database)):
        raise InvalidInputError(f"{url!r} names no file; {hint}")
    return parsed


def _sqlite(url: URL) -> Engine:
    path = Path(str(url.database)).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    refuse_network_file_system(path)
    driver = sqlite_driver()
    warn_of_wal_fault(driver.sqlite_version_info)
    engine = sqlalchemy.create_engine(
        url.set(database=str(path)),
        module=driver,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def sqlite_driver() -> Any:
    """The driver: `pysqlite3`, which brings a SQLite of its own, where it is installed and newer; else Python's."""
    try:
        import pysqlite3  # noqa: PLC0415 - an extra, not a dependency
    except ImportError:
        return sqlite3
    newer = pysqlite3.sqlite_version_info > sqlite3.sqlite_version_info
    return pysqlite3.dbapi2 if newer else sqlite3


_NETWORK = {
    0x6969: "NFS",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x517B: "SMB",
    0x01021997: "9p",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x013111A8: "IBRIX",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0xAAD7AAEA: "PanFS",
    0x19830326: "BeeGFS",
}
"""Magic numbers of statfs(2) of file systems that several machines share."""


def refuse_network_file_system(path: Path) -> None:
    """Raise NetworkFileSystemError where the file lies on one. SAGEBOOK_ALLOW_NETWORK_FILE_SYSTEM=1 overrides it."""
    kind = _NETWORK.get(file_system(path.parent))
    if kind is not None and os.environ.get("SAGEBOOK_ALLOW_NETWORK_FILE_SYSTEM") != "1":
        raise NetworkFileSystemError(str(path), kind)


def file_system(folder: Path) -> int:
    """Magic number of the file system of a folder; 0 where statfs(2) can not tell."""
    try:
        statfs = ctypes.CDLL(None, use_errno=True).statfs
    except (OSError, AttributeError):
        return 0
    # The first field of struct statfs, a long, on every 64-bit Linux; the rest is not looked at.
    buffer = (ctypes.c_long * 64)()
    if statfs(os.fsencode(folder), ctypes.byref(buffer)) != 0:
        return 0
    return int(buffer[0]) & 0xFFFFFFFF


def _on_connect(connection: Any, _record: object) -> None:
    # The driver's own BEGIN is deferred and comes late; `_on_begin` takes it over.
    connection.isolation_level = None
    cursor = connection.cursor()
    # FULL: a commit is on disk when it returns. NORMAL would lose acknowledged commits at a power cut.
    cursor.execute("PRAGMA synchronous=FULL")
    # What is erased is overwritten; the log itself deletes nothing, so this costs nothing.
    cursor.execute("PRAGMA secure_delete=ON")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _to_wal(cursor)
    cursor.close()


def _to_wal(cursor: sqlite3.Cursor) -> None:
    """Switch a new file to WAL; SQLite does not wait here for another process that does the same."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite_driver().OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _on_begin(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once, whatever the timeout, if another wrote between.
    immediate = connection.get_execution_options().get(WRITE, False)
    cursor = connection.connection.cursor()
    cursor.execute("BEGIN IMMEDIATE" if immediate else "BEGIN")
    cursor.close()


@functools.cache
def warn_of_wal_fault(version: tuple[int, int, int]) -> None:
    """Log once that this SQLite may damage a database in WAL mode when several processes write it."""
    if _WAL_FAULT_FIRST <= version <= _WAL_FAULT_LAST:
        structlog.get_logger("ledger.store").warning(
            "sqlite_wal_reset_fault",
            version=".".join(map(str, version)),
            fixed_in="3.51.3",
            advice="let only one process at a time write a library file, or link a newer SQLite",
        )
