"""What one transaction does for the appends that share it: lock heads, decide each on its own, write all at once."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from ledger.errors import IdempotencyConflictError, LedgerError, LogCorruptError, SequenceConflictError
from ledger.store import chain
from ledger.store.committer import Append
from ledger.store.log import ABSENT, ERASED, Answer, Erasure, Head, Stored, check_expected
from ledger.store.redaction import holds
from ledger.store.shelf import MADE_OF_TEXTS
from ledger.store.statements import Statements

CHUNK = 1000
"""Rows a driver call: psycopg's pipeline hangs where one call sends far more than the server may answer."""

# What deciding one append may be refused with: our own errors, and what an event that can not be written raises.
_OWN_FAULT = (LedgerError, TypeError, ValueError, msgspec.MsgspecError)


def perform(cursor: Any, sql: Statements, items: Sequence[Append], integrity_error: type[Exception]) -> None:
    """Decide and write `items` in the open transaction; each gets its outcome or its own error.

    Raises what the driver raises, and LogCorruptError: then nothing of the transaction may be kept.
    """
    libraries: dict[str, list[Append]] = {}
    for item in items:
        libraries.setdefault(item.library, []).append(item)
    # In one order everywhere, so that two services never wait for each other.
    names = sorted(libraries)
    heads = _lock_heads(cursor, sql, names)
    batch = _Batch(cursor, sql, integrity_error)
    for name in names:
        head = heads.get(name, ABSENT)
        # An absent row can not be locked: who loses the race to make it decides again on what the other made.
        while not batch.add(name, head, libraries[name]):
            head = _lock_heads(cursor, sql, [name]).get(name, ABSENT)
    batch.write()


def _lock_heads(cursor: Any, sql: Statements, names: list[str]) -> dict[str, Head]:
    if sql.lock_heads is None:
        found = ((name, cursor.execute(sql.lock_head, (name,)).fetchone()) for name in names)
        return {name: Head(*row) for name, row in found if row is not None}
    rows = cursor.execute(sql.lock_heads, (names,)).fetchall()
    return {name: Head(sequence, hash_) for name, sequence, hash_ in rows}


class _Batch:
    """Rows that are to be written, collected over the libraries of one transaction."""

    def __init__(self, cursor: Any, sql: Statements, integrity_error: type[Exception]) -> None:
        self._cursor = cursor
        self._sql = sql
        self._integrity_error = integrity_error
        self._events: list[tuple[Any, ...]] = []
        self._answers: list[tuple[Any, ...]] = []
        self._heads: list[tuple[Any, ...]] = []
        self._blobs: dict[str, bytes] = {}
        self._erasures: list[tuple[str, Erasure]] = []

    def add(self, library: str, head: Head, items: list[Append]) -> bool:  # noqa: C901 - one branch a refusal
        """Decide a library's appends one after the other. False: another service made the library meanwhile."""
        kept = self._kept(library, items)
        first = head
        rows: list[Stored] = []
        answers: list[tuple[Any, ...]] = []
        blobs: dict[str, bytes] = {}
        for item in items:
            item.outcome = item.error = None
            key = item.idempotency
            try:
                if key is not None and key.key in kept:
                    if kept[key.key].digest != key.digest:
                        raise IdempotencyConflictError(library, key.key)
                    item.outcome = kept[key.key]
                    continue
                if isinstance(item.after, Append) and not item.after.appended:
                    raise SequenceConflictError(library, getattr(item.expected, "sequence", -1), head.sequence)
                check_expected(library, item.expected, head, empty=not item.drafts)
                new = chain.extend(library, head, item.drafts)
            except _OWN_FAULT as error:
                item.error = error
                continue
            if key is not None:
                last = head.sequence + len(new)
                kept[key.key] = Answer(key.digest, head.sequence + 1, last, key.answer)
                answers.append((library, key.key, key.digest, head.sequence + 1, last, key.answer))
            rows.extend(new)
            blobs.update(item.blobs)
            if item.erase is not None:
                self._erasures.append((library, item.erase))
            item.outcome = head = Head(new[-1].sequence, new[-1].hash) if new else head
        if head.sequence and not first.sequence:
            self._cursor.execute(self._sql.insert_library, (library, head.sequence, head.hash))
            if self._cursor.rowcount != 1:
                return False
        elif head is not first:
            self._heads.append((head.sequence, head.hash, library))
        self._events.extend((library, row.sequence, row.type, row.record, row.hash) for row in rows)
        self._answers.extend(answers)
        self._blobs.update(blobs)
        return True

    def write(self) -> None:
        """Send everything; to PostgreSQL without waiting for each answer."""
        pipeline = getattr(getattr(self._cursor, "connection", None), "pipeline", contextlib.nullcontext)
        try:
            with pipeline():
                self._insert_events()
                self._many(self._sql.move_head, self._heads)
                self._many(self._sql.insert_answer, self._answers)
                self._many(self._sql.insert_blob, [(sha256, len(data), data) for sha256, data in self._blobs.items()])
        except self._integrity_error as error:
            library, sequence = self._events[0][:2] if self._events else ("?", 0)
            raise LogCorruptError(library, sequence, "a record stands behind the head already") from error
        for library, erasure in self._erasures:
            self._erase(library, erasure)

    def _erase(self, library: str, erasure: Erasure) -> None:
        self._many(self._sql.erase_blob, [(sha256,) for sha256 in erasure.blobs])
        self._many(self._sql.change_record, [(record, library, at) for at, record in erasure.records.items()])
        kept = self._cursor.execute(self._sql.all_answers, (library,)).fetchall()
        held = [key for key, answer in kept if holds(answer, erasure.texts)]
        self._many(self._sql.change_answer, [(ERASED, library, key) for key in held])
        for kind in MADE_OF_TEXTS:
            self._cursor.execute(self._sql.drop_snapshots, (library, kind))

    def _insert_events(self) -> None:
        start = 0
        for count, statement in self._sql.insert_events:
            while len(self._events) - start >= count:
                rows = self._events[start : start + count]
                self._cursor.execute(statement, tuple(itertools.chain.from_iterable(rows)))
                start += count
        self._many(self._sql.insert_event, self._events[start:])

    def _many(self, statement: str, values: list[tuple[Any, ...]]) -> None:
        if len(values) == 1:
            self._cursor.execute(statement, values[0])
            return
        for start in range(0, len(values), CHUNK):
            self._cursor.executemany(statement, values[start : start + CHUNK])

    def _kept(self, library: str, items: list[Append]) -> dict[str, Answer]:
        keys = [item.idempotency.key for item in items if item.idempotency is not None]
        if not keys:
            return {}
        if self._sql.answers is None:
            found = ((key, self._cursor.execute(self._sql.answer, (library, key)).fetchone()) for key in keys)
            return {key: Answer(*row) for key, row in found if row is not None}
        rows = self._cursor.execute(self._sql.answers, (library, keys)).fetchall()
        return {row[0]: Answer(*row[1:]) for row in rows}
