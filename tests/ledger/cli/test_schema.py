"""`sagebook db downgrade`: says what is lost, asks, and leaves every event."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.store.writer_lock import WriterLock
from tests.ledger.cli.conftest import Run, called


@pytest.fixture
def db(tmp_path: Path, run: Run) -> str:
    """A ledger with a library and a checkpoint."""
    url = f"sqlite:///{tmp_path}/old.db"
    run("library", "create", "lib", "--db", url)
    run("checkpoint", "lib", "--db", url)
    return url


def test_it_asks_and_no_changes_nothing(db: str) -> None:
    """What is lost is named before the question; another answer than yes is a refusal."""
    ended = called("db", "downgrade", "0001", "--db", db, code=4, stdin="n\n")
    assert "lost with schema 0002: checkpoints" in ended.err
    assert "Go back? [y/N]" in ended.err
    assert "nothing was changed" in ended.err
    assert called("db", "status", "--db", db, "--json").json["schema"] == "0002"


def test_down_and_up_again_leaves_the_events(db: str) -> None:
    """On the older schema this version refuses to work; the head is the same on the newer one again."""
    before = called("verify", "lib", "--db", db).out
    assert "clean: 1 events" in before
    ended = called("db", "downgrade", "0001", "--db", db, stdin="y\n")
    assert ended.err.endswith("schema 0001\n")
    assert "run `sagebook db upgrade`" in called("verify", "lib", "--db", db, code=1).err
    assert "not older than" in called("db", "downgrade", "0001", "--yes", "--db", db, code=4).err
    called("db", "upgrade", "--db", db)
    assert called("verify", "lib", "--db", db).out == before


def test_a_schema_that_is_not_there_or_not_older(db: str) -> None:
    """A typing error is one of usage; the present schema is no way back."""
    assert (
        "there is no schema '0009'; this version knows 0001"
        in called("db", "downgrade", "0009", "--yes", "--db", db, code=2).err
    )
    assert "[downgrade-refused]" in called("db", "downgrade", "0002", "--yes", "--db", db, code=4).err


def test_beside_a_service_it_is_refused(db: str) -> None:
    """A service on the file would write tables that are gone."""
    lock = WriterLock(Path(db.removeprefix("sqlite:///")))
    lock.hold("http://127.0.0.1:1")
    try:
        assert "[writer-held]" in called("db", "downgrade", "0001", "--yes", "--db", db, code=4).err
    finally:
        lock.release()
    assert called("db", "status", "--db", db, "--json").json["schema"] == "0002"
