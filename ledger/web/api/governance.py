"""Routes of supersession, conflicts and reversals."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ledger import wire
from ledger.commands import governance
from ledger.web.calls import TheCall, TheLedger, TheProgressKey, reply

router = APIRouter(prefix="/v1/libraries/{library}", tags=["governance"])


@router.post("/experiences/{experience}/supersession", response_model=wire.Experience)
def supersede(library: str, experience: str, given: wire.Supersession, ledger: TheLedger, call: TheCall) -> Response:
    """Put a newer experience in the place of this one, which is offered no more."""
    return reply(governance.supersede(ledger, call, library, experience, given))


@router.get("/conflicts")
def list_conflicts(library: str, ledger: TheLedger) -> wire.Conflicts:
    """All conflicts, open and settled."""
    return governance.conflicts(ledger, library)


@router.post("/conflicts", response_model=wire.Conflict, status_code=201)
def record_conflict(library: str, new: wire.NewConflict, ledger: TheLedger, call: TheCall) -> Response:
    """Link two experiences that contradict each other; they are never resident together."""
    return reply(governance.record_conflict(ledger, call, library, new), 201)


@router.post("/conflicts/{conflict}/resolution", response_model=wire.Conflict)
def resolve_conflict(library: str, conflict: str, end: wire.ConflictEnd, ledger: TheLedger, call: TheCall) -> Response:
    """Settle a conflict: the loser stays out of the resident set, or there was none."""
    return reply(governance.resolve_conflict(ledger, call, library, conflict, end))


@router.post("/policy", response_model=wire.Library)
def change_policy(library: str, given: wire.NewPolicy, ledger: TheLedger, call: TheCall) -> Response:
    """Put another policy in force from here on; the resident set is rebuilt, values stand until their next update."""
    return reply(governance.change_policy(ledger, call, library, given))


@router.post("/invalidations", response_model=wire.Reversal, status_code=201)
def invalidate(
    library: str, given: wire.NewReversal, ledger: TheLedger, call: TheCall, x_progress: TheProgressKey = None
) -> Response:
    """Withdraw the verdicts of a stage, a task, or all that rests on a candidate's hash; credit is taken back."""
    with ledger.progress.telling(x_progress) as tell:
        return reply(governance.reverse(ledger, call, library, given, "invalidate", tell), 201)


@router.post("/reinstatements", response_model=wire.Reversal, status_code=201)
def reinstate(
    library: str, given: wire.NewReversal, ledger: TheLedger, call: TheCall, x_progress: TheProgressKey = None
) -> Response:
    """Reverse a reversal: the verdicts count again."""
    with ledger.progress.telling(x_progress) as tell:
        return reply(governance.reverse(ledger, call, library, given, "reinstate", tell), 201)
