"""Typed events of a long log, each checked before it is given: blocks of records, read ahead while others are decoded.

A record is checked by the chain: its hash follows from it and the hash before. That costs a SHA-256 for each, and is
done once: a block that held has its seal kept, one SHA-256 over its records as they lie in the database and the stored
hash of the last. Later walks read every record again, but compare the block with its seal. A block without a seal, or
whose seal does not match, is checked by the chain, record by record, and the record that does not hold is named.

Seals are a cache like snapshots: losing them costs time. They show any change of the records since these were checked.
They are not signed, so they say nothing against somebody who rewrites them too; `sagebook verify` looks at none.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Event as Flag
from threading import Lock, Semaphore, Thread
from typing import Final

import structlog

from ledger import errors
from ledger.domain.events import Event
from ledger.store import chain, codec, redaction
from ledger.store.log import BLOCK, GENESIS, Block, Log, cuts
from ledger.store.shelf import SEALS, Snapshot

SAVED: Final = 10
"""New seals that are worth a write."""
_AHEAD: Final = 8
_LONG: Final = 4 * BLOCK
"""Records that are worth a thread."""
_UNSEALED: Final = bytes(32)

_Sealed = tuple[Block, bytes]


class _Seals:
    """Seals of a library's blocks, 32 bytes each; zeros where there is none."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.fresh = 0

    def of(self, number: int) -> bytes:
        """The seal of a block, counted from 0."""
        return bytes(self.data[32 * number : 32 * number + 32]) or _UNSEALED

    def put(self, number: int, digest: bytes) -> None:
        """Keep one that was not kept yet, or was another."""
        if 32 * number > len(self.data):
            self.data.extend(bytes(32 * number - len(self.data)))
        self.data[32 * number : 32 * number + 32] = digest
        self.fresh += 1


def seal(block: Block) -> bytes:
    """SHA-256 over a block's records and the hash stored with the last."""
    digest = hashlib.sha256(block.lines)
    digest.update(block.hash)
    return digest.digest()


class Walker:
    """Over one log. Safe under threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._say = structlog.get_logger("ledger")

    def events(self, library: str, *, after: int, until: int) -> Generator[list[Event], None, None]:
        """Give the events with `after` < sequence <= `until` in order, some hundreds at a time.

        Raises LogCorruptError at a record that does not hold and was not redacted; what was given before it held.
        """
        if after >= until:
            return
        last = self._hash(library, after)
        seals = self._kept(library)
        blocks = self._read(library, after, until)
        # The database's work and the hashing of a whole block let other threads run: one reads while this one decodes.
        for block, found in _ahead(blocks) if until - after > _LONG else blocks:
            lines, last = self._checked(library, block, found, last, seals)
            yield codec.events(lines, block.until - block.after)
        if seals.fresh >= SAVED:
            self._save(library, seals)

    def seal(self, library: str, *, after: int, until: int) -> None:
        """Read back what was appended behind `after`, and seal the whole blocks of it that hold."""
        seals = self._kept(library)
        after, until = after - after % BLOCK, until - until % BLOCK
        while after < until and seals.of(after // BLOCK) != _UNSEALED:
            after += BLOCK
        if after >= until:
            return
        last = self._hash(library, after)
        for block, found in self._read(library, after, until):
            # Where one does not hold, an opening says so, and `verify`; an append is not the place.
            if _follows(block, last):
                seals.put(block.after // BLOCK, found)
            last = block.hash
        if seals.fresh:
            self._save(library, seals)

    def _hash(self, library: str, sequence: int) -> bytes:
        found = self._log.hashes(library, after=sequence - 1, until=sequence) if sequence else [GENESIS]
        if not found:
            raise errors.LogCorruptError(library, sequence, "missing: there are records behind it")
        return found[0]

    def _checked(self, library: str, block: Block, found: bytes, last: bytes, seals: _Seals) -> tuple[bytes, bytes]:
        """Check a block's records; gives them, one a line, and the hash of the last."""
        whole = block.until - block.after == BLOCK
        kept = seals.of(block.after // BLOCK) if whole else _UNSEALED
        if kept == found != _UNSEALED:
            return block.lines, block.hash
        if _follows(block, last):
            if whole:
                seals.put(block.after // BLOCK, found)
                if kept != _UNSEALED:
                    self._say.info("seal_dropped", library=library, sequence=block.until)
            return block.lines, block.hash
        records, end = self._check_each(library, last, block)
        lines = b"\n".join(records)
        if whole and (block.lines, block.hash) == (lines, end):
            seals.put(block.after // BLOCK, found)
        return lines, end

    def _check_each(self, library: str, last: bytes, block: Block) -> tuple[list[bytes], bytes]:
        """Find which record does not follow from the one before. Raises unless all were redacted that do not."""
        records, after = [], block.after
        for item in self._log.read(library, after=after, until=block.until):
            after += 1
            try:
                follows = item.sequence == after and chain.link(last, item.record) == item.hash
            except TypeError:  # damaged: no longer bytes
                follows = False
            if not follows and not self._was_redacted(library, after, item.record):
                raise errors.LogCorruptError(
                    library,
                    after,
                    "the hash does not follow from the record and the hash before it; "
                    "`sagebook verify` finds what was changed",
                )
            records.append(item.record)
            last = item.hash
        if after != block.until:
            head = self._log.head(library).sequence
            raise errors.LogCorruptError(library, after + 1, f"missing: the head is at {head}")
        return records, last

    def _was_redacted(self, library: str, sequence: int, record: bytes) -> bool:
        if not isinstance(record, bytes) or not redaction.is_redacted(record):
            return False
        digest = redaction.digest(record)
        told = self._log.of_type(library, redaction.TYPE)
        return any((sequence, digest) in redaction.vouched(item) for item in told)

    def _read(self, library: str, after: int, until: int) -> Iterator[_Sealed]:
        at = after
        try:
            for block in self._log.blocks(library, after=after, until=until):
                yield block, seal(block)
                at = block.until
        except errors.StoreUnavailableError:
            # One is too long, or damaged so that it is no longer bytes: record by record it is found out.
            for start, end in cuts(at, until):
                yield Block(start, end, b"", b""), _UNSEALED

    # --- seals -----------------------------------------------------------------------------------------------------

    def _kept(self, library: str) -> _Seals:
        try:
            found = self._log.shelf.snapshot(library, SEALS, until=BLOCK)
        except errors.StoreUnavailableError:  # damaged beyond reading
            found = None
        return _Seals(b"" if found is None else found.data)

    def _save(self, library: str, seals: _Seals) -> None:
        # In one row, which stands at the first block's end: each seal is compared with its block anyway.
        with contextlib.suppress(errors.WriterHeldError, errors.StoreUnavailableError):
            named = Snapshot(BLOCK, self._hash(library, BLOCK), bytes(seals.data))
            self._log.shelf.put_snapshot(library, SEALS, named)


def _follows(block: Block, last: bytes) -> bool:
    records = block.lines.split(b"\n")
    return len(records) == block.until - block.after and chain.run(last, records) == block.hash


def _ahead(items: Iterator[_Sealed]) -> Iterator[_Sealed]:
    """The same, made by a thread of its own, a few before they are asked for."""
    made: SimpleQueue[_Sealed | BaseException | None] = SimpleQueue()
    room, stop = Semaphore(_AHEAD), Flag()

    def make() -> None:
        try:
            for item in items:
                room.acquire()
                if stop.is_set():
                    break
                made.put(item)
            made.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by who asks
            made.put(error)

    thread = Thread(target=make, name="walk", daemon=True)
    _ShortTurns.begin()
    thread.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item
    finally:
        stop.set()
        room.release()
        thread.join()
        _ShortTurns.end()


class _ShortTurns:
    """While walks go on, threads take turns sooner: the reader needs the interpreter for moments only, but at once.

    Where it waited the usual 5 ms for each, it would read nothing ahead of a fold that never pauses. The setting is the
    process's, so it is counted here for all walks.
    """

    SECONDS: Final = 1e-4
    _guard = Lock()
    _walks = 0
    _usual = 0.0

    @classmethod
    def begin(cls) -> None:
        with cls._guard:
            cls._walks += 1
            if cls._walks == 1:
                cls._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(cls.SECONDS, cls._usual))

    @classmethod
    def end(cls) -> None:
        with cls._guard:
            cls._walks -= 1
            if cls._walks == 0:
                sys.setswitchinterval(cls._usual)
