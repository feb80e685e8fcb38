"""Texts of the candidates and controls: what they share is written out in each, as a candidate is one piece of text."""

from __future__ import annotations

from pathlib import Path

from device import operators
from device.operators.base import Operator
from tests.cheats.tasks import TASKS

HERE = Path(__file__).parent
_SHARED = '#include "../honest.h"\n'


def text(path: Path) -> str:
    """Read a candidate; the shared header stands in the place of its include."""
    shared = HERE.joinpath("honest.h").read_text(encoding="utf-8").replace("#pragma once\n", "")
    return path.read_text(encoding="utf-8").replace(_SHARED, shared)


def operator(name: str) -> Operator:
    """Return an operator of the suite or a task of these tests."""
    return TASKS[name] if name in TASKS else operators.get(name)


def language(file: str) -> str:
    """Name the language by the file's ending."""
    return {"cpp": "cpp", "py": "python"}[file.rpartition(".")[2]]
