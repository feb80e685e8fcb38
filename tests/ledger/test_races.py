"""A command that loses one race after another to another service is decided again, until its time is up."""

from __future__ import annotations

import itertools

import pytest

from ledger import errors, service, wire
from ledger.commands import experiences, libraries
from ledger.domain import decide
from ledger.domain.events import TaskStarted
from ledger.races import tries
from ledger.service import Batch, Call, Ledger
from ledger.store.memory import MemoryLog


@pytest.fixture
def services() -> tuple[Ledger, Ledger]:
    """Two over one log, as two services on one PostgreSQL are; the library is there."""
    log, numbers = MemoryLog(), itertools.count()
    made = [Ledger(log, now=lambda: "2026-01-02T03:04:05Z", new_id=lambda: f"id{next(numbers)}") for _ in range(2)]
    libraries.create(made[0], Call("t"), wire.NewLibrary(library="lib"))
    return made[0], made[1]


def record(ledger: Ledger, name: str) -> None:
    new = wire.NewExperience(experience=name, title=name, body=name, stages=("correctness",))
    experiences.record(ledger, Call("t"), "lib", new)


def losing(services: tuple[Ledger, Ledger], times: int) -> Batch:
    """Start the task `late` at the first while the second records something in the middle of it, so many times."""
    (slow, quick), left, decided = services, iter(range(times)), []

    def command(batch: Batch) -> None:
        if (number := next(left, None)) is not None:
            record(quick, f"e{number}")
        decided.append(batch)
        late = TaskStarted(task="late", operator="softmax", level=1, model="m", budget=1)
        batch.emit(decide.start_task(batch.state, late))

    slow.execute("lib", Call("t"), command, lambda _: None)
    return decided[-1]


def test_forty_lost_races_are_not_the_caller_s_business(services: tuple[Ledger, Ledger]) -> None:
    """It stands behind what the other stored meanwhile."""
    assert losing(services, 40).first == 1 + 40 + 1
    assert services[1].head("lib") == 42


def test_who_never_wins_is_told_so_and_nothing_is_stored(
    services: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error of its own, not by a sequence that the caller never named."""
    monkeypatch.setattr(service, "tries", lambda: tries(0.1))
    with pytest.raises(errors.LibraryContendedError, match="'lib'"):
        losing(services, 100_000)
    with services[1].reading("lib") as state:
        assert not state.tasks
