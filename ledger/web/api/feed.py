"""The live feed: a library's events as they are stored, as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from ledger import errors
from ledger.service import Ledger, event_record
from ledger.web.calls import TheLedger

router = APIRouter(prefix="/v1/libraries/{library}", tags=["log"])

POLL_SECONDS = 1.0
"""How often the log is looked at without being told."""
PAGE = 500


def _start(
    library: str,
    ledger: TheLedger,
    after: Annotated[int, Query(ge=0, description="Sequence after which to begin.")] = 0,
    last_event_id: Annotated[str | None, Header(description="Sequence of the last event received.")] = None,
) -> int:
    ledger.head(library)
    if not last_event_id:
        return after
    if not last_event_id.isdecimal():
        raise errors.RequestInvalidError(f"Last-Event-ID is {last_event_id!r}; it is the sequence of an event")
    return int(last_event_id)


@router.get("/feed", response_class=EventSourceResponse)
async def feed(
    library: str, ledger: TheLedger, start: Annotated[int, Depends(_start)]
) -> AsyncIterator[ServerSentEvent]:
    """Every event once, in order, from `Last-Event-ID` or `after` on; stays open for those to come.

    `id` is the sequence, `event` is `event`, `data` the record as `/events` shows it. Now and then a comment is sent.
    """
    grown = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ring() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(grown.set)

    stop = ledger.listen(library, ring)
    try:
        # Past the library's end a resumed reader waits; it is never sent what it has.
        after = start
        while True:
            grown.clear()
            page = await run_in_threadpool(_page, ledger, library, after)
            for sequence, data in page:
                yield ServerSentEvent(id=str(sequence), event="event", raw_data=data)
                after = sequence
            if not page:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(grown.wait(), POLL_SECONDS)
    finally:
        stop()


def _page(ledger: Ledger, library: str, after: int) -> list[tuple[int, str]]:
    rows, previous, _ = ledger.stored(library, after=after, limit=PAGE)
    page: list[tuple[int, str]] = []
    for row in rows:
        if row.sequence != after + len(page) + 1:
            # A replica may show a later event first: what is behind a gap waits for the gap to fill.
            break
        page.append((row.sequence, event_record(library, row, previous).model_dump_json(by_alias=True)))
        previous = row.hash
    return page
