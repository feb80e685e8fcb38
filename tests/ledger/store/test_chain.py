"""The chain names the first record that was edited, swapped, removed, inserted, or cut off."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledger.store import chain
from ledger.store.log import ABSENT, Draft, Head, NewLibrary, Stored
from ledger.store.sql import SqlLog, open_log

SIZE = 12


def drafts(count: int) -> list[Draft]:
    return [
        Draft("test.happened", 1, f"id-{n}", "2026-01-02T03:04:05Z", "tester", "t", "s", msgspec.Raw(b'{"n":%d}' % n))
        for n in range(1, count + 1)
    ]


class Tamperer:
    """A library of twelve records, and someone who holds the database."""

    def __init__(self, folder: Path) -> None:
        log = open_log(f"sqlite:///{folder}/ledger.db")
        assert isinstance(log, SqlLog)
        self.log = log
        log.append("lib", drafts(SIZE), expected=NewLibrary())
        log.append("other", drafts(3), expected=NewLibrary())
        self.raw = sqlite3.connect(folder / "ledger.db", isolation_level=None)

    def do(self, sql: str, *values: Any) -> None:
        assert self.raw.execute(sql, values).rowcount > 0

    def row(self, sequence: int) -> tuple[str, bytes, bytes]:
        found: tuple[str, bytes, bytes] = self.raw.execute(
            "SELECT type, record, hash FROM events WHERE library = 'lib' AND sequence = ?", (sequence,)
        ).fetchone()
        return found

    def put(self, sequence: int, kind: str, record: bytes, hash_: bytes) -> None:
        self.do(
            "UPDATE events SET type = ?, record = ?, hash = ? WHERE library = 'lib' AND sequence = ?",
            *(kind, record, hash_, sequence),
        )

    def verdict(self) -> chain.Verdict:
        return chain.audit(self.log, "lib")

    def close(self) -> None:
        self.raw.close()
        self.log.close()


@pytest.fixture
def tamperer(tmp_path: Path) -> Iterator[Tamperer]:
    made = Tamperer(tmp_path)
    yield made
    made.close()


def test_an_untouched_library_holds(tamperer: Tamperer):
    """Every record counts, and the verdict's head is the log's."""
    head = tamperer.log.head("lib")
    assert tamperer.verdict() == chain.Verdict(ok=True, events=SIZE, head=head.hash)


@pytest.mark.parametrize("at", [1, 5, SIZE])
def test_an_edited_record_is_named(tamperer: Tamperer, at: int):
    """One byte of the payload, hash left alone."""
    kind, record, hash_ = tamperer.row(at)
    tamperer.put(at, kind, record.replace(b'"n":', b'"m":'), hash_)
    verdict = tamperer.verdict()
    assert (verdict.ok, verdict.events, verdict.bad_sequence) == (False, at - 1, at)


def test_an_edited_record_with_its_hash_recomputed_breaks_the_next(tamperer: Tamperer):
    """The record holds by itself; the one behind it no longer follows from it."""
    kind, record, _ = tamperer.row(5)
    forged = record.replace(b'"n":', b'"m":')
    tamperer.put(5, kind, forged, chain.link(tamperer.row(4)[2], forged))
    assert tamperer.verdict().bad_sequence == 6


def test_the_last_record_with_its_hash_recomputed_breaks_the_head(tamperer: Tamperer):
    """Nothing lies behind it but the head."""
    kind, record, _ = tamperer.row(SIZE)
    forged = record.replace(b'"n":', b'"m":')
    tamperer.put(SIZE, kind, forged, chain.link(tamperer.row(SIZE - 1)[2], forged))
    verdict = tamperer.verdict()
    assert verdict.bad_sequence == SIZE
    assert "head" in str(verdict.reason)


def test_an_edited_hash_is_named(tamperer: Tamperer):
    """The record is as it was."""
    kind, record, _ = tamperer.row(3)
    tamperer.put(3, kind, record, bytes(32))
    assert tamperer.verdict().bad_sequence == 3


def test_an_edited_type_is_named(tamperer: Tamperer):
    """The hash does not cover the column; the record says what it is."""
    tamperer.do("UPDATE events SET type = 'test.else' WHERE library = 'lib' AND sequence = 4")
    verdict = tamperer.verdict()
    assert verdict.bad_sequence == 4
    assert "test.else" in str(verdict.reason)


def test_swapped_records_are_named_at_the_first(tamperer: Tamperer):
    """Two rows exchange all that they hold but their sequence."""
    one, two = tamperer.row(4), tamperer.row(9)
    tamperer.put(4, *two)
    tamperer.put(9, *one)
    assert tamperer.verdict().bad_sequence == 4


@pytest.mark.parametrize("at", [1, 6, SIZE])
def test_a_removed_record_is_named(tamperer: Tamperer, at: int):
    """Also the first and the last."""
    tamperer.do("DELETE FROM events WHERE library = 'lib' AND sequence = ?", at)
    verdict = tamperer.verdict()
    assert (verdict.bad_sequence, verdict.events) == (at, at - 1)
    assert "missing" in str(verdict.reason)


def test_a_removed_record_with_the_rest_moved_up_is_named(tamperer: Tamperer):
    """Sequences are dense again, and the first record in a wrong place is the one that moved into the gap."""
    tamperer.do("DELETE FROM events WHERE library = 'lib' AND sequence = 6")
    for sequence in range(7, SIZE + 1):
        tamperer.do("UPDATE events SET sequence = ? WHERE library = 'lib' AND sequence = ?", sequence - 1, sequence)
    assert tamperer.verdict().bad_sequence == 6


def test_an_inserted_record_is_named(tamperer: Tamperer):
    """The rest is moved down to make room."""
    for sequence in range(SIZE, 6, -1):
        tamperer.do("UPDATE events SET sequence = ? WHERE library = 'lib' AND sequence = ?", sequence + 1, sequence)
    kind, record, hash_ = tamperer.row(6)
    tamperer.do("INSERT INTO events VALUES ('lib', 7, ?, ?, ?)", kind, record, hash_)
    assert tamperer.verdict().bad_sequence == 7


@pytest.mark.parametrize(("at", "bad"), [(SIZE + 1, SIZE + 1), (SIZE + 9, SIZE + 1), (0, 1), (-4, 1)])
def test_a_record_added_at_an_end_is_named(tamperer: Tamperer, at: int, bad: int):
    """Behind the head it would be served one day; before the first it would stay unseen."""
    kind, record, _ = tamperer.row(SIZE)
    record = record.replace(b'"sequence":12', b'"sequence":%d' % at)
    tamperer.do(
        "INSERT INTO events VALUES ('lib', ?, ?, ?, ?)", at, kind, record, chain.link(tamperer.row(SIZE)[2], record)
    )
    assert tamperer.verdict().bad_sequence == bad


def test_a_truncated_library_is_named_at_the_first_missing(tamperer: Tamperer):
    """The head row tells how far it went."""
    tamperer.do("DELETE FROM events WHERE library = 'lib' AND sequence > 8")
    assert tamperer.verdict().bad_sequence == 9


def test_a_head_moved_back_or_forged_is_named(tamperer: Tamperer):
    """Records behind the head, and a head of another hash."""
    head = tamperer.log.head("lib")
    tamperer.do("UPDATE libraries SET sequence = 8 WHERE name = 'lib'")
    assert tamperer.verdict().bad_sequence == 9
    tamperer.do("UPDATE libraries SET sequence = ?, hash = ? WHERE name = 'lib'", head.sequence, bytes(32))
    assert tamperer.verdict().bad_sequence == SIZE
    tamperer.do("DELETE FROM libraries WHERE name = 'lib'")
    assert tamperer.verdict().bad_sequence == 1


def test_a_record_of_another_library_is_named(tamperer: Tamperer):
    """A whole library passed off as another one: hashes and head hold, but the records say whose they are."""
    tamperer.do("DELETE FROM events WHERE library = 'lib'")
    tamperer.do("UPDATE events SET library = 'lib' WHERE library = 'other'")
    tamperer.do(
        "UPDATE libraries SET sequence = 3, hash = (SELECT hash FROM libraries WHERE name = 'other') WHERE name = 'lib'"
    )
    verdict = tamperer.verdict()
    assert verdict.bad_sequence == 1
    assert "'other'" in str(verdict.reason)


def test_other_libraries_are_not_blamed(tamperer: Tamperer):
    """Damage stays where it is."""
    tamperer.do("DELETE FROM events WHERE library = 'lib' AND sequence = 6")
    assert chain.audit(tamperer.log, "other").ok


def test_a_column_of_another_kind_is_named(tamperer: Tamperer):
    """A text where bytes were, and bytes that are no text where a text was."""
    tamperer.do("UPDATE events SET record = CAST(record AS TEXT) WHERE library = 'lib' AND sequence = 7")
    assert tamperer.verdict().bad_sequence == 7
    tamperer.do("UPDATE events SET type = CAST(x'ff' AS TEXT) WHERE library = 'lib' AND sequence = 5")
    assert tamperer.verdict().bad_sequence == 5
    tamperer.do("UPDATE events SET type = x'ff' WHERE library = 'lib' AND sequence = 2")
    assert tamperer.verdict().bad_sequence == 2


def test_a_record_rewritten_with_other_spacing_is_named():
    """The same facts in other bytes, chain recomputed, are told apart from a record of another place only by reading it."""
    record = b'{ "library": "lib", "sequence": 1, "type": "a.b" }'
    row = Stored(1, "a.b", record, chain.link(bytes(32), record))
    assert chain.verify("lib", [row], Head(1, row.hash)).ok
    assert not chain.verify("lib", [msgspec.structs.replace(row, type="a.c")], Head(1, row.hash)).ok
    unreadable = Stored(1, "a.b", b"[]", chain.link(bytes(32), b"[]"))
    assert chain.verify("lib", [unreadable], Head(1, unreadable.hash)).bad_sequence == 1


def test_an_absent_library_holds(tamperer: Tamperer):
    """No record, no head."""
    assert chain.audit(tamperer.log, "none") == chain.Verdict(ok=True, events=0, head=ABSENT.hash)


# --- random damage --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tamperer]:
    made = Tamperer(tmp_path_factory.mktemp("chain"))
    yield made
    made.close()


def flipped(data: bytes, bit: int) -> bytes:
    bit %= 8 * len(data)
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(
    sequence=st.integers(1, SIZE),
    column=st.sampled_from(["library", "type", "record", "hash"]),
    bit=st.integers(0, 2**20),
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_bit_of_a_row_is_named(shared: Tamperer, sequence: int, column: str, bit: int):
    """Whichever bit of whichever column, the record that it lies in is the first bad one."""
    kind, record, hash_ = shared.row(sequence)
    row = {"library": b"lib", "type": kind.encode(), "record": record, "hash": hash_}
    damaged = row | {column: flipped(row[column], bit)}
    move = (
        "UPDATE events SET library = CAST(? AS TEXT), type = CAST(? AS TEXT), record = ?, hash = ? "
        "WHERE CAST(library AS BLOB) = ? AND sequence = ?"
    )
    shared.do(move, *damaged.values(), b"lib", sequence)
    verdict = shared.verdict()
    shared.do(move, *row.values(), damaged["library"], sequence)
    assert (verdict.ok, verdict.bad_sequence, verdict.events) == (False, sequence, sequence - 1)


@given(sequence=st.integers(1, SIZE), bit=st.integers(0, 62))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_bit_of_a_sequence_is_named(shared: Tamperer, sequence: int, bit: int):
    """The row turns up elsewhere and is missed where it was."""
    changed = sequence ^ 1 << bit
    assume(not 1 <= changed <= SIZE)  # that row exists: the key forbids it
    shared.do("UPDATE events SET sequence = ? WHERE library = 'lib' AND sequence = ?", changed, sequence)
    verdict = shared.verdict()
    shared.do("UPDATE events SET sequence = ? WHERE library = 'lib' AND sequence = ?", sequence, changed)
    assert verdict.bad_sequence == (1 if changed < 1 else sequence)


@given(bit=st.integers(0, 32 * 8 + 62))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_bit_of_the_head_is_named(shared: Tamperer, bit: int):
    """Its hash, or how far it says that the records go."""
    head = shared.log.head("lib")
    sequence = head.sequence ^ 1 << bit - 256 if bit >= 256 else head.sequence
    hash_ = flipped(head.hash, bit) if bit < 256 else head.hash
    shared.do("UPDATE libraries SET sequence = ?, hash = ? WHERE name = 'lib'", sequence, hash_)
    verdict = shared.verdict()
    shared.do("UPDATE libraries SET sequence = ?, hash = ? WHERE name = 'lib'", head.sequence, head.hash)
    assert verdict.bad_sequence == min(sequence + 1, SIZE + (sequence != SIZE))


@given(st.integers(1, SIZE), st.integers(1, SIZE))
def test_memory_of_records_verifies_without_a_store(first: int, second: int):
    """`verify` walks any records: exchanged ones are found at the first."""
    assume(first < second)
    rows = chain.extend("lib", ABSENT, drafts(SIZE))
    head = Head(SIZE, rows[-1].hash)
    assert chain.verify("lib", rows, head).ok
    rows[first - 1], rows[second - 1] = rows[second - 1], rows[first - 1]
    assert chain.verify("lib", rows, head).bad_sequence == first
