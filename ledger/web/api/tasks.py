"""Routes of tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ledger import wire
from ledger.commands import stages, tasks
from ledger.web import paging
from ledger.web.calls import TheCall, TheLedger, reply

router = APIRouter(prefix="/v1/libraries/{library}/tasks", tags=["tasks"])


@router.post("", response_model=wire.Task, status_code=201)
def start_task(library: str, new: wire.NewTask, ledger: TheLedger, call: TheCall) -> Response:
    """Begin an attempt at one operator."""
    return reply(tasks.start(ledger, call, library, new), 201)


@router.get("")
def list_tasks(
    library: str,
    ledger: TheLedger,
    cursor: str | None = None,
    limit: Annotated[int, Query(gt=0, le=200)] = 50,
) -> wire.Tasks:
    """Tasks in the order in which they were started."""
    listing = f"tasks:{library}"
    items, following = tasks.page(ledger, library, start_at=paging.unpack(listing, cursor), limit=limit)
    return wire.Tasks(items=items, next_cursor=paging.pack(listing, following) if following else None)


@router.get("/{task}")
def show_task(library: str, task: str, ledger: TheLedger) -> wire.Task:
    """One task with its stages and candidates; enough for an interrupted agent to continue."""
    return tasks.show(ledger, library, task)


@router.post("/{task}/finish", response_model=wire.Task)
def finish_task(library: str, task: str, end: wire.FinishTask, ledger: TheLedger, call: TheCall) -> Response:
    """End an attempt; no stage may be open."""
    return reply(tasks.finish(ledger, call, library, task, end))


@router.post("/{task}/stages", response_model=wire.OpenedStage, status_code=201)
def open_stage(library: str, task: str, new: wire.NewStage, ledger: TheLedger, call: TheCall) -> Response:
    """Begin a stage; the answer carries the resident rules."""
    return reply(stages.open_(ledger, call, library, task, new), 201)
