"""Every reading command, for a person and for a program, and the exit code for each way to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ledger.cli.conftest import Run


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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("library", "create", ""), "library"),
        (("library", "create", "a/b"), "library"),
        (("library", "create", "n" * 300), "library"),
        (("invalidate", "lib", "stage:s", "--reason", ""), "reason"),
        (("reinstate", "lib", "stage:s", "--reason", ""), "reason"),
        (("conflict", "record", "lib", "hot", "cold", "--reason", ""), "reason"),
        (("supersede", "lib", "hot", "--by", "cold", "--reason", ""), "reason"),
        (("supersede", "lib", "hot", "--by", "cold", "--reason", "  "), "reason"),
        (("why", "lib", "a/b"), "no experience can be named 'a/b'"),
        (("why-not", "lib", ""), "no experience can be named ''"),
        (("state", ""), "no library can be named ''"),
        (("export", "..", "--trace"), "no library can be named '..'"),
    ],
)
def test_what_does_not_fit_a_request_is_named(lib: Run, words: tuple[str, ...], named: str) -> None:
    """Exit code 2 and the field, never a traceback; nothing is stored."""
    before = lib("library", "show", "lib", "--json").json["sequence"]
    result = lib(*words, code=2)
    assert f"{named}: " in result.err
    assert "Traceback" not in result.err
    assert lib("library", "show", "lib", "--json").json["sequence"] == before


def test_the_state_as_of_a_time(lib: Run) -> None:
    """A time before all is the empty library's; one after all is now's; what is neither is named."""
    now = lib("state", "lib", "--json").json
    assert lib("state", "lib", "--at", "2999-01-01T00:00:00Z", "--json").json == now
    assert lib("state", "lib", "--at", "2000-01-01T00:00:00Z", "--json").json["sequence"] == 0
    assert lib("state", "lib", "--at", "3", "--json").json["sequence"] == 3
    for word in ("yesterday", "\N{SUPERSCRIPT TWO}", "9" * 5000, "-1"):
        assert "neither a sequence nor a time" in lib("state", "lib", "--at", word, code=2).err
