"""What every route needs of a request: the ledger, who calls, and how to answer."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast
from urllib.parse import unquote

from fastapi import Depends, Header, Query, Request, Response
from pydantic import BaseModel

from ledger.errors import PolicyError
from ledger.service import Call, Ledger


def _ledger(request: Request) -> Ledger:
    return cast("Ledger", request.app.state.ledger)


def _actor(
    x_actor: Annotated[str, Header(max_length=400, description="Who asks, percent-encoded.")] = "anonymous",
) -> str:
    return unquote(x_actor)


At = Annotated[str | None, Query(description="A sequence, or a time (RFC 3339); absent: now.")]
TheLedger = Annotated[Ledger, Depends(_ledger)]
TheActor = Annotated[str, Depends(_actor)]


async def _call(
    request: Request,
    actor: TheActor,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=255, description="A repeat with the same key gets the first answer."),
    ] = None,
) -> Call:
    body = await request.body() if idempotency_key else b""
    content = b"\n".join((request.method.encode(), request.url.path.encode(), body))
    return Call(actor=actor, key=idempotency_key, content=content)


TheProgressKey = Annotated[
    str | None,
    Header(
        alias="X-Progress",
        min_length=1,
        max_length=255,
        description="A key under which `/v1/progress/KEY` says how far it is.",
    ),
]
TheCall = Annotated[Call, Depends(_call)]


def policy_given(text: str) -> str | dict[str, Any]:
    """A policy as a query parameter: a preset's name, or a JSON object of fields. Raises PolicyError."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise PolicyError(f"the policy is not a JSON object: {error}") from None
    return found


def reply(answer: BaseModel | bytes | None, status: int = 200) -> Response:
    """An answer as it is sent; bytes are the first answer to a repeated request."""
    content = (
        answer
        if isinstance(answer, bytes)
        else b""
        if answer is None
        else answer.model_dump_json(by_alias=True).encode()
    )
    if not content:
        return Response(status_code=204)
    return Response(content, status_code=status, media_type="application/json")
