"""The tables of the SQL store. The migrations make them; a test holds the two together."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, PrimaryKeyConstraint, Table, Text

REVISIONS: Final = ("0001", "0002")
"""All schema revisions, oldest first. Named here too, so that a start on a current schema loads no migrations."""

ADDED: Final = {
    "0001": "libraries, events, idempotency keys and blobs",
    "0002": "checkpoints that were signed, and snapshots, which are a cache",
}
"""What each revision brought, and going back behind it takes away."""

# No foreign keys: head and records are written in one transaction, and the chain finds strays.
metadata: Final = MetaData()

libraries: Final = Table(
    "libraries",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""One row a library: its head. Appends lock it."""

events: Final = Table(
    "events",
    metadata,
    Column("library", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("library", "sequence"),
    # The rows themselves lie in order of the key: one tree to write and one to scan instead of two.
    sqlite_with_rowid=False,
)

idempotency: Final = Table(
    "idempotency",
    metadata,
    Column("library", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    PrimaryKeyConstraint("library", "key"),
    sqlite_with_rowid=False,
)

blobs: Final = Table(
    "blobs",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

snapshots: Final = Table(
    "snapshots",
    metadata,
    Column("library", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("library", "kind", "sequence"),
)
"""A cache of what a library folds to; `hash` is that of its record `sequence`, `digest` the SHA-256 of `data`."""

checkpoints: Final = Table(
    "checkpoints",
    metadata,
    Column("library", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
    PrimaryKeyConstraint("library", "size"),
    sqlite_with_rowid=False,
)
"""Every checkpoint that was signed."""
