"""Routes of experiences and their rules."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ledger import wire
from ledger.commands import experiences
from ledger.web import paging
from ledger.web.calls import TheCall, TheLedger, reply

router = APIRouter(prefix="/v1/libraries/{library}/experiences", tags=["experiences"])


@router.post("", response_model=wire.Experience, status_code=201)
def record_experience(library: str, new: wire.NewExperience, ledger: TheLedger, call: TheCall) -> Response:
    """Put an experience into cold memory with value 0."""
    return reply(experiences.record(ledger, call, library, new), 201)


@router.get("")
def list_experiences(
    library: str, ledger: TheLedger, asked: Annotated[wire.ExperiencePage, Query()]
) -> wire.Experiences:
    """Experiences in the order in which they were recorded, all or those that are asked for."""
    listing = f"experiences:{library}:{asked.model_dump_json(exclude={'cursor', 'limit'})}"
    after = paging.unpack(listing, asked.cursor)
    items, following = experiences.page(ledger, library, after=after, limit=asked.limit, asked=asked)
    return wire.Experiences(items=items, next_cursor=paging.pack(listing, following) if following else None)


@router.get("/{experience}")
def show_experience(library: str, experience: str, ledger: TheLedger) -> wire.Experience:
    """One experience with its texts."""
    return experiences.show(ledger, library, experience)


@router.post("/{experience}/amendments", response_model=wire.Experience)
def amend_experience(
    library: str, experience: str, change: wire.AmendExperience, ledger: TheLedger, call: TheCall
) -> Response:
    """Change its text; value and history stay."""
    return reply(experiences.amend(ledger, call, library, experience, change))


@router.post(
    "/{experience}/rule",
    response_model=wire.ConsolidationResult,
    responses={204: {"description": "The policy keeps no residents."}},
)
def distill_rule(library: str, experience: str, rule: wire.NewRule, ledger: TheLedger, call: TheCall) -> Response:
    """Give an experience its rule text; the resident set is rebuilt."""
    return reply(experiences.distill(ledger, call, library, experience, rule))


@router.post("/{experience}/retirement", response_model=wire.Experience)
def retire_experience(
    library: str, experience: str, end: wire.Retirement, ledger: TheLedger, call: TheCall
) -> Response:
    """Offer an experience no more."""
    return reply(experiences.retire(ledger, call, library, experience, end.reason))
