"""Experiences by the command line: recorded, listed by what is asked, amended, retired, retrieved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ledger.cli.conftest import Run


@pytest.fixture
def team(run: Run, tmp_path: Path) -> Run:
    """Library `team` with `tail` (reductions in half precision on 910B under 8.x) and `any`."""
    run("library", "create", "team")
    (tmp_path / "body.md").write_text("Pad the tail block of DataCopyPad 尾块")
    said = ("--title", "Pad the tail", "--body", str(tmp_path / "body.md"))
    limits = (
        "--family",
        "reduction",
        "--dtype",
        "float16",
        "--chip",
        "910B",
        "--toolkit",
        ">=8,<9",
        "--shape",
        "rows=2..64",
    )
    run("experience", "record", "team", "tail", *said, *limits)
    run("experience", "record", "team", "any", "--title", "Anything", "--body", "-", stdin="of any kind")
    return run


def names(found: Any) -> list[str]:
    return [item["experience"] for item in found.json]


def test_what_is_recorded_is_shown(team: Run) -> None:
    """Text, conditions and where it came from; for a person as well."""
    found = team("experience", "show", "team", "tail", "--json").json
    assert found["body"] == "Pad the tail block of DataCopyPad 尾块"
    assert found["conditions"]["shapes"] == [{"size": "rows", "least": 2, "most": 64}]
    assert found["source"]["kind"] == "person"
    told = team("experience", "show", "team", "tail").out
    assert "DataCopyPad 尾块" in told
    assert "if toolkit: >=8,<9" in told


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((), ["tail", "any"]),
        (("--family", "Reduction", "--dtype", "fp16"), ["tail", "any"]),
        (("--family", "matmul"), ["any"]),
        (("--chip", "310P"), ["any"]),
        (("--toolkit", "9.0"), ["any"]),
        (("--resident",), []),
        (("--live", "--fresh", "--no-conflict", "--not-superseded"), ["tail", "any"]),
    ],
)
def test_listed_by_what_is_asked(team: Run, asked: tuple[str, ...], found: list[str]) -> None:
    """Conditions hold as in a retrieval; facts are as they stand."""
    assert names(team("experience", "list", "team", *asked, "--json")) == found


def test_conflicts_supersession_and_retirement_are_filters(team: Run, tmp_path: Path) -> None:
    """Each shows those that it names, and its opposite the rest."""
    for name in ("new", "old"):
        team("experience", "record", "team", name, "--title", "t", "--body", "-", stdin="b")
    team("conflict", "record", "team", "tail", "any", "--reason", "opposite")
    team("supersede", "team", "old", "--by", "new", "--reason", "newer")
    team("experience", "retire", "team", "any", "--reason", "wrong")
    assert names(team("experience", "list", "team", "--conflict", "--json")) == ["tail", "any"]
    assert names(team("experience", "list", "team", "--superseded", "--json")) == ["old"]
    assert names(team("experience", "list", "team", "--retired", "--json")) == ["any", "old"]
    assert "superseded by new" in team("experience", "list", "team").out


def test_conditions_are_amended_with_a_reason(team: Run) -> None:
    """The text stays; all conditions are those that are given, or none; what is wrong is refused by its field."""
    team("experience", "amend", "team", "tail", "--dtype", "bfloat16", "--reason", "measured on bf16 only")
    found = team("experience", "show", "team", "tail", "--json").json
    assert (found["conditions"]["dtypes"], found["conditions"]["families"]) == (["bfloat16"], [])
    assert found["body"].startswith("Pad the tail")
    assert names(team("experience", "list", "team", "--dtype", "float16", "--json")) == ["any"]
    assert "other conditions" in team("why", "team", "tail").out
    ended = team("experience", "amend", "team", "tail", "--dtype", "flaot32", "--reason", "r", code=2)
    assert "did you mean 'float32'" in ended.err
    assert "[condition-invalid]" in ended.err
    team("experience", "amend", "team", "tail", "--unconditional", "--reason", "holds everywhere")
    assert names(team("experience", "list", "team", "--family", "matmul", "--json")) == ["tail", "any"]


@pytest.mark.parametrize("shape", ["rows", "rows=..", "rows=9..3", "=1..2", "rows=-1..2"])
def test_a_shape_that_bounds_nothing_is_refused(team: Run, shape: str) -> None:
    """By its name and with the form to write."""
    words = ("experience", "record", "team", "x", "--title", "t", "--body", "-", "--shape", shape)
    assert "shape" in team(*words, code=2, stdin="b").err


def test_retrieved_in_an_open_stage(lib: Run) -> None:
    """A stage that is not open is named; the query that nothing answers answers with nothing."""
    assert "'ghost'" in lib("retrieve", "lib", "ghost", "tail", code=3).err
    assert "blank" in lib("retrieve", "lib", "s0", " ", code=2).err


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--dtype", "float17", "did you mean 'float16'"), ("--toolkit", "zzz", "no version")],
)
def test_a_filter_that_nothing_can_be_held_to_is_refused(team: Run, option: str, value: str, says: str) -> None:
    """An empty list would say that there are none."""
    assert says in team("experience", "list", "team", option, value, code=2).err
