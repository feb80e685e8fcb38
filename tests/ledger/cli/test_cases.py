"""The handed cases through the command line, and where their data lies."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.cli.conftest import Run, called, process
from tests.sources import ROOT

CASES = sorted((ROOT / "tests" / "cases" / "memory").glob("*.trace.jsonl"))
STATE_KEYS = {"value", "retrievals", "adoptions", "operators", "frequency", "resident", "tokens", "retired"}


def _ends_as_expected(state: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(state) == ["library", "sequence", "policy", "experiences"]
    assert set(state["experiences"]) == set(expected["state"])
    for name, want in expected["state"].items():
        got = state["experiences"][name]
        assert set(got) == STATE_KEYS
        for key in STATE_KEYS:
            wanted = pytest.approx(want[key], abs=1e-9, rel=0) if key in {"value", "frequency"} else want[key]
            assert got[key] == wanted, (name, key)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name.split(".")[0])
def test_an_imported_case_ends_in_its_state(run: Run, tmp_path: Path, case: Path) -> None:
    """Trace and policy file in, state out, to 1e-9; the log verifies and re-derives clean."""
    expected = json.loads(case.with_name(case.name.replace(".trace.jsonl", ".expected.json")).read_text())
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(expected["policy"]))
    done = run("import", "case", str(case), "--policy", str(policy), "--json").json
    assert done["records"] == len(case.read_text().splitlines())
    state = run("state", "case", "--json").json
    assert state["sequence"] == done["sequence"] == done["events"] + 1
    assert {k: state["policy"][k] for k in expected["policy"]} == expected["policy"]
    _ends_as_expected(state, expected)
    assert run("rederive", "case").out.startswith("clean")


@pytest.mark.parametrize("case", [CASES[0], CASES[-1]], ids=lambda path: path.name.split(".")[0])
def test_the_same_through_processes_of_their_own(tmp_path: Path, case: Path) -> None:
    """Import and state in separate processes, the database by option, the trace by standard input, the policy as TOML."""
    expected = json.loads(case.with_name(case.name.replace(".trace.jsonl", ".expected.json")).read_text())
    policy = tmp_path / "policy.toml"
    policy.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in expected["policy"].items()))
    db = f"sqlite:///{tmp_path}/of/its/own.db"
    done = process("import", "case", "-", "--policy", str(policy), "--db", db, stdin=case.read_bytes())
    assert (done.code, done.out) == (0, ""), done.err
    state = process("state", "case", "--db", db, "--json")
    _ends_as_expected(state.json, expected)


# --- where the data lies -------------------------------------------------------------------------------------------


def test_the_database_is_the_option_s_then_the_variable_s_then_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--db` wins over SAGEBOOK_DATABASE_URL, and that over the data folder of the user; each holds its own library."""
    data = tmp_path / "data"
    variable = {"SAGEBOOK_DATABASE_URL": f"sqlite:///{tmp_path}/variable.db"}
    home = {"XDG_DATA_HOME": str(data)}
    process("library", "create", "one", "--db", f"sqlite:///{tmp_path}/option.db", **variable, **home)
    monkeypatch.setenv("SAGEBOOK_DATABASE_URL", variable["SAGEBOOK_DATABASE_URL"])
    called("library", "create", "two")
    monkeypatch.delenv("SAGEBOOK_DATABASE_URL")
    monkeypatch.setenv("XDG_DATA_HOME", home["XDG_DATA_HOME"])
    called("library", "create", "three")
    assert (data / "sagebook" / "ledger.db").is_file()
    for file, name in (
        (tmp_path / "option.db", "one"),
        (tmp_path / "variable.db", "two"),
        (data / "sagebook/ledger.db", "three"),
    ):
        with sqlite3.connect(file) as connection:
            assert connection.execute("SELECT name FROM libraries").fetchall() == [(name,)]
        connection.close()


@pytest.mark.parametrize(
    ("url", "code"),
    [("nonsense", 2), ("mysql://host/db", 2), ("sqlite://", 2), ("postgresql://user:secret@127.0.0.1:1/none", 1)],
)
def test_a_database_that_can_not_be_used(run: Run, url: str, code: int) -> None:
    """A wrong URL is a usage error; a server that is not there a failure; a password is shown by neither."""
    for words in (("library", "list"), ("db", "status"), ("db", "upgrade")):
        ended = run(*words, "--db", url, code=code)
        assert ended.out == ""
        assert ended.err.startswith("sagebook: ")
        assert "secret" not in ended.err


def test_a_file_of_another_program_is_left_alone(run: Run, tmp_path: Path) -> None:
    """A SQLite file with foreign tables is refused, not filled with ours."""
    file = tmp_path / "foreign.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    assert "of another program" in run("library", "list", "--db", f"sqlite:///{file}", code=1).err
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    connection.close()
