"""Libraries: create, show, state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger import errors, views, wire
from ledger.domain import decide
from ledger.domain.policy import Policy, from_mapping, preset
from ledger.service import Batch, Call, Ledger


def resolve_policy(given: str | Mapping[str, Any]) -> tuple[Policy, str]:
    """A preset's name, or fields over `sage`; with the name under which it is recorded."""
    if isinstance(given, str):
        return preset(given), given
    return from_mapping(given), "custom"


def create(ledger: Ledger, call: Call, new: wire.NewLibrary) -> wire.Library | bytes:
    """Open a library under a policy."""
    policy, name = resolve_policy(new.policy)

    def command(batch: Batch) -> None:
        if batch.state.sequence:
            raise errors.LibraryExistsError(new.library)
        batch.emit(decide.create_library(policy, name, new.title))

    return ledger.execute(
        new.library, call, command, lambda batch: views.library(new.library, batch.state), create=True
    )


def show(ledger: Ledger, library: str) -> wire.Library:
    """One library."""
    with ledger.reading(library) as state:
        return views.library(library, state)


def state_of(ledger: Ledger, library: str, at: int | None) -> wire.State:
    """The memory in numbers, now or as of a sequence."""
    if at is not None:
        return views.library_state(library, ledger.as_of(library, at))
    with ledger.reading(library) as state:
        return views.library_state(library, state)
