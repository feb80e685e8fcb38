"""The command line: data on standard output, the rest on standard error, and an exit code for each way to end."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ledger.cli import register
from ledger.domain.policy import PRESETS
from tests.sources import ROOT

CASES = sorted((ROOT / "tests" / "cases" / "memory").glob("*.trace.jsonl"))
PROGRAM = "import typer; from ledger.cli import register; app = typer.Typer(); register(app); app()"
STATE_KEYS = {"value", "retrievals", "adoptions", "operators", "frequency", "resident", "tokens", "retired"}


class Ended:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ended]


def _app() -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)
    return app


# Built once: the runner's own `invoke` would build all commands anew for each call.
COMMAND, RUNNER = typer.main.get_command(_app()), CliRunner()


def called(*words: str, code: int = 0, stdin: bytes | str | None = None) -> Ended:
    """`sagebook …` in this process, which must end with that code."""
    with RUNNER.isolation(input=stdin) as (out, err, _):
        with pytest.raises(SystemExit) as ended:
            COMMAND.main(list(words), prog_name="sagebook")
        found = Ended(int(ended.value.code or 0), out.getvalue().decode(), err.getvalue().decode())
    assert found.code == code, found.err
    assert "Traceback" not in found.err
    return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a library: migrating it once is enough."""
    file = tmp_path_factory.mktemp("empty") / "cli.db"
    called("library", "list", "--db", f"sqlite:///{file}")
    return file


@pytest.fixture
def run(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`sagebook …` on a database of the test's own."""
    shutil.copy(empty, tmp_path / "cli.db")
    monkeypatch.setenv("SAGEBOOK_DATABASE_URL", f"sqlite:///{tmp_path}/cli.db")
    return called


def process(*words: str, stdin: bytes = b"", **environment: str) -> Ended:
    """`sagebook …` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def record(**fields: object) -> str:
    return json.dumps(fields) + "\n"


def stage(name: str, operator: str = "gelu", **fields: object) -> str:
    return record(
        **{
            "record": "stage",
            "id": name,
            "task": f"t-{name}",
            "operator": operator,
            "kind": "correctness",
            "retrieved": [],
            "adoptions": [],
            "outcome": {"correct": True},
        }
        | fields
    )


def adoption(experience: str, *, adopted: bool = True, **fields: object) -> dict[str, object]:
    return {"experience": experience, "adopted": adopted, "reason": "fits"} | fields


HOT_AND_COLD = "".join(
    [
        record(record="experience", id="hot", title="Hot"),
        record(record="experience", id="cold", title="Cold"),
        record(record="experience", id="fast", title="Fast", stages=["optimization"]),
        record(record="experience", id="other", title="Other"),
        *(stage(f"s{i}", f"op{i}", retrieved=["hot"], adoptions=[adoption("hot")]) for i in range(3)),
        record(record="rule", experience="hot", text="Pad.", tokens=2),
    ]
)


@pytest.fixture(scope="module")
def filled(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the library `lib`: resident `hot`; cold `cold`, `other` and `fast`."""
    file = tmp_path_factory.mktemp("filled") / "cli.db"
    shutil.copy(empty, file)
    called("import", "lib", "-", "--db", f"sqlite:///{file}", stdin=HOT_AND_COLD)
    return file


@pytest.fixture
def lib(run: Run, filled: Path, tmp_path: Path) -> Run:
    """`sagebook …` on a copy of it."""
    shutil.copy(filled, tmp_path / "cli.db")
    return run


# --- the handed cases ----------------------------------------------------------------------------------------------


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


# --- import: what is refused, and what stays -----------------------------------------------------------------------

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


# --- policies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_library_under_a_preset(run: Run, name: str) -> None:
    """The policy that is recorded is the preset's, field by field."""
    made = run("library", "create", "lib", "--policy", name, "--json").json
    assert made["policy_name"] == name
    assert made["policy"] == json.loads(json.dumps(PRESETS[name].to_mapping()))
    assert run("state", "lib", "--json").json["policy"] == made["policy"]


def test_a_policy_file_gives_a_subset_of_fields(run: Run, tmp_path: Path) -> None:
    """TOML and JSON alike; the rest are those of `sage`."""
    (tmp_path / "p.toml").write_text("beta = 0.5\nvalue_bounds = [-1, 1]\n")
    (tmp_path / "p.json").write_text('{"beta": 0.5, "value_bounds": [-1, 1]}')
    one = run("library", "create", "one", "--policy", str(tmp_path / "p.toml"), "--json").json
    two = run("library", "create", "two", "--policy", str(tmp_path / "p.json"), "--json").json
    assert one["policy"] == two["policy"]
    assert (one["policy_name"], one["policy"]["beta"], one["policy"]["alpha_min"]) == ("custom", 0.5, 0.05)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("p.json", '{"alfa_min": 0.1}', "did you mean 'alpha_min'"),
        ("p.toml", "beta = 2.0", "'beta' is 2.0: it must be from 0 to 1"),
        ("p.json", '{"beta": NaN}', "'beta' is nan"),
        ("p.json", "[1]", "no object"),
        ("p.json", "{", "can not be read"),
        ("p.toml", "beta = ", "can not be read"),
        ("p.json", b"\xff\xfe", "can not be read"),
        ("none.json", None, "no policy file"),
        ("folder.toml", ..., "can not be read"),
    ],
)
def test_a_policy_file_that_is_wrong(run: Run, tmp_path: Path, name: str, text: Any, says: str) -> None:
    """Exit code 2 with the field or the file, and no library."""
    path = tmp_path / name
    if text is ...:
        path.mkdir()
    elif text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for words in (("library", "create", "lib"), ("import", "lib", str(CASES[0]))):
        ended = run(*words, "--policy", str(path), code=2)
        assert says in ended.err
        assert "[policy-invalid]" in ended.err
    run("library", "show", "lib", code=3)


def test_an_unknown_preset(run: Run) -> None:
    """The presets there are stand in the message."""
    assert "presets: sage, paper" in run("library", "create", "lib", "--policy", "papre", code=2).err


def test_an_import_under_another_policy_than_the_library_s(lib: Run) -> None:
    """Refused with the fields that differ; the same policy, or none, goes on."""
    ended = lib("import", "lib", "-", "--policy", "paper", code=2, stdin="")
    assert "failure_score, value_bounds" in ended.err
    lib("import", "lib", "-", "--policy", "sage", stdin="")


# --- every command -------------------------------------------------------------------------------------------------


def test_library_commands(lib: Run) -> None:
    """Create, list and show, for a program and for a person."""
    made = lib("library", "create", "other", "--title", "Zweite Bücherei", "--json").json
    assert (made["library"], made["sequence"], made["title"]) == ("other", 1, "Zweite Bücherei")
    assert [item["library"] for item in lib("library", "list", "--json").json] == ["lib", "other"]
    assert lib("library", "list").out.splitlines()[0].split()[:2] == ["library", "policy"]
    shown = lib("library", "show", "lib", "--json").json
    assert (shown["experiences"], shown["residents"], shown["resident_tokens"], shown["scored_stages"]) == (4, 1, 2, 3)
    assert "policy.beta: 0.1" in lib("library", "show", "lib").out
    assert "exists already" in lib("library", "create", "lib", code=4).err


def test_state_now_and_then(lib: Run) -> None:
    """The state as of a sequence, a table for a person, and the shape for a program."""
    now = lib("state", "lib", "--json").json
    assert list(now) == ["library", "sequence", "policy", "experiences"]
    assert now["experiences"]["hot"] == {
        "value": pytest.approx(0.75),
        "retrievals": 3,
        "adoptions": 3,
        "operators": ["op0", "op1", "op2"],
        "frequency": 1.0,
        "resident": True,
        "tokens": 2,
        "retired": False,
    }
    assert lib("state", "lib", "--at", "2", "--json").json["experiences"]["hot"]["value"] == 0.0
    assert lib("state", "lib", "--at", "0", "--json").json["experiences"] == {}
    assert lib("state", "lib").out.splitlines()[1].split()[0] == "hot"
    assert "ends at" in lib("state", "lib", "--at", "99999", code=2).err
    lib("state", "lib", "--at", "-1", code=2)


def test_events_as_lines(lib: Run) -> None:
    """JSON lines in order, from a sequence on, at most so many; a line an event for a person."""
    lines = [json.loads(line) for line in lib("events", "lib", "--json").out.splitlines()]
    assert [e["sequence"] for e in lines] == list(range(1, len(lines) + 1))
    assert lines[0]["type"] == "library.created"
    assert {
        "library",
        "sequence",
        "type",
        "schema",
        "id",
        "time",
        "actor",
        "task",
        "stage",
        "payload",
        "previous_hash",
        "hash",
    } == set(lines[0])
    some = lib("events", "lib", "--after", "3", "--limit", "2", "--json").out.splitlines()
    assert [json.loads(line) for line in some] == lines[3:5]
    assert len(lib("events", "lib").out.splitlines()) == len(lines)
    assert lib("events", "lib", "--after", "99999", "--json").out == ""


def test_why(lib: Run) -> None:
    """As JSON and as a tree; a cold one says what stands in the way."""
    answer = lib("why", "lib", "hot", "--json").json
    assert (answer["experience"], answer["resident"]) == ("hot", True)
    told = lib("why", "lib", "hot").out
    assert told.startswith("hot: Hot\n")
    assert "hand-made verdict" in told
    assert "not above 0" in lib("why", "lib", "cold").out


def test_rederive(lib: Run) -> None:
    """Clean under its own policy; under another one what would enter and leave."""
    assert lib("rederive", "lib", "--json").json["first_difference"] is None
    other = lib("rederive", "lib", "--policy", "no-consolidation", "--json").json
    assert (other["would_leave"], other["residents"]) == (["hot"], [])
    assert "would leave: hot" in lib("rederive", "lib", "--policy", "no-consolidation").out


@pytest.mark.parametrize(
    "words",
    [
        ("library", "show", "nowhere"),
        ("state", "nowhere"),
        ("events", "nowhere"),
        ("why", "nowhere", "x"),
        ("why", "lib", "ghost"),
        ("rederive", "nowhere"),
        ("verify", "nowhere"),
    ],
)
def test_what_is_not_there(lib: Run, words: tuple[str, ...]) -> None:
    """Exit code 3, with or without --json, and nothing on standard output."""
    for extra in ((), ("--json",)):
        ended = lib(*words, *extra, code=3)
        assert ended.out == ""
        assert "there is no" in ended.err


@pytest.mark.parametrize(
    "words", [("state",), ("nonsense",), ("state", "lib", "--colour"), ("state", "lib", "--at", "x")]
)
def test_a_wrong_call_is_a_usage_error(lib: Run, words: tuple[str, ...]) -> None:
    """Exit code 2."""
    assert lib(*words, code=2).out == ""


def test_a_ledger_that_can_not_be_reached(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 6 and how to start one."""
    monkeypatch.setattr("ledger.client._RETRY_SECONDS", 0.001)
    ended = run("state", "lib", "--server", "http://127.0.0.1:9", code=6)
    assert "sagebook serve" in ended.err
    assert ended.out == ""


@pytest.mark.parametrize("value", ["abc", "99999999999999999999"])
def test_a_setting_that_is_wrong_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Exit code 2 with the variable, not a traceback."""
    monkeypatch.setenv("SAGEBOOK_PORT", value)
    assert "SAGEBOOK_PORT" in run("serve", code=2).err


def test_a_settings_file_that_is_wrong_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 2 with the file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "sagebook").mkdir()
    (tmp_path / "sagebook" / "config.toml").write_text("port = ")
    assert "config.toml" in run("library", "list", code=2).err


# --- a log that was changed ----------------------------------------------------------------------------------------


def _spoil(tmp_path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(tmp_path / "cli.db") as connection:
        assert connection.execute(statement, values).rowcount > 0
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
