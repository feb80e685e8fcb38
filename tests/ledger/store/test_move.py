"""Backup while it is written, restore, and moves between databases: record for record, or refused."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from benchmarks.history import draft_of, events
from ledger.errors import CopyRefusedError, LogCorruptError, NetworkFileSystemError
from ledger.store import chain, engine, migrate, move
from ledger.store.log import Answer, AnySequence, Idempotency, NewLibrary
from ledger.store.sql import SqlLog, open_log
from tests.ledger.store.test_sql import sha
from tests.postgres import Server


def opened(url: str) -> SqlLog:
    log = open_log(url)
    assert isinstance(log, SqlLog)
    return log


def fill(url: str) -> None:
    log = opened(url)
    drafts = [draft_of(event, n) for n, event in enumerate(events(1500))]
    for name in ("a", "ß/b"):
        log.append(
            name, drafts, expected=NewLibrary(), idempotency=Idempotency("k", b"digest", b"answer"),
            blobs={sha(name.encode()): name.encode(), sha(b"shared"): b"shared"},
        )  # fmt: skip
    log.shelf.put_checkpoint("a", 7, "note")
    log.close()


def contents(url: str) -> object:
    log = opened(url)
    try:
        return {
            name: (list(log.read(name)), log.head(name), log.answer(name, "k"), log.blob(sha(name.encode())))
            for name in log.libraries()
        }, log.shelf.checkpoints("a")
    finally:
        log.close()


def test_a_move_to_postgres_and_back_keeps_every_byte(tmp_path: Path, postgres_url: str):
    """Records, hashes, heads, answers, blobs and checkpoints are equal in the file, the server, and the file again."""
    first, last = f"sqlite:///{tmp_path}/first.db", f"sqlite:///{tmp_path}/last.db"
    fill(first)
    there = move.copy(first, postgres_url)
    assert move.copy(postgres_url, last) == there
    assert contents(first) == contents(postgres_url) == contents(last)
    assert (there.events, there.blobs, set(there.heads)) == (3000, 3, {"a", "ß/b"})


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_of_a_ledger_that_is_written(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    """While another thread appends, three backups are taken: each is of one moment, whole, and restores."""
    url = f"sqlite:///{tmp_path}/ledger.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    fill(url)
    log = opened(url)
    log.hold("here")
    stop = threading.Event()
    drafts = [draft_of(event, n) for n, event in enumerate(events(20))]

    def write() -> None:
        while not stop.is_set():
            log.append("a", drafts, expected=AnySequence())

    writing = threading.Thread(target=write)
    writing.start()
    found = []
    for number in range(3):
        target = tmp_path / "backups" / f"{number}.db"
        found.append(move.backup(url, target))
        assert [path.name for path in target.parent.iterdir()] == [f"{n}.db" for n in range(number + 1)] or number
        assert found[-1].heads["a"].sequence % 20 == 1500 % 20
    stop.set()
    writing.join()
    assert found[0].heads["a"].sequence <= found[1].heads["a"].sequence <= found[2].heads["a"].sequence
    rows = list(log.read("a"))
    log.close()
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert move.copy(f"sqlite:///{target}", restored) == found[-1]
    again = opened(restored)
    assert list(again.read("a")) == rows[: found[-1].heads["a"].sequence]
    assert again.answer("a", "k") == Answer(b"digest", 1, 1500, b"answer")
    assert again.append("a", drafts, expected=AnySequence()).sequence == found[-1].heads["a"].sequence + 20
    again.close()


def test_nothing_is_overwritten(tmp_path: Path):
    """A file that exists and a database that holds something are refused, and stay as they are."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    fill(url)
    (tmp_path / "taken.db").write_bytes(b"mine")
    with pytest.raises(CopyRefusedError, match=r"taken\.db exists"):
        move.backup(url, tmp_path / "taken.db")
    assert (tmp_path / "taken.db").read_bytes() == b"mine"
    with pytest.raises(CopyRefusedError, match="not empty"):
        move.copy(url, url)
    with pytest.raises(CopyRefusedError):
        move.copy("memory:", f"sqlite:///{tmp_path}/other.db")


def test_a_damaged_ledger_gives_no_backup(tmp_path: Path):
    """The place is named, and no file is left behind."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    fill(url)
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        raw.execute("UPDATE events SET record = record || x'20' WHERE library = 'a' AND sequence = 77")
    raw.close()
    with pytest.raises(LogCorruptError, match="sequence 77"):
        move.backup(url, tmp_path / "backups" / "one.db")
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the number that statfs(2) gives: here that of this disk is taken for NFS's."""
    here = engine.file_system(tmp_path)
    assert here not in {0, *engine._NETWORK}
    monkeypatch.setitem(engine._NETWORK, here, "NFS")
    with pytest.raises(NetworkFileSystemError, match=r"NFS.*PostgreSQL"):
        open_log(f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("SAGEBOOK_ALLOW_NETWORK_FILE_SYSTEM", "1")
    open_log(f"sqlite:///{tmp_path}/ledger.db").close()


# --- migrations with data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_migrations_go_down_and_up_with_data(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    """From the newest schema to the first and back: records, heads, answers and blobs stay byte for byte."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/ledger.db"
    else:
        server: Server = request.getfixturevalue("postgres_server")
        url = server.url()
        made = engine.make_engine(url)
        migrate.upgrade(made)
        made.dispose()
    fill(url)
    before = contents(url)
    made = engine.make_engine(url)
    migrate.downgrade(made, "0001")
    assert migrate.current(made) == "0001"
    with made.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM events")).scalar() == 3000
    migrate.upgrade(made)
    assert migrate.current(made) == migrate.head()
    made.dispose()
    after = contents(url)
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)
    assert after[0] == before[0]
    log = opened(url)
    assert chain.audit(log, "a").ok
    log.close()
