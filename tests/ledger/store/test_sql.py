"""What the SQL log does beyond the contract: faults of the database, files, settings, schema."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import event, inspect, text

from ledger.errors import (
    BlobMismatchError,
    InvalidInputError,
    LogCorruptError,
    SchemaOutdatedError,
    SchemaUnknownError,
    StoreUnavailableError,
)
from ledger.store import chain, engine, migrate, schema
from ledger.store.log import AnySequence, Draft, Idempotency, NewLibrary
from ledger.store.memory import MemoryLog
from ledger.store.sql import SqlLog, open_log


def draft(number: int, kind: str = "test.happened") -> Draft:
    return Draft(kind, 1, str(number), "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"%d" % number))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def log(file: Path) -> Iterator[SqlLog]:
    opened = open_log(f"sqlite:///{file}")
    assert isinstance(opened, SqlLog)
    yield opened
    opened.close()


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["libraries", "events", "idempotency", "blobs"])
def test_a_fault_at_any_statement_of_an_append_leaves_nothing(log: SqlLog, file: Path, table: str):
    """The database refuses the write to one table; the head, the other rows and the log's use afterwards are untouched."""
    before = log.append("lib", [draft(1)], expected=NewLibrary())
    moment = "UPDATE" if table == "libraries" else "INSERT"
    with sqlite3.connect(file) as raw:
        raw.execute(f"CREATE TRIGGER fault AFTER {moment} ON {table} BEGIN SELECT RAISE(ABORT, 'injected'); END")
    with pytest.raises((StoreUnavailableError, LogCorruptError)):
        log.append(
            "lib",
            [draft(2), draft(3), draft(4)],
            expected=AnySequence(),
            idempotency=Idempotency("k", b"d", b"a"),
            blobs={sha(b"x"): b"x"},
        )
    with sqlite3.connect(file) as raw:
        raw.execute("DROP TRIGGER fault")
    raw.close()
    assert log.head("lib") == before
    assert [row.sequence for row in log.read("lib")] == [1]
    assert log.answer("lib", "k") is None
    assert not log.has_blob(sha(b"x"))
    assert log.append("lib", [draft(2)], expected=AnySequence()).sequence == 2


def test_a_fault_at_the_third_of_five_events_leaves_none(log: SqlLog, file: Path):
    """The first two were written already when it came."""
    log.append("lib", [draft(1)], expected=NewLibrary())
    with sqlite3.connect(file) as raw:
        raw.execute(
            "CREATE TRIGGER fault BEFORE INSERT ON events WHEN NEW.sequence = 4 BEGIN SELECT RAISE(ABORT, 'injected'); END"
        )
    raw.close()
    with pytest.raises(LogCorruptError):
        log.append("lib", [draft(n) for n in range(5)], expected=AnySequence())
    assert [row.sequence for row in log.read("lib")] == [1]
    assert chain.audit(log, "lib").ok


def test_a_full_disk_is_a_clean_refusal(file: Path):
    """SQLite may not grow past its size: the batch is refused whole, and a small one still fits."""
    log = open_log(f"sqlite:///{file}")
    assert isinstance(log, SqlLog)
    log.append("lib", [draft(1)], expected=NewLibrary())

    def limit(connection: sqlite3.Connection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 4}").fetchone()

    log.close()
    event.listen(log.engine, "connect", limit)
    big = bytes(100_000)
    with pytest.raises(StoreUnavailableError, match="full"):
        log.append("lib", [draft(2)], expected=AnySequence(), blobs={sha(big): big})
    assert log.head("lib").sequence == 1
    assert log.append("lib", [draft(2)], expected=AnySequence()).sequence == 2
    assert chain.audit(log, "lib").ok
    log.close()


def test_a_writer_of_another_process_is_waited_for_and_then_named(log: SqlLog, file: Path):
    """A lock held too long is a failure of the store, not a conflict; once it is gone the log goes on."""
    log.close()
    event.listen(log.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 50"))
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked"):
        log.append("lib", [draft(1)], expected=NewLibrary())
    raw.execute("ROLLBACK")
    raw.close()
    assert log.append("lib", [draft(1)], expected=NewLibrary()).sequence == 1


def test_a_row_behind_the_head_stops_appends(log: SqlLog, file: Path):
    """Something else wrote there: nothing is laid over it."""
    log.append("lib", [draft(1)], expected=NewLibrary())
    with sqlite3.connect(file) as raw:
        raw.execute("INSERT INTO events SELECT library, 2, type, record, hash FROM events")
    raw.close()
    with pytest.raises(LogCorruptError, match="sequence 2"):
        log.append("lib", [draft(2)], expected=AnySequence())


@pytest.mark.parametrize("damage", [b"\x00", "text", "x"])
def test_a_damaged_blob_is_never_handed_out(log: SqlLog, file: Path, damage: bytes | str):
    """Its content is hashed again on every read."""
    log.put_blob(sha(b"x"), b"x")
    raw = sqlite3.connect(file)
    raw.execute("UPDATE blobs SET data = ?", (damage,))
    raw.commit()
    raw.close()
    with pytest.raises(BlobMismatchError):
        log.blob(sha(b"x"))


# --- settings and URLs ----------------------------------------------------------------------------------------------


def test_sqlite_is_durable_and_shared(log: SqlLog):
    """WAL, FULL, and a wait for other writers, on every connection."""
    with log.engine.connect() as connection:
        asked = [
            connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        ]
    assert asked == ["wal", 2, 10_000]


def test_a_write_transaction_takes_the_lock_at_its_start(log: SqlLog, file: Path):
    """BEGIN IMMEDIATE where the connection is one that writes, plain BEGIN otherwise."""
    raw = sqlite3.connect(file, isolation_level=None, timeout=0)
    with (
        log.engine.connect().execution_options(**{engine.WRITE: True}) as connection,
        connection.begin(),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        raw.execute("BEGIN IMMEDIATE")
    with log.engine.connect() as connection, connection.begin():
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("ROLLBACK")
    raw.close()


def test_a_folder_is_made_for_a_new_file(tmp_path: Path):
    """Also several levels deep."""
    log = open_log(f"sqlite:///{tmp_path}/a/b/ledger.db")
    log.append("lib", [draft(1)], expected=NewLibrary())
    log.close()
    assert (tmp_path / "a" / "b" / "ledger.db").is_file()


@pytest.mark.parametrize("url", ["memory:", "memory://"])
def test_memory_is_a_url_too(url: str):
    """It is production code."""
    assert isinstance(open_log(url), MemoryLog)


@pytest.mark.parametrize("url", ["", "ledger.db", "sqlite://", "sqlite:///:memory:", "mysql://host/db", "nonsense://x"])
def test_any_other_url_is_refused_with_the_forms_that_work(url: str):
    """An unnamed SQLite file would lose the ledger at exit."""
    with pytest.raises(InvalidInputError, match=r"sqlite:///path"):
        open_log(url)


def test_a_server_that_does_not_answer_is_named_without_its_password():
    """Port 1 of this machine: nothing listens there."""
    with pytest.raises(StoreUnavailableError, match="refused") as caught:
        open_log("postgresql://ann:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "warned"), [((3, 6, 23), 0), ((3, 7, 0), 1), ((3, 51, 2), 1), ((3, 51, 3), 0), ((3, 52, 0), 0)]
)
def test_a_sqlite_with_the_wal_reset_fault_is_named_once(version: tuple[int, int, int], warned: int):
    """3.7.0 to 3.51.2 have it; one line for the process, however many logs are opened."""
    import structlog.testing

    engine.warn_of_wal_fault.cache_clear()
    with structlog.testing.capture_logs() as lines:
        engine.warn_of_wal_fault(version)
        engine.warn_of_wal_fault(version)
    assert [line["event"] for line in lines] == ["sqlite_wal_reset_fault"] * warned


# --- schema ---------------------------------------------------------------------------------------------------------


def test_the_migrations_make_the_tables_that_the_store_uses(log: SqlLog):
    """Nothing is left for Alembic to add, in either direction."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with log.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        made = set(inspect(connection).get_table_names())
        layouts = {
            name: "WITHOUT ROWID"
            in str(connection.execute(text("SELECT sql FROM sqlite_master WHERE name = :n"), {"n": name}).scalar())
            for name in sorted(made)
        }
    without_rowid = {"checkpoints", "events", "idempotency", "libraries"}
    assert layouts == {
        name: name in without_rowid for name in (*without_rowid, "alembic_version", "blobs", "snapshots")
    }


def test_the_revisions_named_in_code_are_those_of_the_migrations():
    """A start on a current schema reads the names in code alone."""
    from importlib import resources

    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")))
    config.set_main_option("path_separator", "os")
    found = [item.revision for item in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(found)) == schema.REVISIONS
    assert migrate.head() == found[0]


def test_an_empty_file_is_migrated_on_first_use(file: Path):
    """No revision before, the newest after; upgrading again changes nothing."""
    made = engine.make_engine(f"sqlite:///{file}")
    assert migrate.current(made) is None
    migrate.prepare(made)
    assert migrate.current(made) == migrate.head()
    migrate.upgrade(made)
    assert migrate.current(made) == migrate.head()
    made.dispose()


def _stamp(file: Path, *statements: str) -> None:
    with sqlite3.connect(file) as raw:
        for statement in statements:
            raw.execute(statement)
    raw.close()


def test_an_old_schema_is_refused(file: Path):
    """It is named, with the command that upgrades it."""
    open_log(f"sqlite:///{file}").close()
    _stamp(file, "UPDATE alembic_version SET version_num = '0000'")
    made = engine.make_engine(f"sqlite:///{file}")
    with pytest.raises(SchemaOutdatedError, match=r"schema 0000.*0001.*db upgrade"):
        migrate.prepare(made, revisions=("0000", "0001"))
    made.dispose()


def test_a_newer_schema_is_refused(file: Path):
    """A downgrade would lose what the newer version wrote."""
    open_log(f"sqlite:///{file}").close()
    _stamp(file, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaUnknownError, match="9999"):
        open_log(f"sqlite:///{file}")
    made = engine.make_engine(f"sqlite:///{file}")
    with pytest.raises(SchemaUnknownError, match="9999"):
        migrate.upgrade(made)
    made.dispose()


def test_the_file_of_another_program_is_left_alone(file: Path):
    """It has tables, and none of them is ours."""
    _stamp(file, "CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(SchemaUnknownError, match="another program"):
        open_log(f"sqlite:///{file}")
    with sqlite3.connect(file) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
    raw.close()


def test_a_file_that_is_no_database_is_named(file: Path):
    """Nothing is written over it."""
    file.write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    with pytest.raises(StoreUnavailableError, match="not a database"):
        open_log(f"sqlite:///{file}")
    assert file.read_bytes().startswith(b"not a database")
