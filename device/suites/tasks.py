"""What a checkout of a public suite holds: tasks as text, and those that are refused, by name, with the reason.

Nothing of a suite is run to read it: running is `device.suites.process`, in a confined process.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from device.errors import SuiteUnreadable, UnknownMode, UnknownTask

Form = Literal["kernelbench", "npukernelbench"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: the texts of its modules, and for a suite with cases their rows."""

    name: str
    """Path inside the checkout without the ending, as `level1/19_ReLU`."""
    form: Form
    level: int
    text: str
    beside: Mapping[str, str] = field(default_factory=dict)
    """Modules that the text's functions may be found in, by name."""
    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One task that cannot be judged, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All tasks of a checkout, in the order of their names, and the refused ones."""

    path: Path
    form: Form
    tasks: tuple[Task, ...]
    refused: tuple[Refusal, ...]

    def find(self, name: str) -> Task | Refusal:
        """Return the task of that name, or with that last part of its name. Raises UnknownTask."""
        known: Sequence[Task | Refusal] = (*self.tasks, *self.refused)
        wanted = name.removesuffix(".py")
        exact = [one for one in known if one.name == wanted]
        found = exact or [one for one in known if one.name.rpartition("/")[2] == wanted]
        if len(found) == 1:
            return found[0]
        close = [one.name for one in found] or difflib.get_close_matches(wanted, [one.name for one in known], n=3)
        raise UnknownTask(name, close)


def read(path: Path, form: str | None = None) -> Reading:
    """Read a checkout. Without `form` it is told by what the folder holds.

    Raises SuiteUnreadable where it holds neither suite's tasks, and UnknownMode for a form that is not known.
    """
    from device.suites import kernelbench, npukernelbench  # noqa: PLC0415  (they need what is above)

    if form is not None and form not in get_args(Form):
        raise UnknownMode("form of a suite", form, get_args(Form))
    if not path.is_dir():
        raise SuiteUnreadable(path, "there is no such folder")
    readers = {"npukernelbench": npukernelbench.read, "kernelbench": kernelbench.read}
    for name, reader in readers.items():
        if form not in {None, name}:
            continue
        reading = reader(path)
        if reading.tasks or reading.refused:
            return reading
    wanted = " or ".join(get_args(Form)) if form is None else form
    raise SuiteUnreadable(path, f"it has no task in the form of {wanted}")


def module_text(file: Path) -> str | Refusal:
    """Return the text of a Python file, or the reason why it is none."""
    try:
        text = file.read_text(encoding="utf-8")
        ast.parse(text)
    except (OSError, UnicodeDecodeError) as error:
        return Refusal(file.name, f"{file.name} cannot be read: {error}")
    except (SyntaxError, ValueError, RecursionError) as error:
        return Refusal(file.name, f"{file.name} is no Python text: {error}")
    return text


def names_of(text: str) -> set[str]:
    """Return the names that a module gives at its top: classes, functions, imports, assignments."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found
