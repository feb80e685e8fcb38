"""Refusals as RFC 9457 problem documents: the one table from error to status, and the one handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ledger import errors, wire
from ledger.words import told

MEDIA_TYPE = "application/problem+json"

STATUS: tuple[tuple[type[errors.LedgerError], int], ...] = (
    (errors.IdempotencyConflictError, 422),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.RefusedError, 409),
    (errors.InvalidInputError, 422),
    (errors.SchemaOutdatedError, 503),
    (errors.SchemaUnknownError, 503),
    (errors.StoreUnavailableError, 503),
    (errors.LogCorruptError, 500),
    (errors.LedgerError, 500),
)
"""First match wins."""


RESPONSES: dict[int | str, dict[str, Any]] = {
    f"{hundred}XX": {
        "description": what,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for hundred, what in ((4, "Refused: a problem document (RFC 9457)."), (5, "Failed: a problem document (RFC 9457)."))
}
"""What every route may answer besides."""


def describe(app: FastAPI) -> None:
    """Put the problem document among the schemas of the API's description."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        described = plain()
        described["components"]["schemas"]["Problem"] = wire.Problem.model_json_schema()
        return described

    app.openapi = openapi  # type: ignore[method-assign]


def status_of(error: errors.LedgerError) -> int:
    """The HTTP status of a refusal."""
    return next(status for kind, status in STATUS if isinstance(error, kind))


Page = Callable[[Mapping[str, Any], int], Response]
"""Shows a problem document to a person."""


def problem(
    request: Request, *, status: int, code: str, title: str, detail: str, extra: dict[str, Any] | None = None
) -> Response:
    """A problem document. `type` is stable; the facts of the refusal are members of their own.

    Outside of the API a browser, which asks for HTML first, gets it as a page.
    """
    body = {
        **(extra or {}),
        "type": f"urn:sagebook:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "instance": request.url.path,
    }
    page: Page | None = getattr(request.app.state, "problem_page", None)
    accepts = request.headers.get("accept", "")
    if page is not None and accepts.startswith("text/html") and not request.url.path.startswith("/v1/"):
        return page(body, status)
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE)


def _title(code: str) -> str:
    return code.replace("-", " ").capitalize()


def facts_of(error: errors.LedgerError) -> dict[str, Any]:
    """The facts of a refusal, JSON-ready."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in error.facts.items() if v is not None}


def _nothing_at(path: str) -> str:
    return (
        f"there is nothing at {path}; /v1/openapi.json lists the API, and an experience's page is "
        "/libraries/LIB/experiences/ID"
    )


def install(app: FastAPI, page: Page) -> None:
    """Answer every failure as a problem document, shown by `page` where a person asked for a page."""
    app.state.problem_page = page
    say = structlog.get_logger("ledger.web")

    def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, errors.LedgerError):
            raise error
        status = status_of(error)
        if status >= 500:
            say.error("failed", path=request.url.path, code=error.code, detail=error.message)
        else:
            say.info("refused", path=request.url.path, code=error.code, detail=error.message)
        return problem(
            request,
            status=status,
            code=error.code,
            title=_title(error.code),
            detail=error.message,
            extra=facts_of(error),
        )

    def invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        listed = [
            {"pointer": "/" + "/".join(str(part) for part in item["loc"]), "message": item["msg"]}
            for item in error.errors()
        ]
        return problem(
            request,
            status=422,
            code=errors.RequestInvalidError.code,
            title="Request invalid",
            detail=told(error.errors()),
            extra={"errors": listed},
        )

    def http(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        code = {404: "route-unknown", 405: "method-not-allowed"}.get(error.status_code, "http-error")
        detail = _nothing_at(request.url.path) if error.status_code == 404 else str(error.detail)
        return problem(request, status=error.status_code, code=code, title=_title(code), detail=detail)

    def crashed(request: Request, error: Exception) -> Response:
        say.exception("crashed", path=request.url.path, exc_info=error)
        return problem(
            request,
            status=500,
            code="ledger-error",
            title="Internal error",
            detail=f"the ledger failed with {type(error).__name__}; its log has the details. Nothing of the "
            f"request was stored",
        )

    app.add_exception_handler(errors.LedgerError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(ClientDisconnect, lambda *_: Response(status_code=400))  # nobody is there to read it
    app.add_exception_handler(Exception, crashed)
