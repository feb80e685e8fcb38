"""Routes of libraries and their state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ledger import wire
from ledger.commands import libraries
from ledger.web import paging
from ledger.web.calls import At, TheCall, TheLedger, reply

router = APIRouter(prefix="/v1/libraries", tags=["libraries"])


@router.post("", response_model=wire.Library, status_code=201)
def create_library(new: wire.NewLibrary, ledger: TheLedger, call: TheCall) -> Response:
    """Open a library under a policy: a preset's name, or fields over the preset `sage`."""
    return reply(libraries.create(ledger, call, new), 201)


@router.get("")
def list_libraries(
    ledger: TheLedger, cursor: str | None = None, limit: Annotated[int, Query(gt=0, le=500)] = 100
) -> wire.Libraries:
    """All libraries, by name."""
    start = paging.unpack("libraries", cursor)
    names = ledger.libraries()
    more = start + limit < len(names)
    return wire.Libraries(
        items=[libraries.show(ledger, name) for name in names[start : start + limit]],
        next_cursor=paging.pack("libraries", start + limit) if more else None,
    )


@router.get("/{library}")
def show_library(library: str, ledger: TheLedger) -> wire.Library:
    """One library: its policy, its size, its residents' tokens."""
    return libraries.show(ledger, library)


@router.get("/{library}/state")
def show_state(library: str, ledger: TheLedger, at: At = None) -> wire.State:
    """Values, frequencies and residents, now or as of a sequence or time."""
    return libraries.state_of(ledger, library, at)
