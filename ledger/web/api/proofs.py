"""Routes of checkpoints and proofs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ledger import wire, wire_proofs
from ledger.commands import proofs, redaction
from ledger.web.calls import TheCall, TheLedger, reply

router = APIRouter(prefix="/v1/libraries/{library}", tags=["proofs"])


@router.get("/checkpoint")
def checkpoint(library: str, ledger: TheLedger) -> wire_proofs.Checkpoint:
    """Sign the log as it is: a C2SP tlog-checkpoint. Keep the note; a later log must begin with what it stands for."""
    return proofs.checkpoint(ledger, library)


@router.get("/proofs/inclusion")
def inclusion(
    library: str,
    ledger: TheLedger,
    sequence: Annotated[int, Query(ge=1)],
    size: Annotated[int | None, Query(ge=1, description="Size of the tree; default: all records.")] = None,
) -> wire_proofs.InclusionProof:
    """Prove that a record is in the tree of a checkpoint."""
    return proofs.inclusion(ledger, library, sequence, size)


@router.get("/proofs/consistency")
def consistency(
    library: str,
    ledger: TheLedger,
    first: Annotated[int, Query(ge=1)],
    second: Annotated[int | None, Query(ge=1, description="Size of the later tree; default: all records.")] = None,
) -> wire_proofs.ConsistencyProof:
    """Prove that the log of an earlier checkpoint begins a later one: that it has only grown."""
    return proofs.consistency(ledger, library, first, second)


@router.post("/redactions", response_model=wire_proofs.Redacted, status_code=201)
def redact(library: str, given: wire_proofs.Redaction, ledger: TheLedger, call: TheCall) -> Response:
    """Erase texts for good: an experience's, blobs, or fields of records. Hashes, proofs and values stay."""
    return reply(redaction.redact(ledger, call, library, given), 201)


@router.post("/verification")
def verify(library: str, asked: wire_proofs.VerificationRequest, ledger: TheLedger) -> wire.Verification:
    """Check every stored record against the chain, and the tree against every checkpoint signed before or given."""
    return proofs.verify(ledger, library, asked)
