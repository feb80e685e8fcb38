"""Reports are of the form that their schema describes, whatever the outcome."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest

from device import Limits, report_form
from device.compare import CLASSES, compare, expect, first_tile
from tests.device.conftest import Judge
from tests.device.small import kernel

SHORT = Limits(call_seconds=0.5, total_seconds=20.0)

FORGETFUL = """
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) b[i * m + j] = i * m + j + 1 < n * m ? 2.0f * a[i * s + j * t] : 7.0f;
    return 0;
"""

OUTCOMES = {
    "correct": kernel(),
    "compile_error": "int sagebook_kernel( {",
    "wrong": kernel(after=FORGETFUL),
    "crash": kernel("*(volatile int *)nullptr = 1;\n"),
    "hang": kernel("for (volatile int stay = 1; stay;) {}\n"),
    "refused": kernel("system(nullptr);\n"),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, dict[str, Any]]:
    return {}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_report_is_of_its_form(outcome: str, judge: Judge, reports: dict[str, dict[str, Any]]) -> None:
    """Every field is there and none is unknown."""
    report = judge(OUTCOMES[outcome], measure=outcome == "correct", limits=SHORT)
    assert report.data["outcome"] == outcome, report.data["summary"]
    read = report_form.read(report.data)
    assert json.loads(msgspec.json.encode(read)) == json.loads(report.report)
    reports[outcome] = report.data


def test_a_report_with_another_form_is_refused(judge: Judge) -> None:
    """Any field taken away, or one more anywhere, and the place is named."""
    data = judge(OUTCOMES["wrong"]).data
    places = list(_places(data, ()))
    assert len(places) > 30
    for path in places:
        for change in ("gone", "more"):
            other = copy.deepcopy(data)
            part = other
            for key in path[:-1]:
                part = part[key]
            if change == "gone":
                del part[path[-1]]
            else:
                part["surprise"] = 1
            with pytest.raises(msgspec.ValidationError, match=str(path[-1]) if change == "gone" else "surprise"):
                report_form.read(other)


def _places(part: Any, path: tuple[str | int, ...]) -> Any:
    if isinstance(part, dict):
        for key, value in part.items():
            yield (*path, key)
            yield from _places(value, (*path, key))
    elif isinstance(part, list) and part:
        yield from _places(part[0], (*path, 0))


def test_the_schema_that_is_kept_is_that_of_the_types() -> None:
    assert report_form.SCHEMA.read_text(encoding="utf-8") == report_form.schema_text(), (
        "write it anew: python -c 'from device import report_form as f; f.SCHEMA.write_text(f.schema_text())'"
    )


def test_the_answer_names_the_first_wrong_tile_and_sorts_the_errors(judge: Judge) -> None:
    """A kernel that forgets its tail is wrong at the end of an axis."""
    failure = judge(OUTCOMES["wrong"]).data["verify"]["failure"]
    last = failure["tile"]["stop"]
    assert failure["tile"]["wrong"] == 1
    assert failure["tile"]["start"] == [at - 1 for at in last] == failure["index"]
    assert failure["tile"]["tail"][-1] == len(last) - 1
    assert sum(failure["errors"]["elements"]) == math.prod(last)
    assert failure["errors"]["elements"][-2:] == [0, 1]
    assert len(failure["errors"]["upper"]) == len(failure["errors"]["elements"]) == len(CLASSES)


@pytest.mark.parametrize(
    ("shape", "wrong", "start", "stop", "tail"),
    [
        ((4, 8), (slice(1, 3), slice(2, 6)), (1, 2), (3, 6), ()),
        ((4, 8), (slice(None), slice(7, 8)), (0, 7), (4, 8), (1,)),
        ((4, 8), (slice(None), slice(None)), (0, 0), (4, 8), ()),
        ((10,), (slice(8, 10),), (8,), (10,), (0,)),
        ((2, 3, 5), (slice(1, 2), slice(0, 3), slice(4, 5)), (1, 0, 4), (2, 3, 5), (0, 2)),
        ((), (), (), (), ()),
    ],
)
def test_a_tile_is_a_box_of_wrong_elements(
    shape: tuple[int, ...],
    wrong: tuple[slice, ...],
    start: tuple[int, ...],
    stop: tuple[int, ...],
    tail: tuple[int, ...],
) -> None:
    good = np.ones(shape, dtype=bool)
    good[wrong] = False
    found = first_tile(good)
    assert (found.start, found.stop, found.tail) == (start, stop, tail)
    assert found.wrong == int((~good).sum())


def test_a_tile_may_hold_elements_that_are_right_by_chance() -> None:
    """Two apart areas are two tiles: the first is named."""
    good = np.ones((16, 16), dtype=bool)
    good[4:8, 4:8] = False
    good[5, 6] = True
    good[12:, 12:] = False
    found = first_tile(good)
    assert (found.start, found.stop, found.wrong) == ((4, 4), (8, 8), 15)


def test_errors_are_counted_by_what_is_allowed() -> None:
    reference = np.full(8, 1.0)
    expected = expect(reference, "float32", 1, "hardened")
    assert expected.tolerance is not None
    shares = np.array([0.0, 0.01, 0.05, 0.2, 0.4, 0.9, 3.0, 1e6])
    got = (reference + shares * expected.tolerance).astype(np.float64)
    assert compare(expected, got).errors == (2, 1, 1, 1, 1, 1, 0, 1)
