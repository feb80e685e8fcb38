"""Policies by the command line: presets, files, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.domain.policy import PRESETS
from tests.ledger.cli.conftest import Run


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
    for words in (("library", "create", "lib"), ("import", "lib", "-")):
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


def test_a_policy_is_changed_with_a_reason_and_residents_follow(lib: Run, tmp_path: Path) -> None:
    """`hot` is resident; without room for it, it leaves; the event says why, and the log re-derives."""
    assert lib("state", "lib", "--json").json["experiences"]["hot"]["resident"]
    folder_policy = tmp_path / "small.json"
    folder_policy.write_text('{"budget_tokens": 1}')
    changed = lib("library", "policy", "lib", "--set", str(folder_policy), "--reason", "short contexts", "--json").json
    assert (changed["policy_name"], changed["policy"]["budget_tokens"]) == ("custom", 1)
    assert not lib("state", "lib", "--json").json["experiences"]["hot"]["resident"]
    event = [json.loads(e) for e in lib("events", "lib", "--json").out.splitlines()]
    told = next(e for e in event if e["type"] == "library.policy_changed")
    assert told["payload"]["reason"] == "short contexts"
    assert lib("rederive", "lib", "--json").json["first_difference"] is None
    assert "budget_tokens: 1\n" in lib("library", "policy", "lib").out


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (("--set", "paper"), 2, "--reason"),
        (("--set", "papr", "--reason", "r"), 2, "did you mean 'paper'"),
        (("--set", "sage", "--reason", "r"), 2, "is the one that holds"),
    ],
)
def test_a_change_of_policy_that_is_none_is_refused(run: Run, given: tuple[str, ...], code: int, says: str) -> None:
    """Without a reason, of an unknown name, or to what holds already."""
    run("library", "create", "lib")
    assert says in run("library", "policy", "lib", *given, code=code).err


def test_a_policy_field_that_stands_twice_is_refused(run: Run, tmp_path: Path) -> None:
    """Else the second would win without a word."""
    (tmp_path / "p.json").write_text('{"beta": 0.5, "beta": 0.25}')
    assert (
        "the key 'beta' stands twice"
        in run("library", "create", "lib", "--policy", str(tmp_path / "p.json"), code=2).err
    )


def test_an_empty_policy_is_no_policy(run: Run) -> None:
    """A variable of a script that is not set does not mean the recorded one."""
    run("library", "create", "lib")
    assert "''" in run("rederive", "lib", "--policy", "", code=2).err
