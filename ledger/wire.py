"""What goes over HTTP, typed once for the service and the client. Ids supplied by a client are kept as they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _not_a_step(name: str) -> str:
    """Refuse the two names that a path can not hold: clients and proxies resolve them away."""
    if name in {".", ".."}:
        raise ValueError("an id can not be `.` or `..`")
    return name


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; say something")
    return text


StageKind = Literal["correctness", "optimization"]
Id = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=r"^[^\s/?#%\x00-\x1f][^/?#%\x00-\x1f]*$"),
    AfterValidator(_not_a_step),
]
"""A part of a path: kept as it is given."""
Flag = Annotated[bool, Field(strict=True)]
"""True or false; neither `1` nor `"no"`."""
Whole = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(strict=True, gt=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
"""At most 31 years, so that sums of them stay finite."""
Milliseconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=4_000_000)]
Line = Annotated[str, Field(max_length=20_000)]
Reason = Annotated[str, Field(max_length=20_000), AfterValidator(_not_blank)]
"""What a person reads later; never blank."""
Title = Annotated[str, Field(max_length=20_000), AfterValidator(_not_blank)]
RuleText = Annotated[str, Field(max_length=4_000_000), AfterValidator(_not_blank)]


class Wire(BaseModel):
    """Root: fields are exact, and an unknown one is an error rather than lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --- libraries -----------------------------------------------------------------------------------------------------


class NewLibrary(Wire):
    """`policy` is a preset's name or a mapping of policy fields over the preset `sage`."""

    library: Id
    policy: str | dict[str, Any] = "sage"
    title: str = ""
    # A number that is not finite is refused by its field's name, which a null would hide.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class Library(Wire):
    library: str
    title: str
    sequence: int
    policy_name: str
    policy: dict[str, Any]
    experiences: int
    residents: int
    resident_tokens: int
    tasks: int
    scored_stages: int


class Libraries(Wire):
    items: list[Library]
    next_cursor: str | None = None


# --- experiences ---------------------------------------------------------------------------------------------------


class ShapeRange(Wire):
    """Bounds, both inclusive, of one named size of a task, e.g. `last_axis`; an absent bound is open."""

    size: Line
    least: Whole | None = None
    most: Whole | None = None


class Conditions(Wire):
    """When an experience applies. An empty field holds for anything; `toolkit` is a range such as `>=8.3,<9`."""

    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    toolkit: str = ""
    shapes: tuple[ShapeRange, ...] = ()


class Source(Wire):
    """Where it came from. `texts` are blobs stored before, e.g. the two sources of a differential pair."""

    kind: Literal["document", "differential", "repair", "person", "import"] = "person"
    name: Line = ""
    texts: tuple[Sha256, ...] = ()


class NewExperience(Wire):
    experience: Id
    title: Title
    body: Text
    stages: tuple[StageKind, ...] = ("correctness", "optimization")
    conditions: Conditions = Conditions()
    source: Source = Source()


class AmendExperience(Wire):
    title: Title
    body: Text
    reason: Reason
    conditions: Conditions | None = None
    """Null: as they were."""


class Retirement(Wire):
    reason: Reason


class NewRule(Wire):
    """`tokens` may be given with the `tokenizer` that counted; else the ledger estimates from bytes and says so."""

    text: RuleText
    tokens: Positive | None = None
    tokenizer: str = "declared"
    model: str = ""


class Experience(Wire):
    experience: str
    title: str
    body: str | None
    stages: tuple[str, ...]
    conditions: Conditions
    source: Source
    recorded: int
    """Sequence at which it was recorded."""
    value: float
    retrievals: int
    adoptions: int
    operators: list[str]
    frequency: float
    resident: bool
    tokens: int | None
    rule: str | None
    retired: bool
    superseded_by: str | None
    needs_revalidation: list[tuple[str, str]]
    """(chip, toolkit) pairs under which it was offered and has no adopted success yet."""
    conflicts: list[str]
    awaiting_distillation: bool


class ExperienceFilter(Wire):
    """Which experiences are listed; what is absent is not asked. Conditions hold as in a retrieval."""

    resident: bool | None = None
    awaiting_distillation: bool | None = None
    stale: bool | None = None
    """Needs revalidation somewhere; with `chip` or `toolkit`: has evidence, and none there."""
    conflict: bool | None = None
    """Named in a conflict that is open."""
    superseded: bool | None = None
    retired: bool | None = None
    """Superseded ones are retired, too."""
    family: str = ""
    dtype: str = ""
    language: str = ""
    chip: str = ""
    toolkit: str = ""


class ExperiencePage(ExperienceFilter):
    """A page of them, from a cursor on."""

    cursor: str | None = None
    limit: Annotated[int, Field(gt=0, le=500)] = 100


class Experiences(Wire):
    items: list[Experience]
    next_cursor: str | None = None


class ExperienceState(Wire):
    """One line of `sagebook state`."""

    value: float
    retrievals: int
    adoptions: int
    operators: list[str]
    frequency: float
    resident: bool
    tokens: int | None
    retired: bool


class State(Wire):
    library: str
    sequence: int
    policy: dict[str, Any]
    experiences: dict[str, ExperienceState]


# --- tasks and stages ----------------------------------------------------------------------------------------------


class NewTask(Wire):
    task: Id
    operator: Title
    level: Whole = 0
    model: Title
    budget: Annotated[int, Field(strict=True, gt=0, le=100_000)] = 30
    family: str = ""
    dtype: str = ""
    language: str = ""
    configuration: dict[str, str] = {}
    environment: dict[str, str] = {}
    """`chip` and `toolkit` are what staleness is judged by."""
    shapes: dict[str, Whole] = {}
    """Named sizes, for conditions on shapes, e.g. `last_axis`."""


class FinishTask(Wire):
    summary: Line = ""


class Task(Wire):
    """A task as it stands; enough for an interrupted agent to continue."""

    task: str
    operator: str
    level: int
    model: str
    budget: int
    rounds: int
    configuration: dict[str, str]
    environment: dict[str, str]
    finished: bool
    solved: bool
    stages: list[Stage]
    candidates: list[Candidate]


class Tasks(Wire):
    items: list[Task]
    next_cursor: str | None = None


class NewStage(Wire):
    stage: Id
    kind: StageKind
    operator: Title | None = None
    """The task's operator where it is absent."""
    basis: Literal["judged", "reported"] = "judged"


class PresentedRule(Wire):
    experience: str
    rule: str
    value: float
    tokens: int
    needs_revalidation: bool = False


class Stage(Wire):
    stage: str
    task: str
    kind: str
    operator: str
    status: Literal["open", "scored", "abandoned"]
    invalid: bool
    score: float | None
    retrieved: list[str]
    rules: list[str]
    withheld: str | None
    undecided: list[str]
    decided: dict[str, bool]


class OpenedStage(Wire):
    """What the agent sees as it begins: the resident rules."""

    stage: Stage
    rules: list[PresentedRule]


class Retrieval(Wire):
    query: Title
    limit: Annotated[int, Field(strict=True, gt=0, le=1000)] | None = None
    stale: Flag = True
    """False: leave out what needs revalidation where the task runs."""


class Offered(Wire):
    experience: str
    title: str
    body: str
    value: float
    relevance: float
    score: float
    needs_revalidation: bool = False


class Retrieved(Wire):
    offered: list[Offered]


class Decision(Wire):
    experience: Id
    adopted: Flag
    reason: Reason
    candidate: Id | None = None


class Decisions(Wire):
    decisions: Annotated[list[Decision], Field(min_length=1, max_length=10_000)]


class NewCandidate(Wire):
    candidate: Id
    source: Text
    language: str
    change: Line
    hypothesis: Line
    parent: Id | None = None


class Candidate(Wire):
    candidate: str
    stage: str
    round: int
    source: str
    """Blob (SHA-256) of the source."""
    language: str
    change: str
    hypothesis: str
    parent: str | None
    outcome: str | None
    """The judge's word: compile_error, refused, crash, hang, resource, wrong or correct; None before it is judged."""
    withdrawn: bool
    """True: its source, its artefact or its stage was invalidated, and no later stage is scored from it."""
    summary: str
    latency_ms: float | None
    reference_ms: float | None
    noise_ms: float | None
    report: str | None


class Report(Wire):
    """The judge's report: the exact JSON text, its Ed25519 signature and the judge's public key, both base64."""

    report: Text
    signature: str
    judge_key: str


class Diagnosis(Wire):
    tool: Title
    hypothesis: Line
    evidence: Line
    next_step: Line
    candidate: Id | None = None


class Cost(Wire):
    kind: Literal["model", "compile", "device", "upkeep"]
    seconds: Seconds
    round: Positive | None = None
    experience: Id | None = None
    """The experience that an upkeep was for."""
    model: str = ""
    input_tokens: Count = 0
    output_tokens: Count = 0
    estimated: Flag = False


class ReportedOutcome(Wire):
    """A verdict by hand. Correctness: `correct`. Optimization: `first_ms`, and `best_ms` where there is one."""

    correct: Flag | None = None
    first_ms: Milliseconds | None = None
    best_ms: Milliseconds | None = None
    source: Line = ""


class Abandonment(Wire):
    reason: Reason


class ValueChange(Wire):
    experience: str
    old: float
    new: float
    alpha: float
    n: int
    feedback: float
    adopted: bool


class RankedRule(Wire):
    experience: str
    value: float
    frequency: float
    tokens: int
    priority: float
    resident: bool
    against: str | None = None


class ConsolidationResult(Wire):
    sequence: int
    trigger: str
    subject: str
    budget: int
    used: int
    admitted: list[str]
    evicted: list[str]
    ranked: list[RankedRule]


class Score(Wire):
    stage: str
    sequence: int
    score: float
    adopted: list[str]
    updates: list[ValueChange]
    consolidation: ConsolidationResult | None
    awaiting_distillation: list[str]


class NewPolicy(Wire):
    """`policy` is a preset's name, or a mapping of fields over the policy that holds."""

    policy: str | dict[str, Any]
    reason: Reason
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


# --- governance ----------------------------------------------------------------------------------------------------


class Supersession(Wire):
    by: Id
    reason: Reason


class NewConflict(Wire):
    """`proposed` says that an agent read it so, not a person."""

    conflict: Id
    first: Id
    second: Id
    reason: Reason
    proposed: Flag = False


class ConflictEnd(Wire):
    """`loser` stays out of the resident set; null: they do not contradict each other after all."""

    loser: Id | None = None
    reason: Reason


class Conflict(Wire):
    conflict: str
    first: str
    second: str
    reason: str
    open: bool
    loser: str | None


class Conflicts(Wire):
    items: list[Conflict]


class NewReversal(Wire):
    """`subject`: `stage:ID`, `task:ID`, or `candidate:SHA256` of a source or of an artefact.

    A candidate counts nowhere from then on, also in stages that are open or yet to come.
    """

    subject: Line
    reason: Reason
    by: Literal["person", "judge"] = "person"


class Reversal(Wire):
    sequence: int
    subject: str
    stages: list[str]
    moved: list[str]
    """Experiences whose numbers changed."""
    admitted: list[str]
    evicted: list[str]


# --- the log, blobs, audit -----------------------------------------------------------------------------------------


class EventRecord(Wire):
    """One event as it stands in the log. `time` is when it was recorded (RFC 3339, UTC)."""

    library: str
    sequence: int
    type: str
    schema_: int = Field(alias="schema")
    id: str
    time: str
    actor: str
    task: str | None
    stage: str | None
    payload: dict[str, Any]
    previous_hash: str
    hash: str
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Events(Wire):
    items: list[EventRecord]
    head: int
    next_cursor: str | None = None


class Blob(Wire):
    sha256: str
    size: int


class Appended(Wire):
    """First and last sequence of what a command appended; equal to each other where it was one event."""

    first: int
    last: int


class ImportedTrace(Wire):
    records: int
    events: int
    sequence: int


class Verification(Wire):
    library: str
    ok: bool
    events: int
    head: str
    bad_sequence: int | None = None
    reason: str | None = None
    blobs: int = 0
    """Blobs that events name and whose content was hashed anew."""
    erased_blobs: int = 0
    """Blobs that a redaction erased."""


class Difference(Wire):
    sequence: int
    recorded: dict[str, Any] | None
    derived: dict[str, Any] | None


class DerivedExperience(Wire):
    value: float
    recorded_value: float
    resident: bool
    recorded_resident: bool


class Rederivation(Wire):
    """`first_difference` is None where the recorded policy gives the recorded outcome, event by event."""

    library: str
    sequence: int
    policy_name: str
    policy: dict[str, Any]
    same_policy: bool
    compared: int
    first_difference: Difference | None
    residents: list[str]
    resident_tokens: int
    would_enter: list[str]
    would_leave: list[str]
    rank_correlation: float | None
    experiences: dict[str, DerivedExperience]


class Progress(Wire):
    """How far a running call has come, in events; 0 of 0 before it knows how many there are."""

    done: int
    of: int


class ExperienceDiff(Wire):
    """Pairs are (before, after); None where it did not exist yet. `events` are the sequences that moved it."""

    experience: str
    value: tuple[float | None, float]
    frequency: tuple[float | None, float]
    resident: tuple[bool, bool]
    retired: tuple[bool, bool]
    rule: tuple[str | None, str | None] | None
    """Rule texts, where they differ."""
    text_changed: bool
    events: list[int]


class DiffReversal(Wire):
    """Verdicts that were withdrawn, or let count again, between the two points: what, who and why."""

    sequence: int
    time: str
    actor: str
    what: Literal["invalidated", "reinstated"]
    subject: str
    stages: list[str]
    reason: str
    by: str


class LibraryDiff(Wire):
    library: str
    start: int
    end: int
    admitted: list[str]
    evicted: list[str]
    reversals: list[DiffReversal] = []
    changes: list[ExperienceDiff]


class WhyNot(Wire):
    """What keeps a rule out of the resident set; a resident lacks nothing."""

    library: str
    experience: str
    sequence: int
    resident: bool
    answer: str
    gate: dict[str, Any]
    what_would_it_take: dict[str, Any] | None
    lines: list[str]
    """The same in words."""
    conflicts: list[dict[str, Any]]
    moves: list[dict[str, Any]]


class CostTotal(Wire):
    """Costs of one group. The model (in groups by model) and token counts carry their OpenTelemetry GenAI names."""

    group: str
    request_model: str | None = Field(
        default=None, serialization_alias="gen_ai.request.model", validation_alias="gen_ai.request.model"
    )
    model_seconds: float
    compile_seconds: float
    device_seconds: float
    upkeep_seconds: float
    input_tokens: int = Field(
        serialization_alias="gen_ai.usage.input_tokens", validation_alias="gen_ai.usage.input_tokens"
    )
    output_tokens: int = Field(
        serialization_alias="gen_ai.usage.output_tokens", validation_alias="gen_ai.usage.output_tokens"
    )
    estimated: bool
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class RuleUpkeep(Wire):
    """What a rule cost and brought. `credit` is the sum of feedback while it was used as a resident."""

    experience: str
    distilled_seconds: float
    distilled_tokens: int
    context_tokens: int
    presented: int
    used: int
    credit: float
    uplift: float | None


class Costs(Wire):
    library: str
    by: str
    groups: list[CostTotal]
    rules: list[RuleUpkeep]


class Uplift(Wire):
    """Mean stage score with a rule less without it, and its 95 % interval; None where the evidence is too small."""

    experience: str
    presented: int
    withheld: int
    difference: float | None
    low: float | None
    high: float | None
    verdict: str


class HoldoutEvidence(Wire):
    library: str
    rate: float
    rules: list[Uplift]


class Problem(BaseModel):
    """RFC 9457 problem document. `code` is the last part of `type`."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = None
    errors: list[dict[str, Any]] | None = None


Task.model_rebuild()
