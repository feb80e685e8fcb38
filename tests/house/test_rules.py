"""House rules that ruff does not know, each with its list of exceptions and their reasons."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.sources import HOUSES, ROOT, module_name, python_files, relative, tracked, tree

MAX_LINES = 400
# A longer file is a question whether it holds two subjects. These were asked.
LONG_FILES = {
    "ledger/domain/events.py": "every fact, one sentence each, is read in one place",
    "ledger/errors.py": "one class for each thing that can happen: declarations that are looked up, not read through",
    "ledger/wire.py": "the forms of the API: declarations only, and one vocabulary for its readers",
}

# Only what speaks to a person in a terminal prints; everything else logs or returns.
MAY_PRINT = re.compile(r"(^|/)(cli|command|progress|report|__main__)(_\w+)?\.py$|/cli/")

# Boundaries: where a failure of anything below becomes an answer or a log line.
MAY_CATCH_BROADLY: dict[str, str] = {
    "ledger/store/walk.py": "whatever the reading thread meets is raised again in the thread that asked",
    "device/suites/child.py": "whatever a suite's module raises in its process is the answer to the judge",
}

# Ways out of a control flow are no errors: who starts the flow catches them.
WAYS_OUT = {
    "device.diagnose.clock.Stopped": "carries what a kernel did instead of returning up to the profile",
    "device.timed.Refused": "carries the verdict of a timed call up to the measurement",
    "device.suites.child.Refused": "carries a refusal up to the answer; its process imports nothing of ours",
    "device.suites.process.Said": "carries what a suite's module did up to the verdict on it, or on its task",
}

BINARY = {".png", ".db", ".gz", ".zip", ".so", ".npy", ".npz"}


def _text_files() -> list[tuple[str, str]]:
    return [(relative(p), p.read_text(encoding="utf-8")) for p in tracked() if p.suffix not in BINARY]


def _lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in _text_files()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_files_stay_readable_at_one_sitting() -> None:
    """A file of more than 400 lines is split by subject, or stands in the list above with its reason."""
    lengths = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in python_files(*HOUSES, "tests")}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES and name not in LONG_FILES} == {}
    assert [name for name in LONG_FILES if lengths.get(name, 0) <= MAX_LINES] == [], (
        "no longer long: take it off the list"
    )


def test_no_file_names_a_path_of_one_machine() -> None:
    """Absolute paths of a home or a working folder hold on one machine only."""
    pattern = re.compile(r"(?<![\w.~}$])/(?:root/(?:\.|\w+/)|home/\w+/|work/(?:main|shared)\b)")
    assert _lines_matching(pattern) == []


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the reader's own configuration."""
    hosts = ("pypi" + ".org", "pythonhosted" + ".org", "download.pytorch" + ".org", "npmjs" + ".org")
    hosts += ("debian" + ".org", "ubuntu" + ".com", "crates" + ".io", "conda.anaconda" + ".org")
    assert _lines_matching(re.compile("|".join(map(re.escape, hosts)))) == []


def test_only_terminal_modules_print() -> None:
    """Standard output is data for a pipe; a stray print would break it."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files(*HOUSES)
        if not MAY_PRINT.search(relative(path))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_only_boundaries_catch_broadly() -> None:
    """`except Exception` below a boundary hides what went wrong from the one place that reports it."""

    def is_broad(handler: ast.ExceptHandler) -> bool:
        caught = (
            [] if handler.type is None else [node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)]
        )
        # Cleaning up and raising on, or giving the failure its name, hides nothing.
        raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        return not raises and (handler.type is None or not {"Exception", "BaseException"}.isdisjoint(caught))

    found = {
        relative(path)
        for path in python_files(*HOUSES)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and is_broad(node)
    }
    assert found - set(MAY_CATCH_BROADLY) == set()
    assert set(MAY_CATCH_BROADLY) - found == set(), "catches nothing broadly any more: take it off the list"


def test_errors_of_a_house_have_one_root() -> None:
    """A caller can catch everything that a house says by one class, so no class starts a root of its own."""
    builtin = {"Exception", "RuntimeError", "ValueError", "TypeError", "KeyError", "LookupError", "OSError"}
    roots = {f"{house}.errors.{name}" for house, name in _ROOTS.items()}
    found = {
        f"{module_name(path)}.{node.name}"
        for path in python_files(*HOUSES)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.bases
        if all(isinstance(base, ast.Name) and base.id in builtin for base in node.bases)
    }
    assert found - roots - set(WAYS_OUT) == set()
    assert set(WAYS_OUT) - found == set(), "gone: take it off the list"


_ROOTS = {"ledger": "LedgerError", "agent": "AgentError", "device": "DeviceError"}


def test_public_modules_are_typed() -> None:
    """Each house ships the marker that lets its users' type checkers read its annotations."""
    assert [house for house in HOUSES if not (ROOT / house / "py.typed").is_file()] == []


def test_no_file_is_empty_of_sense() -> None:
    """Only a package marker may be empty."""
    empty = [relative(p) for p in tracked() if p.stat().st_size == 0]
    assert [name for name in empty if Path(name).name not in {"__init__.py", "py.typed"}] == []
