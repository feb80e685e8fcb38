"""Routes of the log itself: events, blobs, traces, verification."""

from __future__ import annotations

import tempfile
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from ledger import wire
from ledger.commands import proofs
from ledger.service import Call, event_record
from ledger.trace_read import import_trace
from ledger.transfer import export_trace
from ledger.web.calls import TheActor, TheLedger, policy_given, reply
from ledger.wire_proofs import VerificationRequest

router = APIRouter(prefix="/v1/libraries/{library}", tags=["log"])

_SPOOL_BYTES = 8 << 20
_PART_BYTES = 1 << 16


def _content(media_type: str) -> dict[str, Any]:
    """The body of a route that reads it as it is."""
    return {
        "requestBody": {"required": True, "content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}
    }


@router.get("/events")
def list_events(
    library: str,
    ledger: TheLedger,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Sequence after which to read.")] = 0,
    limit: Annotated[int, Query(gt=0, le=1000)] = 200,
) -> wire.Events:
    """The log in order, after a sequence."""
    rows, previous, head = ledger.stored(library, after=after, limit=limit)
    items = []
    for row in rows:
        items.append(event_record(library, row, previous))
        previous = row.hash
    return wire.Events(items=items, head=head)


@router.put("/blobs/{sha256}", status_code=204, openapi_extra=_content("application/octet-stream"))
async def put_blob(library: str, sha256: str, request: Request, ledger: TheLedger) -> Response:
    """Store content under its SHA-256, once."""
    data = await request.body()
    await run_in_threadpool(_put, ledger, library, sha256, data)
    return Response(status_code=204)


def _put(ledger: TheLedger, library: str, sha256: str, data: bytes) -> None:
    with ledger.reading(library):
        ledger.put_blob(sha256, data)


@router.get("/blobs/{sha256}", response_class=Response)
def get_blob(library: str, sha256: str, ledger: TheLedger) -> Response:
    """Content by its SHA-256."""
    with ledger.reading(library):
        data = ledger.blob(sha256)
    return Response(
        data,
        media_type="application/octet-stream",
        headers={"ETag": f'"{sha256}"', "X-Content-Type-Options": "nosniff"},
    )


@router.post("/import", response_model=wire.ImportedTrace, openapi_extra=_content("application/x-ndjson"))
async def import_lines(
    library: str,
    request: Request,
    ledger: TheLedger,
    actor: TheActor,
    resume: Annotated[bool, Query(description="Pass over records that the library holds.")] = False,
    create: Annotated[bool, Query(description="Make the library where there is none.")] = False,
    policy: Annotated[
        str | None,
        Query(description="Policy of a library to make, a preset's name or fields as JSON; one there must have it."),
    ] = None,
) -> Response:
    """Import a trace (JSON lines). A bad record is refused by line; the records before it are stored."""
    wanted = None if policy is None else policy_given(policy)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        async for part in request.stream():
            await run_in_threadpool(spool.write, part)
        spool.seek(0)
        answer = await run_in_threadpool(
            import_trace, ledger, Call(actor=actor), library, spool, resume=resume, policy=wanted, create=create
        )
    return reply(answer)


@router.get("/export", response_class=StreamingResponse)
def export(library: str, ledger: TheLedger) -> StreamingResponse:
    """The library as a trace that imports to the same state."""
    # Written whole before the answer begins, so that a refusal is one.
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - closed after the answer was sent
    try:
        spool.writelines(export_trace(ledger, library))
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return StreamingResponse(
        iter(lambda: spool.read(_PART_BYTES), b""),
        media_type="application/x-ndjson",
        background=BackgroundTask(spool.close),
    )


@router.get("/verification")
def verify(library: str, ledger: TheLedger) -> wire.Verification:
    """Check every stored record against the hash chain and the head, and every blob that one names."""
    return proofs.verify(ledger, library, VerificationRequest())
