"""Copies of a whole ledger, record for record: a backup while it is written, a restore, a move to another database.

Hashes are copied, never made anew, and every library's chain is checked on what arrived: a copy either equals its
source or is refused.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from ledger.errors import CopyRefusedError, LogCorruptError, StoreUnavailableError
from ledger.store import chain, schema
from ledger.store.engine import WRITE, sqlite_driver
from ledger.store.log import Head
from ledger.store.sql import SqlLog, open_log

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

_ROWS = 1000
_BLOBS = 50
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


def _silent(what: str, done: int, of: int) -> None:
    del what, done, of


class Copied(msgspec.Struct, frozen=True):
    """What a copy holds."""

    heads: dict[str, Head]
    events: int
    blobs: int


def backup(url: str, target: Path, *, progress: Progress = _silent) -> Copied:
    """Copy a ledger, which may be written meanwhile, into a new SQLite file: checked, synced, there only when whole.

    Raises CopyRefusedError where the file exists, LogCorruptError where what was copied does not hold.
    """
    if target.exists():
        raise CopyRefusedError(f"{target} exists; name a new file")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    source = open_log(url)
    try:
        if not isinstance(source, SqlLog):
            raise CopyRefusedError(
                "a ledger in memory has no backup; copy it while it lives by exporting its libraries"
            )
        if source.engine.dialect.name == "sqlite":
            _copy_file(Path(str(source.engine.url.database)), part, progress)
        else:
            with contextlib.closing(_sql(f"sqlite:///{part}")) as made:
                _copy_rows(source, made, progress)
        with contextlib.closing(_sql(f"sqlite:///{part}")) as made:
            found = check(made, progress=progress)
        _settle(part, target)
        return found
    finally:
        source.close()
        for beside in ("", "-wal", "-shm", "-journal", ".lock"):
            part.with_name(part.name + beside).unlink(missing_ok=True)


def copy(source_url: str, target_url: str, *, progress: Progress = _silent) -> Copied:
    """Copy a ledger into an empty database of the newest schema, SQLite or PostgreSQL, and check what arrived.

    Raises CopyRefusedError where the target holds anything, LogCorruptError where what was copied does not hold; then
    nothing of it stays in the target.
    """
    with contextlib.closing(_sql(source_url)) as source, contextlib.closing(_sql(target_url)) as target:
        with target.writer.locked():
            with target.engine.connect() as connection:
                blob = connection.execute(select(schema.blobs.c.sha256).limit(1)).first()
            if target.libraries() or blob is not None:
                raise CopyRefusedError(f"{target.writer.url} is not empty; name a new one")
            _copy_rows(source, target, progress)
        return check(target, progress=progress)


def check(log: SqlLog, *, progress: Progress = _silent) -> Copied:
    """Check every chain and count. Raises LogCorruptError."""
    heads = {}
    names = log.libraries()
    for number, name in enumerate(names):
        progress("checking", number, len(names))
        verdict = chain.audit(log, name)
        if not verdict.ok:
            raise LogCorruptError(name, verdict.bad_sequence or 0, verdict.reason or "")
        heads[name] = Head(verdict.events, verdict.head)
    with log.engine.connect() as connection:
        blobs = connection.execute(select(func.count()).select_from(schema.blobs)).scalar_one()
    return Copied(heads, sum(head.sequence for head in heads.values()), int(blobs))


def _sql(url: str) -> SqlLog:
    log = open_log(url)
    if not isinstance(log, SqlLog):
        raise CopyRefusedError("memory: ends with this process; name a SQLite file or a PostgreSQL database")
    return log


def _copy_file(source: Path, target: Path, progress: Progress) -> None:
    """SQLite's own online backup: one read transaction, so writers go on and the copy is of one moment."""
    sqlite3 = sqlite_driver()
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM libraries").fetchone()
            old.backup(new, pages=2000, progress=lambda _, left, of: progress("copying", of - left, of), sleep=0)
            old.execute("ROLLBACK")
            # One file that needs nothing beside it.
            new.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"sqlite:///{source}", str(error)) from error


def _settle(part: Path, target: Path) -> None:
    """Sync the file and its name."""
    with contextlib.closing(sqlite_driver().connect(part)) as made:
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        made.execute("PRAGMA journal_mode=DELETE")
    for path, rename in ((part, False), (target.parent, True)):
        if rename:
            part.rename(target)
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _copy_rows(source: SqlLog, target: SqlLog, progress: Progress) -> None:
    """All tables but the snapshots, which are made anew, in one transaction on each side."""
    tables = (schema.libraries, schema.events, schema.idempotency, schema.blobs, schema.checkpoints)
    try:
        with source.engine.connect() as reading, target.engine.connect() as plain:
            if source.engine.dialect.name == "postgresql":
                reading = reading.execution_options(isolation_level="REPEATABLE READ")  # noqa: PLW2901 - the same one
            writing = plain.execution_options(**{WRITE: True})
            with reading.begin(), writing.begin():
                for table in tables:
                    _copy_table(reading, writing, table, progress)
    except DBAPIError as error:
        raise StoreUnavailableError(f"{source.writer.url} or {target.writer.url}", str(error.orig)) from error


def _copy_table(reading: Connection, writing: Connection, table: Table, progress: Progress) -> None:
    of = int(reading.execute(select(func.count()).select_from(table)).scalar_one())
    done = 0
    for rows in _pages(reading, table, _BLOBS if table is schema.blobs else _ROWS):
        writing.execute(table.insert(), rows)
        done += len(rows)
        progress(f"copying {table.name}", done, of)


def _pages(reading: Connection, table: Table, size: int) -> Iterator[list[dict[str, Any]]]:
    found = reading.execution_options(yield_per=size).execute(select(table).order_by(*table.primary_key))
    for rows in found.partitions(size):
        yield [dict(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's own name for it
