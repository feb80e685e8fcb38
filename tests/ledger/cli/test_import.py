"""Traces by the command line: what is refused, by which name and with which exit code, and what stays."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.ledger.cli.conftest import Run, adoption, record, stage

REFUSED: dict[str, tuple[str, str, str]] = {
    # name: (record, the code that is named, what else the message says)
    "decision missing": (stage("x", retrieved=["cold"]), "decisions-missing", "'x'"),
    "one of two decisions missing": (
        stage("x", retrieved=["cold", "other"], adoptions=[adoption("other")]),
        "decisions-missing",
        "cold",
    ),
    "adoption of what was never offered": (stage("x", adoptions=[adoption("cold")]), "not-offered", "'cold'"),
    "retrieval of a resident": (
        stage("x", retrieved=["hot"], adoptions=[adoption("hot")]),
        "resident-retrieved",
        "'hot'",
    ),
    "retrieval of an unknown id": (
        stage("x", retrieved=["colt"], adoptions=[adoption("colt")]),
        "experience-unknown",
        "close names: cold",
    ),
    "adoption of an unknown id": (stage("x", adoptions=[adoption("ghost")]), "experience-unknown", "'ghost'"),
    "retrieval for another kind": (
        stage("x", retrieved=["fast"], adoptions=[adoption("fast")]),
        "not-applicable",
        "'fast'",
    ),
    "stage twice": (stage("s0"), "stage-exists", "'s0'"),
    "experience twice": (record(record="experience", id="cold", title="t"), "experience-exists", "'cold'"),
    "rule of an unknown id": (record(record="rule", experience="ghost", text="r", tokens=1), "experience-unknown", "'ghost'"),
    "retirement of an unknown id": (record(record="retire", experience="ghost", reason="r"), "experience-unknown", "'ghost'"),
    "wrong outcome for the kind": (stage("x", outcome={"first_ms": 1.0}), "evidence-missing", "`correct`"),
    "no outcome": (stage("x", kind="optimization", outcome={}), "evidence-missing", "`first_ms`"),
    "reason of blanks": (
        stage("x", retrieved=["cold"], adoptions=[adoption("cold", reason="  ")]),
        "invalid-input",
        "no reason",
    ),
}  # fmt: skip


def _content(folder: Path) -> list[object]:
    """Every row of every table."""
    with sqlite3.connect(folder / "cli.db") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables]  # noqa: S608 - its own names
    connection.close()
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_record_is_named_and_leaves_nothing(lib: Run, tmp_path: Path, name: str) -> None:
    """Exit code 4, the line, the reason by its name; the database holds row for row what it held, and later lines are not read."""
    before = _content(tmp_path)
    bad, code, says = REFUSED[name]
    ended = lib("import", "lib", "-", code=4, stdin="\n" + bad + record(record="experience", id="late", title="t"))
    assert ended.out == ""
    assert ended.err.startswith("sagebook: line 2: ")
    assert f"[{code}]" in ended.err
    assert says in ended.err
    assert _content(tmp_path) == before


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("{\n", "Invalid JSON"),
    "a list": ("[]\n", "line 2: "),
    "no kind": ('{"id": "x"}\n', "record"),
    "unknown kind": ('{"record": "noise"}\n', "'noise'"),
    "unknown field": (record(record="experience", id="x", title="t", colour="red"), "colour"),
    "unknown field of a stage": (stage("x", score=1.0), "score"),
    "missing field": (record(record="experience", id="x"), "title"),
    "wrong kind of stage": (stage("x", kind="tuning"), "kind"),
    "a yes that is a word": (stage("x", retrieved=["cold"], adoptions=[adoption("cold", adopted="no")]), "adopted"),  # type: ignore[arg-type]
    "an outcome that is a word": (stage("x", outcome={"correct": "false"}), "correct"),
    "no reason": (stage("x", retrieved=["cold"], adoptions=[adoption("cold", reason="")]), "reason"),
    "not a number": (stage("x", kind="optimization", outcome={"first_ms": float("nan")}), "first_ms"),
    "infinite": (stage("x", kind="optimization", outcome={"first_ms": float("inf")}), "first_ms"),
    "negative": (stage("x", kind="optimization", outcome={"first_ms": -1.0}), "first_ms"),
    "rule without tokens": (record(record="rule", experience="cold", text="r", tokens=0), "tokens"),
    "no stages": (record(record="experience", id="x", title="t", stages=[]), "stages"),
    "an id that no path holds": (record(record="experience", id="a/b", title="t"), "id"),
    "a key that stands twice": (
        '{"record": "experience", "id": "a", "title": "t", "id": "b"}\n',
        "the key 'id' stands twice",
    ),
    "binary": ("\x00\x01\n", "Invalid JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_that_is_no_record_is_named(lib: Run, name: str) -> None:
    """Exit code 2, the line and the field; nothing is stored of it, what came before stays."""
    bad, says = BROKEN[name]
    good = record(record="experience", id="before", title="t")
    ended = lib("import", "lib", "-", code=2, stdin=good + bad)
    assert ended.err.startswith("sagebook: line 2: ")
    assert says in ended.err
    assert "[trace-invalid]" in ended.err
    state = lib("state", "lib", "--json").json
    assert {"before", "hot", "cold", "fast", "other"} == set(state["experiences"])


def test_a_trace_of_bytes_that_are_no_text(lib: Run) -> None:
    """A file in another encoding is refused at its line."""
    assert (
        "line 1"
        in lib("import", "lib", "-", code=2, stdin=b'{"record": "experience", "id": "\xff", "title": "t"}\n').err
    )


def test_blank_lines_and_windows_line_ends_are_read_over(run: Run) -> None:
    """Neither counts as a record."""
    text = "\r\n" + record(record="experience", id="a", title="t").replace("\n", "\r\n") + "\n  \n"
    assert run("import", "lib", "-", "--json", stdin=text).json == {"records": 1, "events": 1, "sequence": 2}


def test_an_empty_trace_creates_the_library(run: Run) -> None:
    """Nothing to import is not a failure."""
    assert run("import", "lib", "-", "--json", stdin="").json == {"records": 0, "events": 0, "sequence": 1}


def test_a_trace_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """Exit code 3, before a library is made; a folder is no trace."""
    assert "no trace" in run("import", "lib", str(tmp_path / "none.jsonl"), code=3).err
    run("library", "show", "lib", code=3)
    assert "can not be read" in run("import", "lib", str(tmp_path), code=2).err


def test_an_adoption_counts_once_and_a_later_no_does_not_undo_it(lib: Run) -> None:
    """Twice retrieved, decided yes then no: one retrieval, one adoption; V = 1/2."""
    text = stage("x", retrieved=["cold", "cold"], adoptions=[adoption("cold"), adoption("cold", adopted=False)])
    lib("import", "lib", "-", stdin=text)
    item = lib("state", "lib", "--json").json["experiences"]["cold"]
    assert (item["retrievals"], item["adoptions"], item["value"]) == (1, 1, 0.5)
