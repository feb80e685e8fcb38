"""Reads a checkout of KernelBench: folders of levels with a file a task, `Model`, `get_inputs` and `get_init_inputs`.

The form is that of ScalingIntelligence/KernelBench: `level1/19_ReLU.py`; a checkout keeps its levels in the folder
`KernelBench`, which may be left out of the path.
"""

from __future__ import annotations

import re
from pathlib import Path

from device.suites.tasks import Reading, Refusal, Task, module_text, names_of

NEEDS = ("Model", "get_inputs", "get_init_inputs")
_LEVEL, _FILE = re.compile(r"level(\d+)"), re.compile(r"(\d+)_\w.*\.py")


def read(path: Path) -> Reading:
    """Read every task of the checkout; a file of that form that is no task is refused by name."""
    tasks: list[Task] = []
    refused: list[Refusal] = []
    root = next((folder for folder in (path, path / "KernelBench") if _levels(folder)), path)
    for folder in _levels(root):
        files = [file for file in folder.iterdir() if _FILE.fullmatch(file.name) and file.is_file()]
        for file in sorted(files, key=lambda file: (int(file.name.partition("_")[0]), file.name)):
            name = f"{folder.name}/{file.stem}"
            text = module_text(file)
            if isinstance(text, Refusal):
                refused.append(Refusal(name, text.reason))
            elif missing := [need for need in NEEDS if need not in names_of(text)]:
                refused.append(Refusal(name, f"there is no {', no '.join(missing)}"))
            else:
                tasks.append(Task(name, "kernelbench", int(folder.name.removeprefix("level")), text))
    return Reading(path, "kernelbench", tuple(tasks), tuple(refused))


def _levels(path: Path) -> list[Path]:
    folders = [folder for folder in path.iterdir() if _LEVEL.fullmatch(folder.name)] if path.is_dir() else []
    return sorted(folders, key=lambda folder: int(folder.name.removeprefix("level")))
