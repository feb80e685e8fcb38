"""`sagebook device operators`: suites, one operator in full, and their check."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from device.cli import FAILED, register
from device.operators import names


def run(*words: str):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["device", "operators", *words])


def test_the_starter_suite_is_listed_unless_another_is_asked_for() -> None:
    """One line an operator, names as they are written to ask for them."""
    assert [line.split()[0] for line in run().stdout.splitlines()] == list(names())
    fused = run("--suite", "fused").stdout.splitlines()
    assert [line.split()[0] for line in fused] == list(names("fused"))


def test_one_operator_is_shown_in_full() -> None:
    """Conditions, traps, small and full cases, in text and in JSON."""
    shown = run("Mla").stdout
    for words in ("level 3", "Lengths are at least 1", "full-5:", "with an expert kernel", "distinct in [0, 12)"):
        assert words in shown
    (record,) = json.loads(run("Icamax", "--json").stdout)["operators"]
    assert record["attributes"] == ["n", "incx"]
    assert record["full_cases"][2] == "full-2-c64: complex64[50], n=25, incx=1"


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    """An unknown suite or operator ends with a message, not with a trace."""
    result = run("--suite", "level9")
    assert result.exit_code == FAILED
    assert "known suites: starter" in result.stderr
    assert "close names: Mla" in run("Mlaa").stderr


def test_an_operator_is_checked_against_itself() -> None:
    """A sound operator is said to be so."""
    pytest.importorskip("torch")
    result = run("Eye", "--check")
    assert (result.exit_code, result.stdout) == (0, "Eye: sound\n")
