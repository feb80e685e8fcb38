"""What a client checks by itself, without believing the ledger: that a log has only grown since a checkpoint."""

from __future__ import annotations

from typing import Any, Protocol

from ledger import errors, wire_proofs
from ledger.store import checkpoint, merkle, redaction

FORMAT = "sagebook.proof/1"


class Source(Protocol):
    """A ledger that is asked for proofs of one library."""

    library: str

    def checkpoint(self) -> wire_proofs.Checkpoint:
        """Sign it as it is."""
        ...

    def inclusion(self, sequence: int, size: int) -> wire_proofs.InclusionProof:
        """Prove a record."""
        ...

    def consistency(self, first: int, second: int) -> list[bytes]:
        """Prove growth."""
        ...


def unproved(source: Source, notes: list[str], key: str | None) -> tuple[int, str] | None:
    """The first place and the reason where the ledger does not prove that it extends the notes; None where it does.

    Raises CheckpointInvalidError for a note that the key did not sign.
    """
    told = source.checkpoint()
    key = key or told.key
    now = checkpoint.opened(told.note, key)
    held = 0
    for old in sorted((checkpoint.opened(note, key) for note in notes), key=lambda item: item.size):
        if old.size > now.size:
            return now.size + 1, f"missing: a checkpoint of {old.size} records was signed, and there are {now.size}"
        path = source.consistency(old.size, now.size) if old.size else []
        if not merkle.extends(old.size, now.size, path, old.root, now.root):
            return held + 1, f"rewritten: the log does not extend the checkpoint of {old.size} records"
        held = old.size
    return None


def bundle(source: Source, sequence: int | None, since: str | None) -> dict[str, Any]:
    """Proofs against a checkpoint signed now, in one JSON object. Raises InvalidInputError for nothing."""
    if sequence is None and since is None:
        raise errors.InvalidInputError("name a record to prove, an earlier checkpoint, or both")
    told = source.checkpoint()
    made: dict[str, Any] = {"format": FORMAT, "library": source.library, "key": told.key, "checkpoint": told.note}
    if sequence is not None:
        proof = source.inclusion(sequence, told.size)
        made["record"] = {
            "sequence": sequence,
            "record": proof.record,
            "previous_hash": proof.previous_hash,
            "hash": proof.hash,
            "path": proof.path,
        }
        if redaction.is_redacted(proof.record.encode()):
            made["record"]["redacted"] = True
    if since is not None:
        old = checkpoint.opened(since, told.key)
        path = source.consistency(old.size, told.size) if 0 < old.size <= told.size else []
        made["since"] = {"checkpoint": since, "path": [item.hex() for item in path]}
    return made
