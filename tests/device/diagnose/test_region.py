"""What SB_DUMP leaves in memory, and what the judge makes of memory that a candidate scribbled over."""

from __future__ import annotations

import numpy as np
import pytest

from device.arena import Array
from device.diagnose import region

FLOAT32, INT64 = 0, 3


def record(name: str, data: Array, dtype: int, first: int = -1, *, ready: int = 1) -> bytes:
    """One record as device/diagnose/native/wrap.cpp writes it."""
    raw = data.tobytes()
    raw += b"\0" * (-len(raw) % 8)
    head = np.array([ready, region.RECORD + len(raw), dtype, data.size, first], dtype=np.int64).tobytes()
    return head + name.encode().ljust(64, b"\0") + raw


def memory(*records: bytes, lost: int = 0, room: int = 1024) -> Array:
    """A region that holds these records."""
    body = b"".join(records)
    capacity = len(body) + room
    head = np.array([region.MAGIC, capacity, len(body), lost], dtype=np.int64).tobytes()
    return np.frombuffer(head + body + b"\x7f" * room, dtype=np.uint8).copy()


def floats(*values: float) -> Array:
    return np.array(values, dtype=np.float32)


def test_pieces_of_one_name_follow_one_another() -> None:
    """Two rows of two, recorded by two calls, are one tensor of four; another name is another tensor."""
    found = region.read(
        memory(
            record("row", floats(1, 2), FLOAT32),
            record("count", np.array([7]), INT64),
            record("row", floats(3, 4), FLOAT32),
            lost=2,
        )
    )
    assert [(t.name, t.dtype, t.elements, t.placed) for t in found.tensors] == [
        ("row", "float32", 4, False),
        ("count", "int64", 1, False),
    ]
    row, held = found.tensors[0].put_together(4)
    assert (row.tolist(), held.tolist(), found.lost, found.problem) == ([1, 2, 3, 4], [True] * 4, 2, "")


def test_placed_pieces_lie_where_they_say() -> None:
    """Elements 2 and 3 come first; element 1 is never recorded."""
    found = region.read(memory(record("t", floats(3, 4), FLOAT32, 2), record("t", floats(1), FLOAT32, 0)))
    row, held = found.tensors[0].put_together(4)
    assert (found.tensors[0].placed, row.tolist(), held.tolist()) == (True, [1, 0, 3, 4], [True, False, True, True])


def test_a_record_that_was_not_finished_is_left_out() -> None:
    """The process died in the middle of a copy."""
    found = region.read(memory(record("a", floats(1), FLOAT32), record("b", floats(2), FLOAT32, ready=0)))
    assert [tensor.name for tensor in found.tensors] == ["a"]


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (8, 1 << 40, "the region's head was overwritten"),
        (16, 1 << 40, "the region's head was overwritten"),
        (16, -8, "the region's head was overwritten"),
        (32 + 8, 1 << 40, "a record was overwritten"),
        (32 + 8, 0, "a record was overwritten"),
        (32 + 16, 99, "a record was overwritten"),
        (32 + 24, 1 << 60, "a record was overwritten"),
        (32 + 24, -1, "a record was overwritten"),
        (32 + 32, 1 << 40, "a piece of 'a' begins at element 1099511627776, beyond every tensor"),
    ],
)
def test_what_a_candidate_wrote_over_the_region_is_not_believed(at: int, value: int, problem: str) -> None:
    """Each word of the heads, overwritten: nothing outside of the region is read, and the problem is named."""
    broken = memory(record("a", floats(1, 2), FLOAT32))
    broken[at : at + 8].view(np.int64)[0] = value
    assert region.read(broken).problem == problem


def test_a_region_that_no_kernel_opened_is_empty() -> None:
    """The process died before its first instruction: the judge's poison is still there."""
    assert region.read(np.full(4096, 0xFF, dtype=np.uint8)) == region.Recorded()


def test_one_name_has_one_type() -> None:
    """Pieces of two types are no tensor."""
    found = region.read(memory(record("a", floats(1), FLOAT32), record("a", np.array([1]), INT64)))
    assert found.problem == "'a' is float32 in one piece and int64 in another"


def test_a_region_has_room_for_the_case_within_limits() -> None:
    """A million elements: 32 MB; few: 1 MiB; very many: 64 MiB."""
    assert [region.size_for(n) for n in (1_000_000, 1, 1 << 30)] == [32_000_000, 1 << 20, 64 << 20]
