"""Tasks: start, finish, show."""

from __future__ import annotations

from ledger import views, wire
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.service import Batch, Call, Ledger


def start(ledger: Ledger, call: Call, library: str, new: wire.NewTask) -> wire.Task | bytes:
    """Begin an attempt at one operator."""

    def command(batch: Batch) -> None:
        batch.emit(decide.start_task(batch.state, ev.TaskStarted(**new.model_dump())))

    return ledger.execute(library, call, command, lambda batch: views.task(batch.state, batch.state.tasks[new.task]))


def finish(ledger: Ledger, call: Call, library: str, name: str, end: wire.FinishTask) -> wire.Task | bytes:
    """End an attempt."""

    def command(batch: Batch) -> None:
        batch.emit(decide.finish_task(batch.state, name, summary=end.summary))

    return ledger.execute(library, call, command, lambda batch: views.task(batch.state, batch.state.tasks[name]))


def show(ledger: Ledger, library: str, name: str) -> wire.Task:
    """One task."""
    with ledger.reading(library) as state:
        return views.task(state, decide.task_of(state, name))


def page(ledger: Ledger, library: str, *, start_at: int, limit: int) -> tuple[list[wire.Task], int | None]:
    """Tasks in the order in which they were started, and where to go on if there are more."""
    with ledger.reading(library) as state:
        items = list(state.tasks.values())[start_at : start_at + limit + 1]
        more = start_at + limit if len(items) > limit else None
        return [views.task(state, item) for item in items[:limit]], more
