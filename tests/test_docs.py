"""The documents are held to the code: what they quote exists, and what they promise is dated, numbered and short."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ledger.command import build
from tests.sources import ROOT, relative, tracked

DOCUMENTS = [
    path
    for path in tracked()
    if path.suffix == ".md" and relative(path).startswith(("docs/", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
]
DECISIONS = [path for path in DOCUMENTS if re.fullmatch(r"docs/decisions/\d{4}-.*\.md", relative(path))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# typer carries its own click and names no type for it.
Command = Any
QUOTED = re.compile(r"`([^`\n]+)`")


def _quoted(text: str) -> Iterator[str]:
    """Code spans, and the lines of fenced blocks without their comments."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line.split("  #")[0].strip()
        else:
            yield from QUOTED.findall(line)


def _children(group: Command) -> dict[str, Command]:
    return getattr(group, "commands", {})


def _commands(command: Command, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command of the tree with its name in words, groups included."""
    yield name, command
    for sub, child in _children(command).items():
        yield from _commands(child, (*name, sub))


@pytest.fixture(scope="module")
def tree() -> dict[tuple[str, ...], Command]:
    """`sagebook` and all below it."""
    return dict(_commands(typer.main.get_command(build())))


def _problem(quoted: str, tree: dict[tuple[str, ...], Command]) -> str | None:
    """What is wrong with a quoted command line, if anything."""
    words = shlex.split(quoted.replace("…", "").replace("[", "").replace("]", ""))[1:]
    name: tuple[str, ...] = ()
    while words and (*name, words[0]) in tree:
        name = (*name, words.pop(0))
    command = tree[name]
    if _children(command) and words and not words[0].startswith("-"):
        return f"no command {words[0]!r} in {' '.join(('sagebook', *name))!r}"
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help",
        "-h",
    }
    unknown = [word for word in words if word.startswith("-") and word != "-" and word.partition("=")[0] not in options]
    return f"{' '.join(('sagebook', *name))!r} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_quoted_commands_exist(path: Path, tree: dict[tuple[str, ...], Command]) -> None:
    """A reader types what the page shows: each `sagebook …` names a command that exists, with options that it has."""
    lines = [
        text for text in _quoted(path.read_text(encoding="utf-8")) if re.match(r"(\.venv/bin/)?sagebook( |$)", text)
    ]
    assert [problem for text in lines if (problem := _problem(text, tree))] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_quoted_paths_exist(path: Path) -> None:
    """A path in a document leads somewhere. Names in capitals stand for the reader's own."""
    tops = {p.relative_to(ROOT).parts[0] for p in tracked()}
    missing = []
    for text in _quoted(path.read_text(encoding="utf-8")):
        for word in text.split():
            candidate = word.split("::")[0].rstrip(".,;")
            if "/" not in candidate or candidate.split("/")[0] not in tops or re.search(r"[A-Z]{3}|[*{]", candidate):
                continue
            if not (ROOT / candidate).exists():
                missing.append(candidate)
    # Optional folders that the two markers are for; they come with their first test.
    assert [name for name in missing if name not in {"tests/hardware", "tests/live"}] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    """Relative links resolve from the file that holds them."""
    targets = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []


def test_every_command_shows_an_example(tree: dict[tuple[str, ...], Command]) -> None:
    """`--help` of each command ends with a line that can be typed, and that line names an existing command."""
    without = []
    wrong = []
    for name, command in tree.items():
        if _children(command):
            continue
        text = f"{command.help or ''}\n{command.epilog or ''}"
        examples = re.findall(r"\bsagebook [^\n]*", text)
        if "Example" not in text or not examples:
            without.append(" ".join(name))
        wrong += [problem for example in examples if (problem := _problem(example.rstrip("."), tree))]
    assert without == []
    assert wrong == []


def test_readme_names_every_extra() -> None:
    """The table of extras is the one in pyproject.toml."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(\w+)` \| (?!remembers|builds)", readme, re.MULTILINE))
    assert table == set(PROJECT["optional-dependencies"])


def test_changelog_speaks_of_this_version() -> None:
    """The version that would be built has its section, on top and with something in it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert re.match(rf"\[(Unreleased|{re.escape(PROJECT['version'])})\]", sections[0])
    assert re.search(r"^- ", sections[0], re.MULTILINE)


def test_decisions_are_numbered_without_gaps() -> None:
    """A number is never used twice, and none is missing."""
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_dated_and_half_a_page(path: Path) -> None:
    """Title with its number, a date and a status, what was given up, and at most 350 words."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:4]}. ")
    assert re.search(r"^Date: \d{4}-\d\d-\d\d\. Status: (accepted|superseded by \d{4})\.", text, re.MULTILINE)
    assert "**Given up.**" in text
    assert len(text.split()) <= 350


@pytest.mark.parametrize(
    "term",
    ["Stage", "Adoption", "Feedback", "Value", "Resident", "Gate", "Priority", "Frequency", "Consolidation", "Policy"],
)
def test_glossary_explains(term: str) -> None:
    """The words that commands and pages print without explaining them."""
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    assert re.search(rf"^\*\*[^*]*\b{term}\b", glossary, re.MULTILINE | re.IGNORECASE)
