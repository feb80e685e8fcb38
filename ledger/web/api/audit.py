"""Routes of the audit: why, and the same facts under another policy."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ledger import wire
from ledger.commands import audit
from ledger.errors import PolicyError
from ledger.web.calls import TheLedger

router = APIRouter(prefix="/v1/libraries/{library}", tags=["audit"])


@router.get("/experiences/{experience}/why")
def why(library: str, experience: str, ledger: TheLedger) -> dict[str, Any]:
    """Why a rule is resident or not: gate, rank, value's course, measurements, code, origin, each with its sequence."""
    return audit.why(ledger, library, experience)


@router.get("/rederivation")
def rederive(
    library: str,
    ledger: TheLedger,
    policy: Annotated[
        str | None, Query(description="A preset's name or a JSON object of policy fields; absent: the recorded policy.")
    ] = None,
) -> wire.Rederivation:
    """Recompute from the facts and compare, event by event or side by side."""
    given: str | dict[str, Any] | None = policy
    if policy is not None and policy.lstrip().startswith("{"):
        try:
            given = json.loads(policy)
        except ValueError as error:
            raise PolicyError(f"the policy is not a JSON object: {error}") from None
    return audit.rederivation(ledger, library, given)
