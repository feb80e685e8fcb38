"""Forms of checkpoints and proofs on the wire. Hashes are hex, 64 digits."""

from __future__ import annotations

from pydantic import Field

from ledger.wire import Wire


class Checkpoint(Wire):
    """A signed checkpoint (C2SP tlog-checkpoint) of a library."""

    library: str
    size: int
    root: str
    note: str
    """The signed text: keep this."""
    key: str
    """The public key as signed-note verifier text."""


class InclusionProof(Wire):
    """That a record is in the tree of the first `size` records (RFC 6962, 2.1.1)."""

    library: str
    sequence: int
    size: int
    record: str
    """The stored record, byte for byte."""
    previous_hash: str
    hash: str
    """SHA-256(previous hash || record), unless the record was redacted."""
    path: list[str]


class ConsistencyProof(Wire):
    """That the tree of the first `first` records begins that of the first `second` (RFC 6962, 2.1.2)."""

    library: str
    first: int
    second: int
    path: list[str]


class VerificationRequest(Wire):
    """What a log is to be checked against, besides itself."""

    checkpoints: list[str] = Field(default_factory=list, max_length=100)
    key: str | None = None
    """Verifier text of the key that signed them; default: the ledger's own."""


class RedactedFields(Wire):
    """Fields of one record, such as `payload.title` or `actor`."""

    sequence: int = Field(ge=1)
    fields: list[str] = Field(min_length=1)


class Redaction(Wire):
    """What is to be erased, and why. At least one of experience, blobs and records."""

    reason: str = Field(min_length=1)
    experience: str | None = None
    """All texts of an experience: every version of its body and rule, its titles, and what they were embedded as."""
    blobs: list[str] = Field(default_factory=list)
    records: list[RedactedFields] = Field(default_factory=list)


class Redacted(Wire):
    """What was erased."""

    sequence: int
    blobs: list[str]
    records: list[int]
