"""The JSON form of the judge's report, as types; and one schema of all that this house writes, reports and diagnoses.

The schema is kept as data beside this module. A report is written by `device.evaluate.compose` and signed as text; who
reads one may hold it against this form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from device.report import FORMAT
from device.types import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = Path(__file__).with_name("schema.json")

Number = float | Literal["NaN", "Infinity", "-Infinity"]
"""JSON has no numbers for these three."""
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Share = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Judge(_Part):
    """Who judged, and how."""

    name: str
    version: str
    mode: Literal["hardened", "paper"]
    rule: Literal["hardened", "npukernelbench", "literal"]


class Device(_Part):
    """What ran the kernel."""

    kind: str
    name: str
    cores: int
    features: list[str]


class Environment(_Part):
    """The software round the kernel; `fingerprint` is a SHA-256 over device and versions."""

    fingerprint: Sha256
    python: str
    torch: str | None
    compiler: str | None
    os: str
    toolkit: str | None


class OperatorName(_Part):
    """What the kernel is for."""

    name: str
    level: int
    family: str
    dtype: str


class Candidate(_Part):
    """What was judged: the text, and the file that it was built into."""

    language: str
    source_sha256: Sha256
    artefact_sha256: Sha256 | None


class Compile(_Part):
    """The build; `cached`: the same text, flags and processor had been built before."""

    ok: bool
    command: list[str]
    seconds: Share
    log: str
    cached: bool


class Check(_Part):
    """One thing that was looked at. One that does not hold refuses the candidate unless its level is `warn`.

    Where `torch agrees with itself` does not hold, the candidate counts as not measured.
    """

    name: str
    ok: bool
    detail: str


class Errors(_Part):
    """How many elements err by how much, in units of what is allowed; the last class has no upper end."""

    upper: list[float | None]
    elements: list[Count]


class Tile(_Part):
    """The area of wrong elements round the first of them, as a slice; `tail`: axes at whose end it lies."""

    start: list[Count]
    stop: list[Count]
    wrong: Count
    tail: list[Count]


class Failure(_Part):
    """What ended the judging. The element is the first that is wrong; the largest errors are of its whole output."""

    kind: str
    case: str
    message: str
    index: list[Count] | None
    expected: Number | None
    got: Number | None
    max_abs_error: Number | None
    max_rel_error: Number | None
    tile: Tile | None
    errors: Errors | None


class Verify(_Part):
    """Comparison with the float64 reference, and every check. `errors` counts the elements of cases that passed."""

    ok: bool
    cases: Count
    passed: Count
    seconds: Share
    checks: list[Check]
    errors: Errors | None
    failure: Failure | None


class Timing(_Part):
    """Samples of one side, in ms, in the order in which they were taken; `std_ms` is the sample standard deviation."""

    mean_ms: Share
    median_ms: Share
    min_ms: Share
    std_ms: Share
    samples_ms: list[Share]


class Itself(_Part):
    """Torch against torch in the same turns; the 95 % interval contains 1, at the first try or a later one."""

    ratio: Share
    interval: tuple[Share, Share]
    pairs: Count
    tries: Count


class CaseTiming(_Part):
    """One case: both sides under the same inputs. `noise_ms` is the half-width of the mean's 95 % interval."""

    case: str
    shapes: list[list[Count]]
    candidate: Timing
    reference: Timing
    speedup: Share
    speedup_interval: tuple[Share, Share]
    noise_ms: Share
    itself: Itself


class Conditions(_Part):
    """Load (processes, average of a minute), least, median and greatest MHz of the cores, and what sets it."""

    load: Share
    mhz: tuple[Share, Share, Share] | None
    governor: str | None


class Around(_Part):
    """The machine before and after the time step."""

    before: Conditions
    after: Conditions


class Measure(_Part):
    """The time step: geometric means over the timed cases, 95 % intervals. Absent where nothing was measured."""

    cases: list[CaseTiming]
    latency_ms: Annotated[float, msgspec.Meta(gt=0)]
    reference_ms: Annotated[float, msgspec.Meta(gt=0)]
    noise_ms: Share
    speedup: Share
    speedup_interval: tuple[Share, Share]
    conditions: Around
    warm_up: Count
    timed: Count
    seconds: Share


class Costs(_Part):
    """Seconds that the judging took."""

    compile_seconds: Share
    device_seconds: Share


class Report(_Part):
    """What the judge saw of one candidate."""

    format: Literal["sagebook.report/1"]
    id: str
    created: str
    judge: Judge
    device: Device
    environment: Environment
    operator: OperatorName
    candidate: Candidate
    seed: int
    outcome: Outcome
    summary: str
    compile: Compile
    verify: Verify | None
    measure: Measure | None
    costs: Costs


def read(data: Mapping[str, Any]) -> Report:
    """Read a report from plain data. Raises msgspec.ValidationError, which names the place, where it is none."""
    return msgspec.convert(data, Report)


def schema() -> dict[str, Any]:
    """Make the JSON schema (draft 2020-12) of reports and diagnoses out of their types; `schema.json` is the same."""
    from device.diagnose.types import FORMAT as OTHER  # noqa: PLC0415  (a report needs nothing of it)
    from device.diagnose.types import Diagnosis  # noqa: PLC0415  (the same)

    either, parts = msgspec.json.schema_components((Report, Diagnosis))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT} or {OTHER}",
        "oneOf": list(either),
        "$defs": parts,
    }


def schema_text() -> str:
    """Write the schema as it is kept."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
