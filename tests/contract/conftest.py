"""One suite over every log: in memory, SQLite, and PostgreSQL where SAGEBOOK_TEST_POSTGRES_URL names a database to spoil."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from ledger.store import migrate, schema
from ledger.store.engine import make_engine
from ledger.store.log import Log
from ledger.store.sql import open_log

Opener = Callable[[], Log]


def _emptied_postgres() -> str:
    url = os.environ.get("SAGEBOOK_TEST_POSTGRES_URL")
    if not url:
        pytest.skip("SAGEBOOK_TEST_POSTGRES_URL names no PostgreSQL database")
    engine = make_engine(url)
    migrate.upgrade(engine)
    with engine.begin() as connection:
        names = ", ".join(table.name for table in schema.metadata.sorted_tables)
        connection.execute(text(f"TRUNCATE {names}"))
    engine.dispose()
    return url


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """An empty log."""
    urls = {
        "memory": lambda: "memory:",
        "sqlite": lambda: f"sqlite:///{tmp_path}/ledger.db",
        "postgres": _emptied_postgres,
    }
    opened = open_log(urls[request.param]())
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same durable log again and again."""
    url = f"sqlite:///{tmp_path}/folder/ledger.db" if request.param == "sqlite" else _emptied_postgres()
    opened: list[Log] = []

    def another() -> Log:
        opened.append(open_log(url))
        return opened[-1]

    yield another
    for item in opened:
        item.close()
