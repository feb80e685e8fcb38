"""Every task of a checkout loads, or is refused by name with the reason."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from device.errors import SuiteUnreadable, UnknownMode, UnknownTask
from device.suites.listing import look
from device.suites.npukernelbench import cell
from device.suites.tasks import Refusal, read
from device.types import Limits
from tests.device.suites.checkouts import KERNELBENCH, kernelbench, npukernelbench

LIMITS = Limits(call_seconds=20.0, total_seconds=120.0, memory=16 << 30)

WHY = {
    "level1/3_NoModel": "there is no Model",
    "level1/4_Imports": "No module named 'a_module_that_nobody_has'",
    "level1/5_Text": "forward gives a str, not a tensor",
    "level2/6_Constant": "zeros or a constant would pass",
    "level2/7_Deaf": "does not depend on them",
    "level2/8_Copy": "a copy of an input would pass",
    "level2/9_Broken": "is no Python text",
    "level2/10_Hangs": "did not answer in time",
}


def test_every_kernelbench_task_loads_or_is_refused_by_name(tmp_path: Path) -> None:
    """Two of ten tasks can be judged; each of the other eight says what stands in the way, and the next still loads."""
    seen = {one.name: one for one in look(read(kernelbench(tmp_path)), LIMITS)}
    assert list(seen) == [name.removesuffix(".py") for name in KERNELBENCH]
    assert {name for name, one in seen.items() if one.state == "loads"} == {"level1/1_Line", "level1/2_Twice"}
    assert {name: WHY[name] for name in WHY if WHY[name] not in seen[name].detail} == {}


def test_every_npukernelbench_task_is_expressed_or_refused_by_name(tmp_path: Path) -> None:
    """A task with two cases becomes an operator; no cases, a text that differs and ordered numbers are named."""
    seen = {one.name.rpartition("/")[2]: one for one in look(read(npukernelbench(tmp_path)), LIMITS)}
    assert (seen["Scaled"].state, seen["Scaled"].detail) == ("loads", "2 of 2 cases: cpp, python")
    assert (seen["NoCases"].state, seen["NoCases"].detail) == ("refused", "there is no test_cases.csv")
    assert seen["Offsets"].state == "refused"


@pytest.mark.parametrize(
    ("text", "value"),
    [("float", "float32"), ("float32", "float32"), ("[4, 3]", "[4, 3]"), ("3", 3), ("1e-6", 1e-6), ("True", True)],
)
def test_a_cell_is_a_number_a_truth_value_or_text(text: str, value: object) -> None:
    """Both literals of float32 are one; shapes stay text, as the suite's own functions read them."""
    assert cell(text) == value
    assert type(cell(text)) is type(value)


def test_an_empty_cell_is_not_a_number() -> None:
    """As the suite's own reader of tables has it."""
    assert math.isnan(cell(""))


def test_the_form_is_told_by_the_folders(tmp_path: Path) -> None:
    """Each checkout is read in its own form; a wrong path and a wrong form are named."""
    assert read(kernelbench(tmp_path / "a")).form == "kernelbench"
    assert read(npukernelbench(tmp_path / "b")).form == "npukernelbench"
    (tmp_path / "c").mkdir()
    with pytest.raises(SuiteUnreadable, match="no task in the form of"):
        read(tmp_path / "c")
    with pytest.raises(SuiteUnreadable, match="no such folder"):
        read(tmp_path / "d")
    with pytest.raises(UnknownMode, match="other"):
        read(tmp_path / "a", "other")


def test_a_task_is_found_by_the_last_part_of_its_name(tmp_path: Path) -> None:
    """With or without ending; a name that is not there gets close ones."""
    reading = read(kernelbench(tmp_path))
    assert reading.find("1_Line").name == "level1/1_Line"
    assert reading.find("level1/1_Line.py").name == "level1/1_Line"
    assert isinstance(reading.find("9_Broken"), Refusal)
    with pytest.raises(UnknownTask, match="level1/1_Line"):
        reading.find("level1/1_Lime")
