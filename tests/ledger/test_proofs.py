"""Checkpoints and proofs: what an adversary does to the database is found, and the place is named."""

from __future__ import annotations

import copy
import itertools
import json
import runpy
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import errors, wire
from ledger.bootstrap import client_of
from ledger.client import LedgerClient
from ledger.service import Ledger
from ledger.store import chain, checkpoint
from ledger.store.checkpoint import LogKey
from ledger.store.sql import open_log
from tests.sources import ROOT

KEY = LogKey.from_seed(bytes(range(32)), "ledger.example")
VERIFIER = ROOT / "docs" / "verify_bundle.py"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def client_on(file: Path) -> LedgerClient:
    numbers = itertools.count()
    log = open_log(f"sqlite:///{file}")
    return client_of(
        Ledger(log, now=lambda: "2026-01-02T03:04:05Z", new_id=lambda: str(next(numbers)), key=lambda: KEY)
    )


@pytest.fixture
def client(file: Path) -> Iterator[LedgerClient]:
    with client_on(file) as made:
        made.create_library("lib")
        record(made, 9)
        yield made


def record(client: LedgerClient, count: int, prefix: str = "e") -> None:
    start = client.library("lib").sequence
    for number in range(start, start + count):
        name = f"{prefix}{number}"
        client.record_experience(
            "lib", wire.NewExperience(experience=name, title=name, body=name, stages=("correctness",))
        )


def rows_of(connection: sqlite3.Connection) -> list[tuple[int, str, bytes]]:
    return connection.execute("SELECT sequence, type, record FROM events ORDER BY sequence").fetchall()


def rewrite(connection: sqlite3.Connection, rows: list[tuple[int, str, bytes]]) -> None:
    """Store these records with a chain and a head that hold: what an adversary who knows the format does."""
    connection.execute("DELETE FROM events")
    last = bytes(32)
    for sequence, kind, data in rows:
        last = chain.link(last, data)
        connection.execute("INSERT INTO events VALUES ('lib', ?, ?, ?, ?)", (sequence, kind, data, last))
    connection.execute("UPDATE libraries SET sequence = ?, hash = ?", (len(rows), last))


def edit(connection: sqlite3.Connection, *, whole: bool) -> int:
    """A title in record 4 becomes another one."""
    rows = [(s, t, r.replace(b'"title":"e3"', b'"title":"xx"')) for s, t, r in rows_of(connection)]
    if whole:
        rewrite(connection, rows)
    else:
        connection.execute("UPDATE events SET record = ? WHERE sequence = 4", (rows[3][2],))
    return 4


def swap(connection: sqlite3.Connection, *, whole: bool) -> int:
    """Records 3 and 5 change places."""
    rows = rows_of(connection)
    a, b = rows[2][2], rows[4][2]
    a, b = a.replace(b'"sequence":3', b'"sequence":5'), b.replace(b'"sequence":5', b'"sequence":3')
    if whole:
        rows[2], rows[4] = (3, rows[4][1], b), (5, rows[2][1], a)
        rewrite(connection, rows)
    else:
        connection.execute("UPDATE events SET record = ? WHERE sequence = 3", (rows[4][2],))
        connection.execute("UPDATE events SET record = ? WHERE sequence = 5", (rows[2][2],))
    return 3


def delete(connection: sqlite3.Connection, *, whole: bool) -> int:
    """Record 6 goes."""
    if whole:
        rows = [row for row in rows_of(connection) if row[0] != 6]
        rewrite(
            connection,
            [(n, t, r.replace(b'"sequence":%d' % s, b'"sequence":%d' % n)) for n, (s, t, r) in enumerate(rows, 1)],
        )
    else:
        connection.execute("DELETE FROM events WHERE sequence = 6")
    return 6


def insert(connection: sqlite3.Connection, *, whole: bool) -> int:
    """A record that never happened stands at 7."""
    rows = rows_of(connection)
    forged = rows[6][2].replace(b'"experience":"e6"', b'"experience":"no"')
    if whole:
        rows.insert(6, (7, rows[6][1], forged))
        rewrite(
            connection,
            [(n, t, r.replace(b'"sequence":%d' % s, b'"sequence":%d' % n)) for n, (s, t, r) in enumerate(rows, 1)],
        )
    else:
        connection.execute("UPDATE events SET sequence = sequence + 100 WHERE sequence >= 7")
        connection.execute("UPDATE events SET sequence = sequence - 99 WHERE sequence >= 100")
        connection.execute("INSERT INTO events VALUES ('lib', 7, ?, ?, ?)", (rows[6][1], forged, bytes(32)))
    return 7


def truncate(connection: sqlite3.Connection, *, whole: bool) -> int:
    """The last two records go; the head follows where the adversary is thorough."""
    rows = rows_of(connection)[:-2]
    if whole:
        rewrite(connection, rows)
    else:
        connection.execute("DELETE FROM events WHERE sequence > 8")
    return 9


ATTACKS: list[Callable[..., int]] = [edit, swap, delete, insert, truncate]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_changed_log_names_the_first_bad_place(client: LedgerClient, file: Path, attack: Callable[..., int]):
    """The chain finds it without any checkpoint."""
    with sqlite3.connect(file) as raw:
        expected = attack(raw, whole=False)
    raw.close()
    found = client.verify("lib")
    assert (found.ok, found.bad_sequence) == (False, expected)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_rewritten_log_is_found_by_a_checkpoint_kept_elsewhere(
    client: LedgerClient, file: Path, attack: Callable[..., int]
):
    """Chain and head hold, the ledger's own checkpoints are gone: the kept ones name the first place behind what holds."""
    early = [client.checkpoint("lib").note]
    with sqlite3.connect(file) as raw:
        attack(raw, whole=True)
        raw.execute("DELETE FROM checkpoints")
        raw.execute("DELETE FROM snapshots")
    raw.close()
    client.close()
    with client_on(file) as again:
        assert again.verify("lib").ok
        found = again.verify("lib", checkpoints=early, key=KEY.verifier("lib"))
        assert not found.ok
        assert found.bad_sequence == (9 if attack is truncate else 10 if attack is delete else 1)
        if again.library("lib").sequence < 12:
            record(again, 12, "late")
            assert not again.verify("lib", checkpoints=early).ok


def test_earlier_checkpoints_narrow_where_a_log_was_rewritten(client: LedgerClient, file: Path):
    """Of checkpoints at 10, 15 and 20 with a change at 17, the first bad place is 16: behind the last that holds."""
    notes = [client.checkpoint("lib").note]
    for _ in range(2):
        record(client, 5)
        notes.append(client.checkpoint("lib").note)
    client.close()
    with sqlite3.connect(file) as raw:
        rewrite(raw, [(s, t, r.replace(b'"title":"e16"', b'"title":"xxx"')) for s, t, r in rows_of(raw)])
        raw.execute("DELETE FROM checkpoints")
    raw.close()
    with client_on(file) as again:
        found = again.verify("lib", checkpoints=notes)
        assert (found.ok, found.bad_sequence) == (False, 16)
        assert again.verify("lib", checkpoints=notes[:2]).ok


def test_a_ledger_signs_no_second_history(client: LedgerClient, file: Path):
    """Its own checkpoint stands in the way, in memory and after a restart; a changed cache of the tree does not."""
    assert client.checkpoint("lib") == client.checkpoint("lib")
    client.close()
    with sqlite3.connect(file) as raw:
        edit(raw, whole=True)
    raw.close()
    with client_on(file) as again:
        with pytest.raises(errors.HistoryRewrittenError):
            again.checkpoint("lib")
        found = again.verify("lib")
        assert (found.ok, found.bad_sequence) == (False, 1)


def test_a_kept_tree_that_was_changed_is_made_again(file: Path):
    """The roots of blocks on the shelf are a cache: the signed checkpoint after a change of them is the same."""
    from ledger.proofs import _WORTH_KEEPING
    from tests.ledger.store.test_sql import draft

    log = open_log(f"sqlite:///{file}")
    from ledger.store.log import NewLibrary

    log.append("lib", [draft(n) for n in range(_WORTH_KEEPING + 5)], expected=NewLibrary())
    made = Ledger(log, now=str, new_id=str, key=lambda: KEY)
    signed = made.proofs.checkpoint("lib")
    assert log.shelf.snapshot_sequences("lib", "tree") == [_WORTH_KEEPING]
    kept = log.shelf.snapshot("lib", "tree", until=_WORTH_KEEPING)
    assert kept is not None
    log.shelf.put_snapshot("lib", "tree", type(kept)(kept.sequence, kept.hash, bytes(32) + kept.data[32:]))
    again = Ledger(log, now=str, new_id=str, key=lambda: KEY)
    assert again.proofs.checkpoint("lib") == signed
    made.close()


def test_a_checkpoint_has_the_form_of_c2sp(client: LedgerClient):
    """Origin, size and root, a blank line, and one signature by a key that is named and identified as signed notes are."""
    made = client.checkpoint("lib")
    origin, size, root, blank, signature, end = made.note.split("\n")
    assert (origin, size, blank, end) == ("ledger.example/lib", "10", "", "")
    assert len(root) == 44
    assert signature.startswith("\u2014 ledger.example/lib ")
    assert made.key.startswith("ledger.example/lib+")
    assert checkpoint.opened(made.note, made.key).root.hex() == made.root
    for changed in (made.note.replace("\n10\n", "\n11\n"), made.note.replace("example/lib\n", "example/lab\n"), "x"):
        with pytest.raises(errors.CheckpointInvalidError):
            checkpoint.opened(changed, made.key)
    with pytest.raises(errors.CheckpointInvalidError, match="no signature"):
        checkpoint.opened(made.note, KEY.verifier("other"))
    with pytest.raises(errors.CheckpointInvalidError):
        client.verify("lib", checkpoints=[made.note.replace("\n10\n", "\n9\n")])


def test_the_key_file_is_made_once_for_its_owner(tmp_path: Path):
    """32 random bytes under 0600; the same key when it is read again."""
    path = tmp_path / "folder" / "log.key"
    first, second = LogKey.load(path), LogKey.load(path)
    assert first.public == second.public
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("nonsense")
    with pytest.raises(errors.CheckpointInvalidError, match=r"log\.key"):
        LogKey.load(path)


# --- the verifier of the documents ------------------------------------------------------------------------------------


def verdict(tmp_path: Path, bundle: dict[str, Any], *arguments: str) -> tuple[int, str]:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(bundle), encoding="utf-8")
    # Isolated: neither this project nor any installed package can be imported.
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(VERIFIER), str(path), *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_standalone_verifier_accepts_what_holds(client: LedgerClient, tmp_path: Path):
    """A record and growth since 10, for every kind of size; under 200 lines, and only the standard library."""
    old = client.checkpoint("lib").note
    record(client, 7)
    code, said = verdict(tmp_path, client.prove("lib", 4, since=old), "--key", KEY.verifier("lib"))
    assert code == 0, said
    assert "the log extends the checkpoint of 10 records" in said
    assert "record 4 is in the log" in said
    check = runpy.run_path(str(VERIFIER))["check"]
    for sequence in range(1, 18):
        assert len(list(check(client.prove("lib", sequence), KEY.verifier("lib")))) == 2
    assert len(VERIFIER.read_text(encoding="utf-8").splitlines()) < 200


def _changed(bundle: dict[str, Any], *path: str, by: Callable[[Any], Any]) -> dict[str, Any]:
    made = copy.deepcopy(bundle)
    at = made
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = by(at[path[-1]])
    return made


def test_the_standalone_verifier_refuses_what_does_not(client: LedgerClient, tmp_path: Path):
    """A change of any part, another key, and the proof of another record."""
    old = client.checkpoint("lib").note
    record(client, 7)
    bundle = client.prove("lib", 4, since=old)
    flip = {"by": lambda text: text[:-1] + ("0" if text[-1] != "0" else "1")}
    key = KEY.verifier("lib")
    changes = [
        _changed(bundle, "record", "hash", **flip),
        _changed(bundle, "record", "previous_hash", **flip),
        _changed(bundle, "record", "record", by=lambda text: text.replace("e3", "e4")),
        _changed(bundle, "record", "sequence", by=lambda n: n + 1),
        _changed(bundle, "record", "path", by=lambda items: items[:-1]),
        _changed(bundle, "record", "path", by=lambda items: [*items, items[0]]),
        _changed(bundle, "since", "path", by=lambda items: items[1:]),
        _changed(bundle, "since", "path", by=lambda items: [items[1], items[0], *items[2:]]),
        _changed(bundle, "since", "checkpoint", by=lambda note: note.replace("\n10\n", "\n9\n")),
        _changed(bundle, "checkpoint", by=lambda note: note.replace("\n17\n", "\n18\n")),
        _changed(bundle, "checkpoint", by=lambda _: old),
        _changed(bundle, "format", by=lambda _: "sagebook.proof/2"),
    ]
    check = runpy.run_path(str(VERIFIER))
    for changed in changes:
        with pytest.raises((check["Wrong"], KeyError, ValueError)):
            list(check["check"](changed, key))
    code, said = verdict(tmp_path, changes[0], "--key", key)
    assert (code, said.splitlines()[-1][:14]) == (1, "does not hold:")
    other = LogKey.from_seed(bytes(32), "ledger.example").verifier("lib")
    assert verdict(tmp_path, bundle, "--key", other)[0] == 1


def test_its_signatures_are_those_of_rfc_8032():
    """Test 3 of RFC 8032, 7.1, and the same with one bit changed."""
    signed = runpy.run_path(str(VERIFIER))["signed"]
    public = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
    signature = bytes.fromhex(
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
    )
    assert signed(public, bytes.fromhex("af82"), signature)
    assert not signed(public, bytes.fromhex("af83"), signature)
    assert not signed(public, bytes.fromhex("af82"), signature[:-1] + bytes([signature[-1] ^ 1]))


def test_the_library_is_named_in_what_is_created():
    """A key speaks for one library: the same ledger's key for another library has another name and id."""
    assert KEY.verifier("a") != KEY.verifier("b")
    assert KEY.origin("a b/c+d") == "ledger.example/a%20b%2Fc%2Bd"
