"""One suite over every log: in memory, SQLite, and a real PostgreSQL (see `tests.postgres`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.store.log import Log
from ledger.store.sql import open_log

Opener = Callable[[], Log]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """An empty log."""
    urls = {
        "memory": lambda: "memory:",
        "sqlite": lambda: f"sqlite:///{tmp_path}/ledger.db",
        "postgres": lambda: request.getfixturevalue("postgres_url"),
    }
    opened = open_log(urls[request.param]())
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty durable database: a SQLite file that is not there yet, or a migrated PostgreSQL database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/ledger.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def opener(durable_url: str) -> Iterator[Opener]:
    """Opens the same durable log again and again."""
    opened: list[Log] = []

    def another() -> Log:
        opened.append(open_log(durable_url))
        return opened[-1]

    yield another
    for item in opened:
        item.close()
