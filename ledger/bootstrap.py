"""Builds a ledger with its concrete parts. Entry points call this; nothing else names an adapter."""

from __future__ import annotations

import base64
import logging
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import structlog
from fastapi import FastAPI

from ledger.client import LedgerClient
from ledger.errors import InvalidInputError, StoreUnavailableError
from ledger.inprocess import InProcessTransport
from ledger.service import Ledger
from ledger.settings import Settings, default_database_url
from ledger.store.log import Log
from ledger.store.memory import MemoryLog
from ledger.web.app import create_app

_KEY_BYTES = 32

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from ledger.retrieval.embed import Embedder
    from ledger.store.checkpoint import LogKey


def configure_logging(settings: Settings) -> None:
    """One event a line on standard error."""
    level = logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.WARNING)
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up at each line: a process may replace its standard error.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _quiet_unless_configured() -> None:
    """In a process that configured no logging, warnings alone, on standard error: its standard output is its own."""
    if not structlog.is_configured():
        configure_logging(Settings.model_construct(log_level="warning", log_format="console"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _new_id() -> str:
    return uuid.uuid4().hex


def _log_key() -> LogKey:
    from ledger.store.checkpoint import LogKey  # noqa: PLC0415 - only a signature needs it

    settings = Settings()
    return LogKey.load(settings.log_key.expanduser(), settings.log_name)


def known_judges(given: str) -> frozenset[str]:
    """Read the keys of a setting. Raises InvalidInputError for one that is no Ed25519 public key."""
    keys = frozenset(filter(None, (key.strip() for key in given.split(","))))
    for key in keys:
        try:
            whole = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
        except ValueError:
            whole = False
        if not whole:
            raise InvalidInputError(
                f"setting 'judges' (SAGEBOOK_JUDGES) names {key!r}, which is no public key of a judge; "
                "`sagebook device doctor` shows a judge's",
                key=key,
            )
    return keys


def open_ledger(database_url: str | None = None, *, embedder: Embedder | None = None) -> Ledger:
    """A ledger on a database; an empty SQLite file is migrated, a PostgreSQL database must have been upgraded.

    Raises SchemaOutdatedError.
    """
    from ledger.store.sql import open_log  # noqa: PLC0415 - SQLAlchemy is the slowest import, and memory needs none

    _quiet_unless_configured()
    log: Log = open_log(database_url or default_database_url())
    ledger = Ledger(log, now=_now, new_id=_new_id, embedder=embedder, key=_log_key)
    ledger.judges = known_judges(Settings().judges)
    return ledger


def memory_ledger(embedder: Embedder | None = None) -> Ledger:
    """A ledger that ends with the process."""
    _quiet_unless_configured()
    return Ledger(MemoryLog(), now=_now, new_id=_new_id, embedder=embedder, key=_log_key)


def upgrade_database(database_url: str) -> str:
    """Bring a database to this version's schema; returns its name. Raises SchemaUnknownError, StoreUnavailableError."""
    from ledger.store import migrate  # noqa: PLC0415 - see open_ledger

    with _engine(database_url) as engine:
        migrate.upgrade(engine)
        return migrate.head()


def downgrade_database(database_url: str, revision: str, sure: Callable[[list[str]], bool]) -> bool:
    """Bring a database back to an earlier schema, once `sure` said yes to what is lost; whether it did.

    Raises DowngradeRefusedError, SchemaUnknownError, WriterHeldError, StoreUnavailableError.
    """
    from ledger.store import migrate  # noqa: PLC0415 - see open_ledger

    with _engine(database_url) as engine:
        if not sure(migrate.lost(engine, revision)):
            return False
        migrate.downgrade(engine, revision)
        return True


def schema_of(database_url: str) -> tuple[str | None, str]:
    """The schema that a database has (None: it was never migrated) and the one that this version needs."""
    from ledger.store import migrate  # noqa: PLC0415 - see open_ledger

    with _engine(database_url) as engine:
        return migrate.current(engine), migrate.head()


@contextmanager
def _engine(database_url: str) -> Iterator[Engine]:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - see open_ledger

    from ledger.store.engine import make_engine  # noqa: PLC0415

    engine = make_engine(database_url)
    try:
        yield engine
    except DBAPIError as error:
        raise StoreUnavailableError(engine.url.render_as_string(hide_password=True), str(error.orig)) from error
    finally:
        engine.dispose()


def _embedder() -> Embedder | None:
    """What the settings name for dense retrieval."""
    settings = Settings()
    if settings.embeddings == "off":
        return None
    from ledger.retrieval.embed import from_settings  # noqa: PLC0415 - only where dense retrieval is asked for

    return from_settings(settings)


def build_app(database_url: str | None = None) -> FastAPI:
    """The HTTP application on a database."""
    return create_app(open_ledger(database_url, embedder=_embedder()))


def client_of(ledger: Ledger, *, actor: str = "agent") -> LedgerClient:
    """A client over an in-process transport; closing it closes the ledger."""
    transport = InProcessTransport(create_app(ledger), on_close=ledger.close)
    http = httpx.Client(transport=transport, base_url="http://ledger", timeout=None)  # noqa: S113 - no socket
    return LedgerClient(http, actor=actor, live=False)


def embedded_client(database_url: str | None = None, *, actor: str = "agent") -> LedgerClient:
    """A client of a ledger in this process, on a database."""
    return client_of(open_ledger(database_url, embedder=_embedder()), actor=actor)
