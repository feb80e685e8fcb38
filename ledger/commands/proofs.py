"""Checkpoints and proofs, as the wire shows them."""

from __future__ import annotations

from ledger import wire, wire_proofs
from ledger.commands import evidence
from ledger.service import Ledger
from ledger.store import chain


def checkpoint(ledger: Ledger, library: str) -> wire_proofs.Checkpoint:
    """Sign the library as it is."""
    made = ledger.proofs.checkpoint(library)
    return wire_proofs.Checkpoint(library=library, size=made.size, root=made.root.hex(), note=made.note, key=made.key)


def inclusion(ledger: Ledger, library: str, sequence: int, size: int | None) -> wire_proofs.InclusionProof:
    """Prove that a record is in the tree."""
    made = ledger.proofs.inclusion(library, sequence, size)
    return wire_proofs.InclusionProof(
        library=library,
        sequence=made.sequence,
        size=made.size,
        record=made.record.decode("utf-8", errors="replace"),
        previous_hash=made.previous.hex(),
        hash=made.hash.hex(),
        path=[item.hex() for item in made.path],
    )


def consistency(ledger: Ledger, library: str, first: int, second: int | None) -> wire_proofs.ConsistencyProof:
    """Prove that the log has only grown."""
    size, path = ledger.proofs.consistency(library, first, second)
    return wire_proofs.ConsistencyProof(library=library, first=first, second=size, path=[item.hex() for item in path])


def verify(ledger: Ledger, library: str, asked: wire_proofs.VerificationRequest) -> wire.Verification:
    """Check the whole log, by itself and by checkpoints, and the blobs that it names."""
    verdict = shown(library, ledger.proofs.verify(library, asked.checkpoints, asked.key))
    if not verdict.ok:
        return verdict
    found = evidence.check(ledger, library)
    return verdict.model_copy(
        update={
            "ok": found.bad_sequence is None,
            "blobs": found.checked,
            "erased_blobs": found.erased,
            "bad_sequence": found.bad_sequence,
            "reason": found.reason,
        }
    )


def shown(library: str, verdict: chain.Verdict) -> wire.Verification:
    """A verdict."""
    return wire.Verification(
        library=library,
        ok=verdict.ok,
        events=verdict.events,
        head=verdict.head.hex(),
        bad_sequence=verdict.bad_sequence,
        reason=verdict.reason,
    )
