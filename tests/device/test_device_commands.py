"""`sagebook device …`: what a person and a program read, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from device import cli, doctor, verify_report

ADD = """#include "sagebook_kernel.h"
extern "C" int sagebook_kernel(const sb_tensor *, int64_t, sb_tensor *, int64_t, const double *, int64_t) { return 0; }
"""


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    cli.register(made)
    return made


def test_the_doctor_says_what_is_there_and_how_to_get_the_rest(app: typer.Typer) -> None:
    """This machine can judge, so the exit code is 0; what an NPU needs is lacking, each with its command."""
    result = CliRunner().invoke(app, ["device", "doctor", "--json"])
    assert result.exit_code == 0, result.output
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert {"processor", "g++", "torch", "sandbox", "cache folder", "torch_npu", "CANN", "npu-smi"} <= set(findings)
    assert all(findings[name]["have"] for name in ("processor", "g++", "torch", "sandbox", "cache folder"))
    assert "compiles and runs; in force: " in findings["sandbox"]["detail"]
    assert all(finding["get"] or finding["detail"] for finding in findings.values() if not finding["have"])
    assert "sagebook[npu]" in findings["torch_npu"]["get"]
    text = CliRunner().invoke(app, ["device", "doctor"]).stdout
    assert "ok    g++" in text
    assert "get it: pip install 'sagebook[npu]'" in text


def test_the_doctor_names_a_missing_compiler(monkeypatch: pytest.MonkeyPatch, app: typer.Typer) -> None:
    """Nothing is judged without one: exit code 1, and the one command that gets it."""
    monkeypatch.setenv("SAGEBOOK_CXX", "no-such-compiler")
    result = CliRunner().invoke(app, ["device", "doctor"])
    assert result.exit_code == 1
    assert "apt-get install g++" in result.stdout
    lacking = [finding.name for finding in doctor.examine() if not finding.have and finding.needed_by == "cpu"]
    assert lacking == ["g++", "sandbox"]


def test_operators_are_listed(app: typer.Typer) -> None:
    """By name, one a line, or with all their cases."""
    listed = json.loads(CliRunner().invoke(app, ["device", "operators", "--json"]).stdout)["operators"]
    assert {"softmax", "matmul", "gelu"} <= {entry["name"] for entry in listed}
    assert all(entry["cases"] for entry in listed)
    assert "softmax" in CliRunner().invoke(app, ["device", "operators"]).stdout


def test_a_wrong_candidate_exits_with_7_and_names_the_element(app: typer.Typer, tmp_path: Path) -> None:
    """The first bad element with its index, what was expected, what was got."""
    file = tmp_path / "kernel.cpp"
    file.write_text(ADD)
    result = CliRunner().invoke(app, ["device", "evaluate", str(file), "--operator", "add", "--seed", "3"])
    assert result.exit_code == 7, result.output
    assert "add: wrong" in result.stdout
    assert "first bad [0" in result.stdout
    assert "expected" in result.stdout


def test_a_report_is_printed_whole_for_programs(app: typer.Typer) -> None:
    """From standard input; the text and signature printed verify; standard output holds nothing else."""
    result = CliRunner().invoke(app, ["device", "evaluate", "-", "--operator", "add", "--json"], input="oops")
    assert result.exit_code == 7
    printed = json.loads(result.stdout)
    assert printed["report"] == verify_report(printed["text"], printed["signature"], printed["judge_key"])
    assert printed["report"]["outcome"] == "compile_error"


def test_a_right_candidate_exits_with_0(app: typer.Typer, tmp_path: Path) -> None:
    """The expert kernel of an operator, not measured."""
    from device import operators

    file = tmp_path / "kernel.cpp"
    file.write_text(operators.get("rms_norm").expert or "")
    arguments = ["device", "evaluate", str(file), "--operator", "rms_norm", "--no-measure"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "rms_norm: correct" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-file.cpp", "--operator", "add"], "no-such-file.cpp"),
        (["-", "--operator", "ad"], "no operator is named 'ad'; close names: add"),
        (["-", "--operator", "add", "--device", "npu"], "the npu device cannot be used here"),
        (["-", "--operator", "add", "--mode", "gentle"], "no mode is named 'gentle'"),
    ],
)
def test_what_cannot_be_judged_exits_with_1(app: typer.Typer, arguments: list[str], words: str) -> None:
    """The reason is on standard error, standard output stays empty."""
    result = CliRunner().invoke(app, ["device", "evaluate", *arguments], input=ADD)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stdout == ""
