"""A database that was changed behind the ledger's back: exit code 7 from whatever reads it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

from tests.ledger.cli.conftest import Run


def _spoil(tmp_path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(tmp_path / "cli.db") as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def _chain_anew(tmp_path: Path) -> None:
    """Make the hashes follow from the records again, as who changed them could."""
    with sqlite3.connect(tmp_path / "cli.db") as connection:
        last = bytes(32)
        for sequence, record in connection.execute("SELECT sequence, record FROM events ORDER BY sequence").fetchall():
            last = hashlib.sha256(last + record).digest()
            connection.execute("UPDATE events SET hash = ? WHERE sequence = ?", (last, sequence))
        connection.execute("UPDATE libraries SET hash = ?", (last,))
    connection.close()


def test_a_changed_record_fails_the_verification(lib: Run, tmp_path: Path) -> None:
    """Exit code 7 and the sequence, for a person and for a program."""
    _spoil(tmp_path, "UPDATE events SET record = replace(record, '\"Cold\"', '\"Gold\"') WHERE sequence = 3")
    ended = lib("verify", "lib", code=7)
    assert ended.out.startswith("not clean at sequence 3: ")
    found = lib("verify", "lib", "--json", code=7).json
    assert (found["ok"], found["bad_sequence"], found["events"]) == (False, 3, 2)


def test_a_changed_value_fails_the_re_derivation(lib: Run, tmp_path: Path) -> None:
    """An outcome that does not follow from the facts: exit code 7, recorded and derived side by side."""
    (at,) = [json.loads(e)["sequence"] for e in lib("events", "lib", "--json").out.splitlines() if '"n":3' in e]
    _spoil(
        tmp_path,
        "UPDATE events SET record = CAST(replace(CAST(record AS TEXT), '\"n\":3', '\"n\":9') AS BLOB) WHERE sequence = ?",
        at,
    )
    _chain_anew(tmp_path)
    found = lib("rederive", "lib", "--json", code=7).json["first_difference"]
    assert (found["sequence"], found["recorded"]["n"], found["derived"]["n"]) == (at, 9, 3)
    assert lib("rederive", "lib", code=7).out.startswith(f"different from sequence {at} on")


def test_a_record_that_can_not_be_read_is_corruption(lib: Run, tmp_path: Path) -> None:
    """Exit code 7 from any command that reads it, not a traceback."""
    _spoil(tmp_path, "UPDATE events SET record = CAST('{' AS BLOB) WHERE sequence = 4")
    for words in (("state", "lib"), ("rederive", "lib"), ("why", "lib", "hot"), ("events", "lib"), ("verify", "lib")):
        lib(*words, code=7)


def test_a_record_that_lost_what_it_rests_on_is_corruption(lib: Run, tmp_path: Path) -> None:
    """An event about an experience that nobody recorded: exit code 7 and its sequence."""
    _spoil(
        tmp_path,
        "UPDATE events SET record = CAST(replace(CAST(record AS TEXT), '\"hot\"', '\"hat\"') AS BLOB) WHERE sequence = 2",
    )
    for words in (("state", "lib"), ("rederive", "lib"), ("why", "lib", "cold")):
        assert "verify" in lib(*words, code=7).err
