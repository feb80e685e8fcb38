"""Libraries: create, show, state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ledger import errors, views, wire
from ledger.domain import decide
from ledger.domain.policy import Policy, from_mapping, preset
from ledger.service import Batch, Call, Ledger

_DIGITS = 18
"""More than any sequence has."""


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


def point(ledger: Ledger, library: str, at: str | int | None) -> int | None:
    """A sequence from what a caller writes: a sequence, or a time (RFC 3339). None: now."""
    if at is None or isinstance(at, int):
        return at
    if at.isascii() and at.isdigit() and len(at) <= _DIGITS:
        return int(at)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise errors.InvalidInputError(
            f"{at!r} is neither a sequence nor a time such as 2026-11-30T12:00:00Z", at=at
        ) from None
    return ledger.sequence_at(library, moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def state_of(ledger: Ledger, library: str, at: str | int | None) -> wire.State:
    """The memory in numbers, now or as of a point."""
    sequence = point(ledger, library, at)
    if sequence is not None:
        return views.library_state(library, ledger.as_of(library, sequence))
    with ledger.reading(library) as state:
        return views.library_state(library, state)
