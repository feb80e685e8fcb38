"""The three reference documents as a library's first experiences: each `## ` section is one.

A section is Markdown. A line `Applies: stages=correctness,optimization; families=reduction,matmul` says when it is
offered; both parts may be left out, and then it applies to both stages and to any family. The line itself is not part
of the experience's text. Ids come from the file's and the section's name, so recording again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import cast

from agent.errors import ConfigurationError
from agent.journal import Journal
from agent.port import StageKind
from ledger import wire

_APPLIES = re.compile(r"^Applies:[ \t]*(.*)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~)")
_STAGES = ("correctness", "optimization")
_ID_WORDS = 48


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a document."""

    document: str
    """Name of the file without its ending, e.g. `cheat-sheet`."""
    title: str
    body: str
    stages: tuple[StageKind, ...]
    families: tuple[str, ...]

    @property
    def id(self) -> str:
        """`doc-<document>-<the first words of the section's title>`."""
        words = _slug(self.title)
        if len(words) > _ID_WORDS:
            words = words[: _ID_WORDS + 1].rpartition("-")[0]
        return f"doc-{_slug(self.document)}-{words}"


@dataclass(frozen=True, slots=True)
class Document:
    """A whole file and its sections."""

    name: str
    text: str
    sections: tuple[Section, ...]


def bundled(language: str = "cpp") -> tuple[Document, ...]:
    """Read the documents that come with the agent, by file name.

    Raises ConfigurationError where a section can not be read.
    """
    folder = resources.files("agent.coldstart") / "documents"
    files = sorted((item for item in folder.iterdir() if item.name.endswith(".md")), key=lambda item: item.name)
    del language  # one set so far; another language brings a folder of its own
    return tuple(parse(item.name.removesuffix(".md"), item.read_text(encoding="utf-8")) for item in files)


def parse(name: str, text: str) -> Document:
    """Read one document. Raises ConfigurationError naming the section that can not be read."""
    sections = [_section(name, title, body) for title, body in _split(text)]
    seen: set[str] = set()
    for section in sections:
        if section.id in seen:
            raise ConfigurationError(
                f"{name}.md: two sections get the id {section.id!r}; begin their titles with other words"
            )
        seen.add(section.id)
    return Document(name, text, tuple(sections))


def record(journal: Journal, documents: Iterable[Document], *, language: str) -> int:
    """Record each section that the library does not hold yet; return how many were new."""
    known = {item.experience for item in journal.experiences()}
    new = 0
    for document in documents:
        missing = [section for section in document.sections if section.id not in known]
        whole = journal.blob(document.text) if missing else ""
        for section in missing:
            new += journal.record(
                wire.NewExperience(
                    experience=section.id,
                    title=section.title,
                    body=section.body,
                    stages=section.stages,
                    conditions=wire.Conditions(families=section.families, languages=(language,)),
                    source=wire.Source(kind="document", name=f"{document.name}.md: {section.title}", texts=(whole,)),
                )
            )
    return new


def _split(text: str) -> list[tuple[str, str]]:
    """Titles and bodies of the `## ` sections; a `## ` inside a code block is code."""
    found: list[tuple[str, list[str]]] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        if line.startswith("## ") and not fenced:
            found.append((line[3:].strip(), []))
        elif found:
            found[-1][1].append(line)
    return [(title, "\n".join(lines)) for title, lines in found]


def _section(document: str, title: str, body: str) -> Section:
    where = f"{document}.md, section {title!r}"
    stages: tuple[str, ...] = _STAGES
    families: tuple[str, ...] = ()
    found = _APPLIES.search(body)
    for part in found.group(1).split(";") if found else ():
        name, _, values = part.partition("=")
        listed = tuple(value.strip() for value in values.split(",") if value.strip())
        if name.strip() == "stages":
            stages = listed
        elif name.strip() == "families":
            families = () if listed == ("any",) else listed
        elif part.strip():
            raise ConfigurationError(f"{where}: `Applies:` knows stages and families, not {part.strip()!r}")
    if not stages or set(stages) - set(_STAGES):
        raise ConfigurationError(f"{where}: stages are {' and '.join(_STAGES)}, not {', '.join(stages) or 'none'}")
    rest = _APPLIES.sub("", body, count=1).strip()
    if not rest:
        raise ConfigurationError(f"{where} has no text")
    return Section(document, title, rest + "\n", cast("tuple[StageKind, ...]", stages), families)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
