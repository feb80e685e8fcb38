"""How a wrong result is wrong, on arrays that show one way each."""

from __future__ import annotations

import numpy as np
import pytest

from device.arena import Array
from device.diagnose import kinds

RIGHT = np.arange(1.0, 81.0).reshape(8, 10) ** 2
"""Squares of 1 to 80: no two alike, and no multiple or shift of itself."""


def seen(got: Array, expected: Array = RIGHT, never: Array | None = None) -> kinds.Seen:
    return kinds.Seen(expected, got, got != expected, never)


def changed(places: object, values: object) -> Array:
    made = RIGHT.copy()
    made[places] = values
    return made


CASES = {
    "zeros": changed((slice(2, 4), slice(3, 7)), 0.0),
    "nan": changed((3, slice(None)), np.nan),
    "infinite": changed((slice(0, 2), 1), np.inf),
    "negated": -RIGHT,
    "scaled": RIGHT / 3,
    "shifted by a constant": RIGHT + 500.0,
    "transposed": RIGHT.T.copy().reshape(8, 10),
    "moved": np.concatenate([RIGHT.reshape(-1)[2:], [0.5, 0.5]]).reshape(8, 10),
    "constant": changed((slice(1, 8), slice(2, 9)), 7.0),
    "rounded": RIGHT * (1 + 1e-3 * np.sin(np.arange(80.0)).reshape(8, 10)),
    "tail of each row": changed((slice(None), slice(8, 10)), np.arange(16.0).reshape(8, 2) * 9),
    "last rows": changed(slice(6, 8), np.arange(20.0).reshape(2, 10) * 99),
    "everywhere": np.random.default_rng(1).standard_normal((8, 10)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_way_to_be_wrong_is_named(name: str) -> None:
    """One pattern an array; none is taken for another."""
    found = kinds.classify(seen(CASES[name]))
    assert found.name == name
    assert found.words
    assert found.advice


def test_the_numbers_of_a_pattern_are_told() -> None:
    """A third, plus 500, two places early, columns 8 to 9 of 10, rows 6 to 7 of 8."""
    numbers = {name: kinds.classify(seen(CASES[name])).number for name in CASES}
    assert numbers["scaled"] == pytest.approx(1 / 3)
    assert numbers["shifted by a constant"] == pytest.approx(500)
    assert numbers["moved"] == -2
    assert (numbers["tail of each row"], numbers["last rows"]) == (8, 6)
    assert "columns 8 to 9 of 10" in kinds.classify(seen(CASES["tail of each row"])).words
    assert "rows 6 to 7 of 8" in kinds.classify(seen(CASES["last rows"])).words


def test_what_was_never_written_comes_before_what_it_looks_like() -> None:
    """Poison happens to be a number that other kinds would claim."""
    got = changed(slice(4, 8), 0.0)
    never = np.zeros(RIGHT.shape, dtype=bool)
    never[4:] = True
    assert kinds.classify(seen(got, never=never)).name == "unwritten"
    never[4, 0] = False
    assert kinds.classify(seen(got, never=never)).name == "zeros"


def test_a_wrong_end_and_scattered_elements_of_a_long_row() -> None:
    """From element 700 of 1000 on; three of 1000 here and there."""
    row = np.arange(1.0, 1001.0)
    noise = np.random.default_rng(3).standard_normal(1000) * 1e4
    ended = np.where(np.arange(1000) < 700, row, noise)
    assert kinds.classify(seen(ended, row)).words == "all is right up to element 700 of 1000, and wrong from there"
    few = row.copy()
    few[[3, 500, 77]] = noise[:3]
    assert kinds.classify(seen(few, row)).words == "3 of 1000 elements are wrong"


def test_half_wrong_in_no_pattern_is_said_to_be_so() -> None:
    """Every second element of every row is another number."""
    got = RIGHT.copy()
    got[:, ::2] = np.random.default_rng(5).standard_normal((8, 5)) * 1e5
    assert kinds.classify(seen(got)).name == "partly"


@pytest.mark.parametrize(
    ("box", "first"),
    [
        ((slice(2, 5), slice(3, 7)), ((2, 5), (3, 7))),
        ((slice(0, 8), slice(9, 10)), ((0, 8), (9, 10))),
        ((7, 9), ((7, 8), (9, 10))),
        ((slice(None), slice(None)), ((0, 8), (0, 10))),
    ],
)
def test_the_first_wrong_region_is_the_box_at_the_first_wrong_element(box: object, first: object) -> None:
    """Its spans are begin and end, exclusive, for each axis; a second box further on does not change it."""
    bad = np.zeros((8, 10), dtype=bool)
    bad[box] = True
    assert kinds.region(bad) == first
    deep = np.zeros((3, 8, 10), dtype=bool)
    deep[1] = bad
    deep[2, 7, 9] = True
    inner = kinds.region(deep)
    assert inner[1:] == first
    assert inner[0][0] == 1


def test_a_region_stops_where_a_row_is_only_partly_wrong() -> None:
    """Columns 2 to 4 of row 1, and only column 2 of row 2: the region is row 1 alone."""
    bad = np.zeros((4, 6), dtype=bool)
    bad[1, 2:5] = bad[2, 2] = True
    assert kinds.region(bad) == ((1, 2), (2, 5))
    assert kinds.region(np.array(1) > 0) == ()
