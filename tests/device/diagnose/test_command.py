"""The public face, the JSON form and `sagebook device diagnose`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

import device as house
from device import JudgeKey, cli, report_form
from device.diagnose import form
from device.diagnose.candidate import TOOLS
from device.errors import NotDiagnosable, UnknownOperator
from tests.device.conftest import Judge
from tests.device.diagnose.kernels import WRONG, softmax
from tests.device.small import DOUBLE, kernel


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    cli.register(made)
    return made


def test_a_diagnosis_is_of_the_form_that_its_schema_describes(key: JudgeKey) -> None:
    """A real one, through JSON and back, is the same; the schema that is kept is that of the types."""
    found = house.diagnose_candidate(WRONG["heap-buffer-overflow"], DOUBLE, seed=4, key=key)
    text = json.dumps(form.document(found), allow_nan=False)
    data = json.loads(text)
    assert data["format"] == "sagebook.diagnosis/1"
    assert form.read(data) == found
    assert form.document(form.read(data)) == form.document(found)
    assert set(data) == set(report_form.schema()["$defs"]["Diagnosis"]["properties"])


@pytest.mark.parametrize(
    "change", [{"format": "sagebook.diagnosis/2"}, {"seed": "4"}, {"findings": [{"tool": "guess"}]}, {"dump": {}}]
)
def test_what_is_not_of_the_form_is_refused(change: dict[str, object], key: JudgeKey) -> None:
    """Another version, a word for a number, a tool that there is not, a part without its fields."""
    data = form.document(house.diagnose_candidate(kernel(), DOUBLE, tools=("dump",), seed=4, key=key))
    with pytest.raises(msgspec.ValidationError):
        form.read({**data, **change})


def test_not_a_number_is_a_word(key: JudgeKey) -> None:
    """JSON has no NaN."""
    found = house.diagnose_candidate(
        kernel(after="    b[0] = 0.0f / (n - n);\n    return 0;"), DOUBLE, tools=("dump",), seed=4, key=key
    )
    assert found.dump is not None
    assert found.dump.compared[-1].got == "NaN"
    json.dumps(form.document(found), allow_nan=False)


def test_it_explains_the_problems_of_the_evaluation(judge: Judge, key: JudgeKey) -> None:
    """Under the same seed and key: the one element that the loop leaves out is the last, here and in the verdict."""
    source = kernel(
        after="    for (int64_t i = 0; i + 1 < n * m; ++i) b[i] = 2.0f * a[i / m * s + i % m * t];\n    return 0;"
    )
    failure = judge(source, seed=21).data["verify"]["failure"]
    found = house.diagnose_candidate(source, DOUBLE, tools=("dump",), seed=21, key=key)
    assert found.dump is not None
    (output,) = found.dump.compared
    assert output.how == "unwritten"
    assert failure["message"].endswith("1 of 12 elements are wrong")
    assert output.shape is not None
    assert (output.wrong, output.index) == (1, tuple(size - 1 for size in output.shape))
    assert failure["index"] == [2, 3]


def test_what_cannot_be_diagnosed_is_named(key: JudgeKey) -> None:
    """A language, a device and a tool that there is no diagnosis for; an operator that there is not."""
    for options in ({"language": "python"}, {"device": "null"}, {"tools": ("guess",)}):
        with pytest.raises(NotDiagnosable, match="no diagnosis for the"):
            house.diagnose_candidate(kernel(), DOUBLE, seed=1, key=key, **options)  # type: ignore[arg-type]
    with pytest.raises(UnknownOperator):
        house.diagnose_candidate(kernel(), "sofmax", seed=1, key=key)


def test_a_person_reads_what_is_wrong_first(app: typer.Typer, tmp_path: Path) -> None:
    """The finding with its advice on top, then each stage; exit code 7."""
    file = tmp_path / "kernel.cpp"
    file.write_text(softmax(terms="n / 16 * 16"))
    result = CliRunner().invoke(app, ["device", "diagnose", str(file), "--operator", "softmax", "--tool", "dump"])
    assert result.exit_code == 7, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "softmax: 1 found"
    assert lines[1].startswith("  dump      ")
    assert "sum goes wrong first, after maximum, exponentials came out right" in lines[1]
    # Which case shows it first depends on hidden shapes, and so on the judge's key.
    assert any(line.startswith("  right          exponentials [") for line in lines)


def test_a_program_reads_one_document(app: typer.Typer) -> None:
    """From standard input; nothing is wrong: exit code 0."""
    result = CliRunner().invoke(
        app, ["device", "diagnose", "-", "--operator", "softmax", "--tool", "sanitize", "--json"], input=softmax()
    )
    assert result.exit_code == 0, result.output
    found = form.read(json.loads(result.stdout))
    assert (found.operator, found.findings, found.dump) == ("softmax", (), None)
    assert found.sanitize is not None
    assert [run.outcome for run in found.sanitize.runs] == ["finished", "finished"]


def test_what_stands_in_the_way_goes_to_standard_error(app: typer.Typer) -> None:
    """Exit code 1 for a tool that there is not; 7 for a text that does not build."""
    wrong = CliRunner().invoke(app, ["device", "diagnose", "-", "--operator", "add", "--tool", "guess"], input="x")
    assert wrong.exit_code == 1
    assert f"known: {', '.join(TOOLS)}" in wrong.stderr
    assert wrong.stdout == ""
    broken = CliRunner().invoke(app, ["device", "diagnose", "-", "--operator", "add", "--tool", "dump"], input="x")
    assert broken.exit_code == 7
    assert "the diagnosis build failed: kernel.cpp:1:1: error" in broken.stdout
