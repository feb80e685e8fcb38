"""The store's SQL, written once with SQLAlchemy Core and compiled for one dialect with positional parameters."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    LargeBinary,
    Text,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from ledger.store.schema import blobs, events, idempotency, libraries, snapshots

if TYPE_CHECKING:
    from sqlalchemy import Dialect, Table


_ROWS = (64, 16, 4)


class Statements:
    """SQL texts. The order of the parameters stands beside each."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        insert: Any = sqlite.insert if dialect.name == "sqlite" else postgresql.insert
        library: Any = bindparam("library")
        key: Any = bindparam("key")

        def new(table: Table) -> Any:
            return insert(table).values({column.name: bindparam(column.name) for column in table.columns})

        head = select(libraries.c.sequence, libraries.c.hash).where(libraries.c.name == library)
        self.head = self._text(head, "library")
        self.lock_head = self._text(head.with_for_update(), "library")
        # PostgreSQL locks and looks up many in one round trip; SQLite has no round trips, and no arrays.
        self.lock_heads: str | None = None
        self.answers: str | None = None
        if dialect.name == "postgresql":
            self.lock_heads = self._text(
                select(libraries.c.name, libraries.c.sequence, libraries.c.hash)
                .where(libraries.c.name == any_(bindparam("libraries", type_=ARRAY(Text))))
                .order_by(libraries.c.name)
                .with_for_update(),
                "libraries",
            )
            self.answers = self._text(
                select(
                    idempotency.c.key,
                    idempotency.c.digest,
                    idempotency.c.first,
                    idempotency.c.last,
                    idempotency.c.answer,
                ).where(
                    idempotency.c.library == library, idempotency.c.key == any_(bindparam("keys", type_=ARRAY(Text)))
                ),
                "library",
                "keys",
            )
        self.move_head = self._text(
            update(libraries)
            .values(sequence=bindparam("new_sequence"), hash=bindparam("new_hash"))
            .where(libraries.c.name == library),
            "new_sequence",
            "new_hash",
            "library",
        )
        self.insert_library = self._text(new(libraries).on_conflict_do_nothing(), "name", "sequence", "hash")
        self.insert_event = self._text(new(events), "library", "sequence", "type", "record", "hash")
        # SQLite's driver lets other threads run at each row that it steps to, and waits its turn again: many rows a
        # statement are one step. PostgreSQL's are sent in a pipeline anyhow.
        self.insert_events = tuple((n, self._rows(insert, events, n)) for n in _ROWS if dialect.name == "sqlite")
        """Rows a statement and its text, most first; the parameters are those of `insert_event`, row by row."""
        self.answer = self._text(
            select(idempotency.c.digest, idempotency.c.first, idempotency.c.last, idempotency.c.answer).where(
                idempotency.c.library == library, idempotency.c.key == key
            ),
            "library",
            "key",
        )
        self.insert_answer = self._text(new(idempotency), "library", "key", "digest", "first", "last", "answer")
        self.insert_blob = self._text(new(blobs).on_conflict_do_nothing(), "sha256", "size", "data")
        self.erase_blob = self._text(delete(blobs).where(blobs.c.sha256 == bindparam("sha256")), "sha256")
        self.change_record = self._text(
            update(events)
            .values(record=bindparam("new_record"))
            .where(events.c.library == bindparam("library"), events.c.sequence == bindparam("at")),
            *("new_record", "library", "at"),
        )
        self.all_answers = self._text(
            select(idempotency.c.key, idempotency.c.answer).where(idempotency.c.library == library), "library"
        )
        self.change_answer = self._text(
            update(idempotency)
            .values(answer=bindparam("new_answer"))
            .where(idempotency.c.library == library, idempotency.c.key == key),
            *("new_answer", "library", "key"),
        )
        self.drop_snapshots = self._text(
            delete(snapshots).where(snapshots.c.library == library, snapshots.c.kind == bindparam("kind")),
            *("library", "kind"),
        )
        self.of_type = self._text(
            select(events.c.record)
            .where(events.c.library == library, events.c.type == bindparam("type"))
            .order_by(events.c.sequence),
            *("library", "type"),
        )
        self.libraries = self._text(select(libraries.c.name))
        self.blob = self._text(select(blobs.c.data).where(blobs.c.sha256 == bindparam("sha256")), "sha256")
        self.has_blob = self._text(
            select(literal_column("1")).select_from(blobs).where(blobs.c.sha256 == bindparam("sha256")), "sha256"
        )
        self.hashes = self._range(events.c.hash)
        self.blocks = self._blocks()
        self.page = self._page(events.c.type)
        self.page_of_bytes = self._page(cast(events.c.type, LargeBinary))

    def _rows(self, insert: Any, table: Table, count: int) -> str:
        named = [[f"{column.name}_{n}" for column in table.columns] for n in range(count)]
        rows: list[dict[str, Any]] = [
            dict(zip(table.columns.keys(), map(bindparam, names), strict=True)) for names in named
        ]
        return self._text(insert(table).values(rows), *itertools.chain.from_iterable(named))

    def _range(self, *columns: Any) -> str:
        return self._text(
            select(*columns)
            .where(
                events.c.library == bindparam("library"),
                events.c.sequence > bindparam("after"),
                events.c.sequence <= bindparam("until"),
            )
            .order_by(events.c.sequence),
            "library",
            "after",
            "until",
        )

    def _blocks(self) -> str:
        size, end = bindparam("size", type_=BigInteger), bindparam("until", type_=BigInteger)
        first = select(
            cast(bindparam("after"), BigInteger).label("after"), cast(bindparam("first"), BigInteger).label("until")
        ).cte("cut", recursive=True)
        following = case((first.c.until + size < end, first.c.until + size), else_=end)
        cut = first.union_all(select(first.c.until, following).where(first.c.until < end))
        rows = (
            select(events.c.record, events.c.sequence)
            .where(
                events.c.library == bindparam("library"),
                events.c.sequence > cut.c.after,
                events.c.sequence <= cut.c.until,
            )
            .order_by(events.c.sequence)
            .correlate(cut)
            .subquery()
        )
        lines: Any
        if self._dialect.name == "sqlite":
            # It takes them as they come, which is the order of the key; the driver hands out bytes for a BLOB alone.
            lines = cast(func.group_concat(rows.c.record, literal_column("char(10)")), LargeBinary)
        else:
            feed: Any = literal_column("'\\x0a'::bytea")
            lines = func.string_agg(rows.c.record, postgresql.aggregate_order_by(feed, rows.c.sequence))
        last = (
            select(events.c.hash)
            .where(events.c.library == bindparam("library"), events.c.sequence == cut.c.until)
            .correlate(cut)
            .scalar_subquery()
        )
        joined = select(lines).correlate(cut).scalar_subquery()
        found = select(cut.c.after, cut.c.until, last, joined)
        # SQLite gives them as it makes them; to be asked for an order it would make them all first.
        return self._text(
            found if self._dialect.name == "sqlite" else found.order_by(cut.c.until),
            *("after", "first", "size", "until", "size", "until", "until", "library", "library"),
        )

    def _page(self, kind: Any) -> str:
        return self._text(
            select(events.c.sequence, kind, events.c.record, events.c.hash)
            .where(
                events.c.library == bindparam("library"),
                events.c.sequence > bindparam("after"),
                events.c.sequence <= bindparam("until"),
            )
            .order_by(events.c.sequence)
            .limit(bindparam("size"))
            # SQLite's dialect would write the offset as a parameter of its own.
            .offset(literal_column("0")),
            "library",
            "after",
            "until",
            "size",
        )

    def _text(self, statement: Any, *names: str) -> str:
        compiled = statement.compile(dialect=self._dialect)
        order = tuple(compiled.positiontup or ())
        if order != names:
            raise AssertionError(f"parameters come in the order {order}, not {names}: {compiled}")
        return str(compiled)
