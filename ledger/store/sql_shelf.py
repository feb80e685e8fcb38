"""Snapshots and checkpoints in SQLite or PostgreSQL."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from ledger.errors import StoreUnavailableError
from ledger.store.engine import WRITE
from ledger.store.schema import checkpoints, snapshots
from ledger.store.shelf import Snapshot

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class SqlShelf:
    """See `ledger.store.shelf.Shelf`."""

    def __init__(self, engine: Engine, locked: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._engine = engine
        self._locked = locked
        self._insert: Any = sqlite.insert if engine.dialect.name == "sqlite" else postgresql.insert

    def put_snapshot(self, library: str, kind: str, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        row = {
            "library": library,
            "kind": kind,
            "sequence": snapshot.sequence,
            "hash": snapshot.hash,
            "digest": hashlib.sha256(snapshot.data).digest(),
            "data": snapshot.data,
        }
        statement = self._insert(snapshots).values(row)
        kept = {name: statement.excluded[name] for name in ("hash", "digest", "data")}
        with self._writing() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=list(snapshots.primary_key), set_=kept))

    def snapshot(self, library: str, kind: str, *, until: int) -> Snapshot | None:
        """Find the newest undamaged one at or before a sequence."""
        c = snapshots.c
        of_kind = (c.library == library, c.kind == kind)
        newest_first = select(c.sequence).where(*of_kind, c.sequence <= until).order_by(c.sequence.desc())
        with self._reading() as connection:
            for sequence in connection.execute(newest_first).scalars().all():
                one = select(c.hash, c.digest, c.data).where(*of_kind, c.sequence == sequence)
                hash_, digest, data = connection.execute(one).one()
                if isinstance(data, bytes) and hashlib.sha256(data).digest() == digest:
                    return Snapshot(sequence, hash_, data)
        return None

    def drop_snapshots(self, library: str, kind: str | None = None, *, sequence: int | None = None) -> None:
        """Forget them."""
        statement = delete(snapshots).where(snapshots.c.library == library)
        if kind is not None:
            statement = statement.where(snapshots.c.kind == kind)
        if sequence is not None:
            statement = statement.where(snapshots.c.sequence == sequence)
        with self._writing() as connection:
            connection.execute(statement)

    def snapshot_sequences(self, library: str, kind: str) -> list[int]:
        """Where snapshots stand."""
        query = select(snapshots.c.sequence).where(snapshots.c.library == library, snapshots.c.kind == kind)
        with self._reading() as connection:
            return sorted(connection.execute(query).scalars())

    def put_checkpoint(self, library: str, size: int, note: str) -> None:
        """Keep a signed checkpoint."""
        row = {"library": library, "size": size, "note": note}
        with self._writing() as connection:
            connection.execute(self._insert(checkpoints).values(row).on_conflict_do_nothing())

    def checkpoints(self, library: str) -> list[tuple[int, str]]:
        """All signed checkpoints."""
        query = select(checkpoints.c.size, checkpoints.c.note).where(checkpoints.c.library == library)
        with self._reading() as connection:
            return sorted((size, note) for size, note in connection.execute(query))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._locked(), self._failures(), self._engine.connect() as plain:
            connection = plain.execution_options(**{WRITE: True})
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._failures(), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreUnavailableError(
                self._engine.url.render_as_string(hide_password=True), str(error.orig)
            ) from error
