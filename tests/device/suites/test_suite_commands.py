"""The commands that work on a checkout, as the documentation has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from device.cli import device
from tests.device.suites.checkouts import kernelbench

PAGE = Path(__file__).parents[3] / "docs" / "suites.md"


def test_the_documented_example_does_what_the_page_says(tmp_path: Path) -> None:
    """Its first two blocks, typed as they stand, list the task as printed there and judge the candidate correct."""
    blocks = re.findall(r"```(?:sh|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SAGEBOOK_JUDGE_KEY": str(tmp_path / "key" / "judge.key"),
    }  # fmt: skip

    def typed(text: str) -> str:
        done = subprocess.run(["bash", "-euc", text], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              check=True, timeout=300)  # fmt: skip
        return done.stdout

    assert typed(blocks[0]) == blocks[1]
    assert typed(blocks[2]).startswith("level1/1_Line: correct\n")


def test_a_listing_in_json_names_each_task_and_its_reason(tmp_path: Path) -> None:
    """What is refused by reading alone needs no process."""
    path = kernelbench(tmp_path, "level1/3_NoModel.py", "level2/9_Broken.py")
    done = CliRunner().invoke(device, ["suite", str(path), "--json"])
    assert done.exit_code == 0, done.output
    listed = json.loads(done.stdout)
    assert listed["form"] == "kernelbench"
    assert [(one["name"], one["state"]) for one in listed["tasks"]] == [
        ("level1/3_NoModel", "refused"), ("level2/9_Broken", "refused"),
    ]  # fmt: skip
    assert listed["tasks"][0]["detail"] == "there is no Model"


def test_a_task_that_is_refused_is_no_verdict(tmp_path: Path) -> None:
    """Exit code 1 and the reason; an operator and a suite together are a usage error."""
    path = kernelbench(tmp_path, "level1/3_NoModel.py")
    file = tmp_path / "new.py"
    file.write_text("class ModelNew:\n    pass\n", encoding="utf-8")
    arguments = ["evaluate", str(file), "--suite", str(path), "--task"]
    done = CliRunner().invoke(device, [*arguments, "3_NoModel"])
    assert (done.exit_code, "there is no Model" in done.output) == (1, True)
    assert CliRunner().invoke(device, [*arguments, "Nobody"]).exit_code == 1
    assert CliRunner().invoke(device, [*arguments, "3_NoModel", "--operator", "gelu"]).exit_code == 2
    assert CliRunner().invoke(device, ["evaluate", str(file)]).exit_code == 2
