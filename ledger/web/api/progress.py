"""The route that says how far a long call has come."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ledger import wire
from ledger.web.calls import TheLedger

router = APIRouter(prefix="/v1/progress", tags=["service"])


@router.get("/{key}")
def read_progress(
    key: Annotated[str, Path(max_length=255, description="What the call was sent with as `X-Progress`.")],
    ledger: TheLedger,
) -> wire.Progress:
    """How far a running call has come."""
    done, of = ledger.progress.read(key)
    return wire.Progress(done=done, of=of)
