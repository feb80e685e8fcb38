"""The HTTP application, built from a ledger that is handed in."""

from __future__ import annotations

from fastapi import FastAPI

from ledger.service import Ledger
from ledger.version import VERSION
from ledger.web import problems
from ledger.web.api import audit, experiences, feed, governance, libraries, log, progress, proofs, stages, tasks
from ledger.web.calls import TheLedger
from ledger.web.etag import EntityTags
from ledger.web.pages import routes as pages


def create_app(ledger: Ledger) -> FastAPI:
    """All routes over one ledger."""
    app = routes()
    app.state.ledger = ledger
    return app


def routes() -> FastAPI:
    """All routes, without the ledger that they need to answer: enough to describe them."""
    app = FastAPI(
        title="Sagebook",
        version=VERSION,
        summary="An event-sourced experience ledger for agents that write accelerator kernels.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=problems.RESPONSES,
    )
    problems.install(app, pages.problem_page)
    for subject in (libraries, experiences, tasks, stages, governance, log, feed, proofs, audit, progress):
        app.include_router(subject.router)
    app.include_router(pages.router)
    app.add_middleware(EntityTags)

    @app.get("/health", tags=["service"])
    def health(ledger: TheLedger) -> dict[str, str]:
        """Whether the service and its database answer."""
        ledger.libraries()
        return {"status": "ok", "version": VERSION}

    problems.describe(app)
    return app
