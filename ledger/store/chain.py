"""The hash chain: what links the records of a library, and what finds any of them changed.

hash = SHA-256(previous hash || record bytes); the hash before the first record is 32 zero bytes. It covers the stored
bytes themselves, so verifying needs no parsing and no re-serialisation. A whole log rewritten with a recomputed chain
and head is consistent in itself: only a head kept elsewhere shows that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from ledger.errors import LogCorruptError
from ledger.store import codec, redaction
from ledger.store.log import GENESIS, Draft, Head, Log, Stored

BEFORE_ALL = -(2**63)
"""Where a walk begins, so that a record in front of the first is seen."""


NOT_FOLLOWING = "the hash does not follow from the record and the hash before it"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification found."""

    ok: bool
    events: int
    """Records that hold, counted from the first."""
    head: bytes
    """Hash of the last one of these."""
    bad_sequence: int | None = None
    """First place that does not hold."""
    reason: str | None = None


def link(previous: bytes, record: bytes) -> bytes:
    """Hash of a record that follows a record with hash `previous`."""
    return hashlib.sha256(previous + record).digest()


def run(previous: bytes, records: Iterable[bytes]) -> bytes:
    """Hash of the last of these records, the first of which follows one with hash `previous`.

    Where it is the hash that was stored with the last one, none of them was changed; where it is not, `link` finds
    which. Raises TypeError where one of them is no bytes.
    """
    sha256 = hashlib.sha256
    for record in records:
        previous = sha256(previous + record).digest()
    return previous


def extend(library: str, head: Head, drafts: Sequence[Draft]) -> list[Stored]:
    """Make the rows of a batch that is put behind `head`."""
    sequence, previous = head.sequence, head.hash
    rows = []
    for draft in drafts:
        sequence += 1
        record = codec.assemble(library, sequence, draft)
        previous = link(previous, record)
        rows.append(Stored(sequence, draft.type, record, previous))
    return rows


class Verifier:
    """Walks a library's records in order and stops at the first that does not hold."""

    def __init__(self, library: str) -> None:
        self.events = 0
        self._library = library
        self._opening = b'{"library":%s,"sequence":' % msgspec.json.encode(library)
        self._hash = GENESIS
        self._bad: tuple[int, str] | None = None
        self._redacted: dict[int, str] = {}

    def walk(self, stored: Iterable[Stored]) -> bool:
        """Check the records that come next. False: one of them does not hold."""
        try:
            for item in stored:
                reason = self._fault(item)
                if reason == NOT_FOLLOWING and redaction.is_redacted(item.record):
                    # It stands as long as a later event says that it was redacted to just this.
                    self._redacted[item.sequence] = redaction.digest(item.record)
                    reason = self._place_fault(item, self.events + 1)
                if item.type == redaction.TYPE and reason is None:
                    for sequence, digest in redaction.vouched(item.record):
                        if self._redacted.get(sequence) == digest:
                            del self._redacted[sequence]
                if reason is not None:
                    self._bad = (self.events + 1, reason)
                    return False
                self._hash = item.hash
                self.events += 1
        except LogCorruptError as error:
            self._bad = (self.events + 1, error.message)
        return self._bad is None

    @property
    def bad(self) -> bool:
        """Whether a record was found that does not hold."""
        return self._bad is not None

    def condemn(self, sequence: int, reason: str) -> None:
        """Take the records from `sequence` on for bad, unless an earlier one is."""
        if self._bad is None or sequence < self._bad[0]:
            self._bad = (sequence, reason)

    def finish(self, head: Head) -> Verdict:
        """Compare where the walk ended with the head that the store keeps beside the records."""
        if self._redacted:
            self.condemn(min(self._redacted), "it was changed, and no event says that it was redacted to this")
        if self._bad is None:
            if head.sequence > self.events:
                self._bad = (
                    self.events + 1,
                    f"missing: the head is at {head.sequence}, the records end at {self.events}",
                )
            elif head.sequence < self.events:
                self._bad = (head.sequence + 1, f"added behind the head, which is at {head.sequence}")
            elif head.hash != self._hash:
                self._bad = (max(self.events, 1), "the head's hash is not the hash of the last record")
        bad, reason = self._bad or (None, None)
        return Verdict(ok=bad is None, events=self.events, head=self._hash, bad_sequence=bad, reason=reason)

    def _fault(self, item: Stored) -> str | None:
        expected = self.events + 1
        if item.sequence != expected:
            return f"missing or out of order: {item.sequence!r} stands where {expected} should"
        # A damaged column can come back as another type than it was stored with.
        if not (isinstance(item.record, bytes) and isinstance(item.hash, bytes) and isinstance(item.type, str)):
            return "a column is stored as something else than what it holds"
        if link(self._hash, item.record) != item.hash:
            return NOT_FOLLOWING
        return self._place_fault(item, expected)

    def _place_fault(self, item: Stored, expected: int) -> str | None:
        # What `codec.assemble` writes; anything else is looked at closely.
        if item.record.startswith(b'%s%d,"type":"%s",' % (self._opening, expected, item.type.encode())):
            return None
        return self._misplaced(item, expected)

    def _misplaced(self, item: Stored, expected: int) -> str | None:
        try:
            library, sequence, kind = codec.place(item.record)
        except LogCorruptError as error:
            return error.message
        if (library, sequence, kind) != (self._library, expected, item.type):
            return (
                f"the record calls itself {kind!r} {sequence} of library {library!r}, "
                f"but is stored as {item.type!r} {expected} of library {self._library!r}"
            )
        return None


def verify(library: str, stored: Iterable[Stored], head: Head) -> Verdict:
    """Check records from the first on against the chain and the head; `stored` must end where `head` was taken."""
    verifier = Verifier(library)
    verifier.walk(stored)
    return verifier.finish(head)


def audit(log: Log, library: str) -> Verdict:
    """Check a library that may be growing meanwhile.

    The head is read after the records: it then lies at or behind their end, unless rows were added outside the log.
    """
    verifier = Verifier(library)
    sound = verifier.walk(log.read(library, after=BEFORE_ALL))
    head = log.head(library)
    if sound and head.sequence > verifier.events:
        verifier.walk(log.read(library, after=verifier.events, until=head.sequence))
    return verifier.finish(head)
