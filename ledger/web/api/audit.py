"""Routes of the audit: why, and the same facts under another policy."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from ledger import wire
from ledger.commands import audit
from ledger.domain.costs import Group
from ledger.web.calls import At, TheLedger, TheProgressKey, policy_given

router = APIRouter(prefix="/v1/libraries/{library}", tags=["audit"])


@router.get("/experiences/{experience}/why")
def why(library: str, experience: str, ledger: TheLedger, at: At = None) -> dict[str, Any]:
    """Why a rule is resident or not: gate, rank, value's course, measurements, code, origin, each with its sequence."""
    return audit.why(ledger, library, experience, at)


@router.get("/experiences/{experience}/why-not")
def why_not(library: str, experience: str, ledger: TheLedger, at: At = None) -> wire.WhyNot:
    """What keeps a rule out of the resident set, by how much, and the least change that would let it in."""
    return audit.why_not(ledger, library, experience, at)


@router.get("/rederivation")
def rederive(
    library: str,
    ledger: TheLedger,
    policy: Annotated[
        str | None, Query(description="A preset's name or a JSON object of policy fields; absent: the recorded policy.")
    ] = None,
    x_progress: TheProgressKey = None,
) -> wire.Rederivation:
    """Recompute from the facts and compare, event by event or side by side."""
    given = None if policy is None else policy_given(policy)
    with ledger.progress.telling(x_progress) as tell:
        return audit.rederivation(ledger, library, given, tell)


@router.get("/diff")
def show_diff(library: str, ledger: TheLedger, start: str, end: str | None = None) -> wire.LibraryDiff:
    """What changed between two points (sequences or times), and which events did it."""
    return audit.difference(ledger, library, start, end)


@router.get("/costs")
def show_costs(library: str, ledger: TheLedger, by: Group = "library") -> wire.Costs:
    """Model tokens and seconds, compile, device and upkeep by group; each rule's upkeep against what it brought."""
    return audit.cost_report(ledger, library, by)


@router.get("/evidence")
def show_evidence(library: str, ledger: TheLedger) -> wire.HoldoutEvidence:
    """Hold-out evidence: each withheld rule's uplift with a 95 % interval, or that there is not enough evidence."""
    return audit.evidence(ledger, library)
