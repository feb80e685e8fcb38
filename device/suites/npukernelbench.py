"""Reads a checkout of NPUKernelBench: `tasks/levelN/Category/Op/validation/` with `PARTS`.

The form is that of weich97/NPUKernelBench. A row of the cases becomes what its `get_inputs(row, device)` expects: cells
that are numbers or truth values as such, all others as text. Element types are written both ways there: "float" and
"float32" are one.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

from device.suites.tasks import Reading, Refusal, Task, module_text, names_of

PARTS = ("module.py", "prepare_inputs.py", "test_cases.csv")
NEEDS = ("Model", "get_inputs", "get_init_inputs")
DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "bf16": "bfloat16",
}
"""Other literals of torch's names for element types."""

_LEVEL = re.compile(r"level(\d+)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read(path: Path) -> Reading:
    """Read every task of the checkout; a folder of that form that is no task is refused by name."""
    tasks: list[Task] = []
    refused: list[Refusal] = []
    root = path / "tasks" if (path / "tasks").is_dir() else path
    for level in sorted(folder for folder in root.iterdir() if _LEVEL.fullmatch(folder.name) and folder.is_dir()):
        for folder in sorted(level.glob("*/*/validation")):
            name = folder.parent.relative_to(root).as_posix()
            one = _task(name, int(level.name.removeprefix("level")), folder)
            if isinstance(one, Task):
                tasks.append(one)
            else:
                refused.append(Refusal(name, one.reason))
    return Reading(path, "npukernelbench", tuple(tasks), tuple(refused))


def _task(name: str, level: int, folder: Path) -> Task | Refusal:
    missing = [part for part in PARTS if not (folder / part).is_file()]
    if missing:
        return Refusal(name, f"there is no {', no '.join(missing)}")
    texts = [module_text(folder / part) for part in PARTS[:2]]
    for text in texts:
        if isinstance(text, Refusal):
            return text
    module, prepare = (str(text) for text in texts)
    if absent := [need for need in NEEDS if need not in names_of(module) | names_of(prepare)]:
        return Refusal(name, f"there is no {', no '.join(absent)}")
    try:
        with (folder / PARTS[2]).open(encoding="utf-8-sig", newline="") as file:
            rows = tuple({k.strip(): cell(v) for k, v in row.items()} for row in csv.DictReader(file, delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error, AttributeError) as error:
        return Refusal(name, f"test_cases.csv cannot be read: {error}")
    if not rows:
        return Refusal(name, "test_cases.csv has no case")
    return Task(name, "npukernelbench", level, module, {"prepare_inputs": prepare}, rows)


def cell(text: str | None) -> Any:
    """Read one cell: a number, a truth value, not-a-number where it is empty, or text with plain names of dtypes."""
    plain = (text or "").strip()
    if not plain:
        return math.nan
    if plain in {"True", "False"}:
        return plain == "True"
    if _NUMBER.fullmatch(plain):
        return int(plain) if re.fullmatch(r"[+-]?\d+", plain) else float(plain)
    return DTYPES.get(plain, plain)
