"""Single bits that flip: in the file, anywhere; and in any column of any ledger row."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.history import draft_of, events
from ledger.errors import LedgerError
from ledger.store import chain
from ledger.store.log import NewLibrary
from ledger.store.sql import open_log

COUNT = 120
COLUMNS = ("library", "sequence", "type", "record", "hash")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: hundreds of files are written, and none has to last."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        yield Path(name)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed ledger file."""
    path = tmp_path_factory.mktemp("flips") / "ledger.db"
    log = open_log(f"sqlite:///{path}")
    log.append("lib", [draft_of(event, n) for n, event in enumerate(events(COUNT))], expected=NewLibrary())
    log.close()
    assert not path.with_name("ledger.db-wal").exists()
    return path.read_bytes()


def rows_of(path: Path) -> object:
    """Every ledger row and head as stored; None where they can not be read."""
    raw = sqlite3.connect(path)
    raw.text_factory = bytes
    try:
        heads = raw.execute("SELECT name, sequence, hash FROM libraries ORDER BY name").fetchall()
        return heads, raw.execute("SELECT * FROM events ORDER BY library, sequence").fetchall()
    except (sqlite3.Error, OverflowError):
        return None
    finally:
        raw.close()


def found(path: Path) -> bool:
    """Whether the ledger notices."""
    try:
        log = open_log(f"sqlite:///{path}")
    except LedgerError:
        return True
    try:
        verdict = chain.audit(log, "lib")
    except LedgerError:
        return True
    else:
        # A library whose name changed is no longer here, or there are two.
        return not verdict.ok or verdict.events != COUNT or log.libraries() != ("lib",)
    finally:
        log.close()


def test_a_flip_anywhere_in_the_file_that_changes_a_row_is_found(sound: bytes, folder: Path):
    """150 flips: all that change what a row reads as are found, and nothing is found where no row changed."""
    rng = random.Random(20261201)
    path = folder / "ledger.db"
    path.write_bytes(sound)
    before = rows_of(path)
    changed = 0
    for trial in range(150):
        damaged = bytearray(sound)
        at, bit = rng.randrange(len(damaged)), rng.randrange(8)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        differs = rows_of(path) != before
        changed += differs
        if differs:
            assert found(path), f"trial {trial}: bit {bit} of byte {at} went unnoticed"
        for beside in ("-wal", "-shm"):
            path.with_name("ledger.db" + beside).unlink(missing_ok=True)
    assert changed > 60


def test_a_flip_in_any_column_of_any_row_is_found(sound: bytes, folder: Path):
    """300 flips in the rows' own values, as an SQL statement would make them: every one is found."""
    rng = random.Random(7)
    path = folder / "ledger.db"
    for trial in range(300):
        path.write_bytes(sound)
        raw = sqlite3.connect(path)
        column, sequence = rng.choice(COLUMNS), rng.randint(1, COUNT)
        value = raw.execute(f"SELECT {column} FROM events WHERE sequence = ?", (sequence,)).fetchone()[0]  # noqa: S608 - of COLUMNS
        if isinstance(value, int):
            flipped: object = value ^ (1 << rng.randrange(40))
        else:
            data = bytearray(value.encode() if isinstance(value, str) else value)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(7 if isinstance(value, str) else 8)
            flipped = data.decode() if isinstance(value, str) else bytes(data)
        try:
            raw.execute(f"UPDATE events SET {column} = ? WHERE sequence = ?", (flipped, sequence))  # noqa: S608
        except sqlite3.IntegrityError:  # the place is taken
            raw.close()
            continue
        raw.commit()
        raw.close()
        assert found(path), f"trial {trial}: {column} of {sequence} went unnoticed"
