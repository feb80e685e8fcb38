"""Routes of the pages. They read what the API reads; nothing here decides."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from ledger import errors, views, wire
from ledger.audit import words
from ledger.commands import audit, experiences, libraries
from ledger.domain import decide
from ledger.service import event_record
from ledger.web.calls import TheLedger
from ledger.web.pages.picture import value_course

router = APIRouter(include_in_schema=False)

_HERE = Path(__file__).parent
_PAGE_ROWS = 500
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["linked"] = _linked
    environment.filters["move_words"] = words.move
    environment.filters["unscored_words"] = words.unscored
    environment.filters["id"] = lambda name: quote(str(name), safe="")
    return environment


def _linked(text: str, head: int) -> list[tuple[str, int | None]]:
    """Text cut at each `[sequence]` of the log, which is given with its number."""
    parts = re.split(r"(\[\d{1,12}\])", text)
    return [
        (part, number if (number := int(part[1:-1]) if at % 2 else 0) and number <= head else None)
        for at, part in enumerate(parts)
    ]


def _page(template: str, **facts: Any) -> HTMLResponse:
    return HTMLResponse(_templates().get_template(template).render(**facts), headers=_HEADERS)


def problem_page(body: Mapping[str, Any], status: int) -> HTMLResponse:
    """A refusal for a person: what was refused and why, with the way back."""
    page = _page("problem.html", title=body["title"], detail=body["detail"])
    page.status_code = status
    return page


def _base(library: str) -> str:
    return f"/libraries/{quote(library, safe='')}"


@router.get("/static/sagebook.css")
def style() -> Response:
    """The one style sheet."""
    return Response((_HERE / "sagebook.css").read_text(encoding="utf-8"), media_type="text/css")


@router.get("/")
def show_libraries(ledger: TheLedger) -> HTMLResponse:
    """All libraries."""
    return _page("libraries.html", libraries=[libraries.show(ledger, name) for name in ledger.libraries()])


@router.get("/libraries/{library}")
def show_library(library: str, ledger: TheLedger) -> HTMLResponse:
    """One library with its experiences, residents first."""
    items, _ = experiences.page(ledger, library, after=0, limit=_PAGE_ROWS, asked=wire.ExperienceFilter())
    items.sort(key=lambda e: (not e.resident, -e.value, e.experience))
    return _page("library.html", library=libraries.show(ledger, library), experiences=items)


@router.get("/libraries/{library}/experiences/{experience}")
def show_experience(
    library: str, experience: str, ledger: TheLedger, at: Annotated[str | None, Query()] = None
) -> HTMLResponse:
    """Why an experience's rule is resident or not, with the course of its value."""
    answer = audit.why(ledger, library, experience, at or None)
    low, high = libraries.show(ledger, library).policy["value_bounds"]
    return _page(
        "experience.html",
        why=answer,
        base=_base(library),
        as_of=at,
        p=value_course(answer, low, high),
        words=words,
    )


@router.get("/libraries/{library}/stages/{stage}")
def show_stage(library: str, stage: str, ledger: TheLedger) -> HTMLResponse:
    """One stage, event by event."""
    with ledger.reading(library) as state:
        shown = views.stage(decide.stage_of(state, stage))
        head = state.sequence
    events = [
        {
            "sequence": r.sequence,
            "time": r.time,
            "actor": r.actor,
            "type": r.type,
            "what": _what(r.event),
        }
        for r in ledger.recorded(library, until=head)
        if r.stage == stage or stage in getattr(r.event, "stages", ())
    ]
    return _page("stage.html", stage=shown, library=library, base=_base(library), events=events)


def _what(event: Any) -> str:
    """The telling fields of an event, in a line."""
    parts = []
    for name in ("experience", "candidate", "adopted", "outcome", "change", "score", "latency_ms", "reason", "query"):
        value = getattr(event, name, None)
        if value is not None and value != "":
            parts.append(f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}")
    return "; ".join(parts)[:400]


@router.get("/libraries/{library}/events/{sequence}")
def show_event(library: str, sequence: int, ledger: TheLedger) -> HTMLResponse:
    """One event as it stands in the log."""
    rows, previous, head = ledger.stored(library, after=max(sequence - 1, 0), limit=1)
    if not rows or sequence < 1:
        raise errors.InvalidInputError(f"library {library!r} has no sequence {sequence}; it ends at {head}")
    record = event_record(library, rows[0], previous)
    return _page(
        "event.html",
        event=record,
        payload=json.dumps(record.payload, indent=2, ensure_ascii=False),
        base=_base(library),
        head=head,
    )
