"""What a diagnosis says: the form `sagebook.diagnosis/1`, of which `device/schema.json` holds the JSON schema.

Indices count from 0, spans are [begin, end), times are in milliseconds where a name ends in `_ms`. A number that JSON
cannot hold is one of the strings "NaN", "Infinity" and "-Infinity". What was not looked at is null or absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FORMAT: Literal["sagebook.diagnosis/1"] = "sagebook.diagnosis/1"
Tool = Literal["dump", "sanitize", "profile"]
Number = float | Literal["NaN", "Infinity", "-Infinity"]


def number(value: float) -> Number:
    """Put a number into the form that JSON holds."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a tool found: what, where, the numbers behind it, and what to try."""

    tool: Tool
    kind: str
    """`dump`: a way to be wrong; `sanitize`: the sanitizer's name of it; `profile`: bandwidth, parallelism, compute or
    synchronisation."""
    message: str
    place: str = ""
    """A stage or output with its index, or `kernel.cpp:LINE`, or a timed case."""
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuildNote:
    """How the candidate was built for one tool: never the artefact that is verified or timed."""

    ok: bool
    command: tuple[str, ...]
    artefact_sha256: str | None
    seconds: float
    cached: bool
    log: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """One named intermediate result, or one output, held against the float64 reference."""

    name: str
    kind: Literal["stage", "output"]
    state: Literal["right", "wrong", "not recorded", "not known", "not comparable"]
    """`not known`: the operator has no stage of that name; `not comparable`: another number of elements."""
    shape: tuple[int, ...] | None = None
    note: str = ""
    how: str = ""
    """The way in which it is wrong."""
    words: str = ""
    index: tuple[int, ...] | None = None
    """The first wrong element, row-major."""
    expected: Number | None = None
    got: Number | None = None
    region: tuple[tuple[int, int], ...] | None = None
    """The wrong box that begins at the first wrong element: a span for each axis."""
    wrong: int = 0
    elements: int = 0


@dataclass(frozen=True, slots=True)
class Dump:
    """Intermediate results and outputs of the first problem that fails, or of one that passes."""

    build: BuildNote
    outcome: Literal["right", "wrong", "error", "crash", "hang", "resource", "refused", "not built"]
    message: str
    problems: int = 0
    """How many problems were run before, this one included."""
    problem: str | None = None
    threads: int | None = None
    first_wrong: str | None = None
    """The first stage that is wrong, else the output."""
    compared: tuple[Compared, ...] = ()
    lost: int = 0
    """Calls of SB_DUMP that found no room."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report of a sanitizer, read."""

    sanitizer: Literal["address", "undefined", "thread"]
    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    function: str | None = None
    access: Literal["read", "write"] | None = None
    size: int | None = None
    """Bytes of the access."""
    problem: str = ""
    frames: tuple[str, ...] = ()
    """The candidate's own frames, innermost first."""
    other: tuple[str, ...] = ()
    """Frames of the other thread in a race, of where freed or allocated memory came from."""


@dataclass(frozen=True, slots=True)
class Sanitized:
    """One run under one or two sanitizers."""

    sanitizers: tuple[str, ...]
    build: BuildNote
    outcome: str
    message: str
    problems: int = 0
    threads: int = 1
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True)
class Sanitize:
    """All sanitizer runs."""

    runs: tuple[Sanitized, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers of a profile come from, whether this machine has it, and how to get it."""

    name: str
    have: bool
    detail: str
    get: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line of the candidate costs."""

    line: int
    share: float
    """Of all instructions."""
    instructions: int
    misses: int
    """Reads and writes that the last cache did not serve."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class CaseProfile:
    """What was measured on one timed case; a number that this machine cannot give is absent."""

    case: str
    numbers: Mapping[str, float]
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a kernel spends its time on."""

    build: BuildNote
    threads: int
    sources: tuple[Source, ...]
    cases: tuple[CaseProfile, ...]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found out about one candidate."""

    created: str
    operator: str
    language: str
    source_sha256: str
    seed: int
    device: str
    compiler: str | None
    findings: tuple[Finding, ...]
    """The most telling first within each tool."""
    dump: Dump | None = None
    sanitize: Sanitize | None = None
    profile: Profile | None = None
    format: Literal["sagebook.diagnosis/1"] = FORMAT
