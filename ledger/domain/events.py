"""The facts of one library, past tense, frozen; and the one table of their names on disk.

An event says what happened to one library. Long texts and code are blobs, named here by their SHA-256.
Fields may be added with a default; anything else is a new schema number and a lift in `ledger.store.codec`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ledger.domain.policy import Policy

StageKind = Literal["correctness", "optimization"]
Basis = Literal["judged", "reported"]
Origin = Literal["document", "differential", "repair", "person", "import"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Root of all events. They hold no cycles, so the garbage collector need not know of them."""


# --- the library ---------------------------------------------------------------------------------------------------


class LibraryCreated(Event, frozen=True, kw_only=True):
    """A library was opened under a policy."""

    policy: Policy
    policy_name: str
    title: str = ""


class PolicyChanged(Event, frozen=True, kw_only=True):
    """Another policy holds from here on."""

    policy: Policy
    policy_name: str
    reason: str


# --- experiences ---------------------------------------------------------------------------------------------------


class ShapeRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Bounds, both inclusive, of one named size of a task, e.g. `last_axis`; an absent bound is open."""

    size: str
    least: int | None = None
    most: int | None = None


class Conditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """When an experience applies. An empty field holds for anything."""

    families: tuple[str, ...] = ()
    """Operator families, e.g. `reduction`."""
    dtypes: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    toolkit: str = ""
    """Range of toolkit versions, e.g. `>=8.3,<9`."""
    shapes: tuple[ShapeRange, ...] = ()


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Where an experience came from."""

    kind: Origin
    name: str = ""
    """The document and section, the task, or the person."""
    texts: tuple[str, ...] = ()
    """Blobs that it was drawn from, e.g. the generated and the expert source of a differential pair."""


class ExperienceRecorded(Event, frozen=True, kw_only=True):
    """An experience entered cold memory with value 0."""

    experience: str
    title: str
    body: str
    """Blob of the Markdown text."""
    stages: tuple[StageKind, ...]
    source: Source
    conditions: Conditions = Conditions()


class ExperienceAmended(Event, frozen=True, kw_only=True):
    """The text or the conditions of an experience were changed; value and history stay."""

    experience: str
    title: str
    body: str
    reason: str
    conditions: Conditions | None = None
    """None: as they were."""


class ExperienceRetired(Event, frozen=True, kw_only=True):
    """An experience is no longer offered; its frequency stands still."""

    experience: str
    reason: str


class ExperienceSuperseded(Event, frozen=True, kw_only=True):
    """A newer experience took the place of this one, which is offered no more; its frequency stands still."""

    experience: str
    by: str
    reason: str


class ConflictRecorded(Event, frozen=True, kw_only=True):
    """Two rules contradict each other; they are never resident together."""

    conflict: str
    first: str
    second: str
    reason: str
    proposed: bool = False
    """True: an agent's reading, not a person's."""


class ConflictResolved(Event, frozen=True, kw_only=True):
    """A conflict was settled: the loser stays out of the resident set, or there was none."""

    conflict: str
    loser: str | None
    """None: they do not contradict each other after all."""
    reason: str


class RevalidationRequired(Event, frozen=True, kw_only=True):
    """A task ran under a chip or toolkit that the experience's evidence never covered."""

    experience: str
    task: str
    chip: str
    toolkit: str


class Revalidated(Event, frozen=True, kw_only=True):
    """An adopted success under that chip and toolkit cleared it."""

    experience: str
    stage: str
    chip: str
    toolkit: str


class ExperienceEmbedded(Event, frozen=True, kw_only=True):
    """A vector of the experience's text was computed, so that a replay never calls a model."""

    experience: str
    text: str
    """Blob of the text as it was embedded."""
    model: str
    version: str
    vector: str
    """Blob: little-endian float32, one after the other."""
    dimensions: int


class RedactedRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored record out of which fields were taken. Its hash stays the one that it had."""

    sequence: int
    fields: tuple[str, ...]
    """E.g. `payload.title`."""
    digest: str
    """SHA-256 of the record as it stands since."""


class ExperienceRedacted(Event, frozen=True, kw_only=True):
    """Texts were erased for good: blobs, or fields of earlier records."""

    reason: str
    experience: str = ""
    """Whose they were; empty where they were no experience's."""
    blobs: tuple[str, ...] = ()
    records: tuple[RedactedRecord, ...] = ()


# --- tasks and stages ----------------------------------------------------------------------------------------------


class TaskStarted(Event, frozen=True, kw_only=True):
    """One operator is attempted by one agent run within a budget of rounds."""

    task: str
    operator: str
    level: int
    model: str
    budget: int
    family: str = ""
    dtype: str = ""
    language: str = ""
    configuration: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Chip, toolkit, compiler and their `fingerprint`."""
    shapes: dict[str, int] = {}
    """Named sizes of the task, for conditions on shapes."""


class TaskFinished(Event, frozen=True, kw_only=True):
    """The attempt ended."""

    task: str
    solved: bool
    rounds: int
    summary: str = ""


class StageStarted(Event, frozen=True, kw_only=True):
    """One of a task's two stages began."""

    stage: str
    task: str
    kind: StageKind
    operator: str
    basis: Basis = "judged"
    """`reported`: its outcome will be told by hand, not read from a judge's report."""


class PoolEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One experience in the pool of a retrieval."""

    experience: str
    relevance: float
    """BM25 score, or the fused relevance where a dense ranking took part."""
    value: float
    score: float
    """relevance / best relevance + value_weight * value."""
    lexical: float | None = None
    """BM25 score, where a dense ranking took part."""
    dense: float | None = None
    """Cosine similarity, where a dense ranking took part."""


class ExperiencesRetrieved(Event, frozen=True, kw_only=True):
    """Memory offered experiences in answer to a query."""

    stage: str
    query: str
    pool: tuple[PoolEntry, ...]
    offered: tuple[str, ...]
    """In final order."""
    fusion: str = "lexical"
    """How relevance was made, e.g. `scores/0.6`: the dense ranking's weight beside the lexical; `rrf/60`: by ranks."""
    model: str = ""
    """The embedding model and version, where a dense ranking took part."""
    vector: str | None = None
    """Blob of the query's vector."""


class RulesPresented(Event, frozen=True, kw_only=True):
    """The resident rules that were put before the agent when the stage began."""

    stage: str
    rules: tuple[str, ...]
    tokens: int


class RuleWithheld(Event, frozen=True, kw_only=True):
    """A resident rule was kept back from one stage, to measure what it brings."""

    stage: str
    experience: str
    rate: float


class AdoptionDecided(Event, frozen=True, kw_only=True):
    """The agent said whether it adopted an offer, and why."""

    stage: str
    experience: str
    adopted: bool
    reason: str
    candidate: str | None = None


class CandidateProposed(Event, frozen=True, kw_only=True):
    """The agent wrote a kernel."""

    stage: str
    candidate: str
    round: int
    source: str
    """Blob of the source."""
    language: str
    change: str
    hypothesis: str
    parent: str | None = None
    """The candidate that it was derived from."""


class CandidateCompiled(Event, frozen=True, kw_only=True):
    """The judge built the candidate, or the compiler refused it."""

    stage: str
    candidate: str
    ok: bool
    seconds: float
    report: str
    """Blob of the judge's report, as it was signed."""
    judge: str
    """The judge's public key, base64."""
    summary: str = ""
    artefact: str | None = None
    """SHA-256 of the shared object that was run."""
    signature: str = ""
    """The judge's signature of the report, base64."""


class CandidateVerified(Event, frozen=True, kw_only=True):
    """The judge compared the candidate with the reference."""

    stage: str
    candidate: str
    ok: bool
    outcome: str
    summary: str
    report: str
    judge: str
    mode: str
    rule: str


class CandidateMeasured(Event, frozen=True, kw_only=True):
    """The judge timed a verified candidate beside the reference."""

    stage: str
    candidate: str
    latency_ms: float
    reference_ms: float
    noise_ms: float
    """Half-width of the 95 % interval of the latency."""
    device: str
    report: str
    judge: str


class StageDiagnosed(Event, frozen=True, kw_only=True):
    """A tool's evidence was read, and the next step chosen."""

    stage: str
    tool: str
    hypothesis: str
    evidence: str
    next_step: str
    candidate: str | None = None


class CostIncurred(Event, frozen=True, kw_only=True):
    """What a step cost."""

    stage: str | None = None
    kind: Literal["model", "compile", "device", "upkeep"]
    seconds: float
    round: int | None = None
    experience: str | None = None
    """The experience that an upkeep was for."""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    task: str | None = None


class OutcomeReported(Event, frozen=True, kw_only=True):
    """A verdict made by hand: a person's or another harness's word, with no judge's report behind it."""

    stage: str
    correct: bool | None = None
    first_ms: float | None = None
    best_ms: float | None = None
    source: str = ""


class StageScored(Event, frozen=True, kw_only=True):
    """The stage ended with a score that the ledger computed from the facts before it."""

    stage: str
    kind: StageKind
    operator: str
    score: float
    offered: tuple[str, ...]
    """Experiences that were offered and looked at: N grows by one for each."""
    adopted: tuple[str, ...]
    first: str | None = None
    best: str | None = None
    """Candidates whose facts were read."""
    first_ms: float | None = None
    best_ms: float | None = None


class StageAbandoned(Event, frozen=True, kw_only=True):
    """The stage ended without a score."""

    stage: str
    reason: str


class StageInvalidated(Event, frozen=True, kw_only=True):
    """The verdicts behind scored stages were withdrawn: their credit is taken back as if they had not been scored."""

    stages: tuple[str, ...]
    subject: str
    """What was withdrawn: `stage:ID`, `task:ID` or `candidate:SHA256` of a source or artefact."""
    reason: str
    by: Literal["person", "judge"] = "person"


class StageReinstated(Event, frozen=True, kw_only=True):
    """A reversal was itself reversed: the stages count again."""

    stages: tuple[str, ...]
    subject: str
    reason: str
    by: Literal["person", "judge"] = "person"


class Restated(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One experience's numbers, as they are had the invalid stages not been scored."""

    experience: str
    value: float
    n: int
    adoptions: int
    operators: tuple[str, ...]
    scored_before: int
    average: float | None
    frozen: float | None
    environments: tuple[tuple[str, str], ...] = ()


class MemoryRestated(Event, frozen=True, kw_only=True):
    """What a reversal comes to, for every experience that it moves; residents follow as admissions and evictions."""

    scored: dict[str, int]
    """Scored stages by kind."""
    experiences: tuple[Restated, ...]
    hot_at_start: dict[str, tuple[str, ...]] = {}
    """Open stages -> what was resident when they began, where it is now another set; their credit rests on it."""


# --- the memory's own moves ----------------------------------------------------------------------------------------


class ValueUpdated(Event, frozen=True, kw_only=True):
    """ATU: (1 - alpha) * old + alpha * feedback, held within the bounds."""

    stage: str
    experience: str
    n: int
    alpha: float
    feedback: float
    old: float
    new: float
    adopted: bool


class FrequencyChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One experience's frequency before and after a stage."""

    experience: str
    old: float
    new: float
    used: bool
    averaged: bool
    """True: moving average (is or was resident); False: N / eligible."""


class FrequencyUpdated(Event, frozen=True, kw_only=True):
    """Frequencies of those offered in the stage and of those that are or were resident.

    Every other experience's follows from the counts alone: N over the scored stages of its kinds.
    """

    stage: str
    changes: tuple[FrequencyChange, ...]


class RuleDistilled(Event, frozen=True, kw_only=True):
    """An experience was given a concise rule text."""

    experience: str
    text: str
    """Blob of the rule."""
    tokens: int
    tokenizer: str
    """Who counted: a tokenizer's name, or `declared` where the caller gave the number."""
    model: str = ""


class Ranked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of the consolidation's table, in order of priority."""

    experience: str
    value: float
    frequency: float
    tokens: int
    priority: float
    resident: bool
    """Fits what was left of the budget when its turn came, and contradicts no rule above it."""
    against: str | None = None
    """The resident rule, or the winner of a settled conflict, that keeps it out."""


class Consolidated(Event, frozen=True, kw_only=True):
    """UGC: the resident set was rebuilt from empty."""

    trigger: Literal["stage", "rule", "retire", "supersede", "conflict", "policy", "reversal"]
    subject: str
    """The stage, or the experience whose rule or retirement it was."""
    budget: int
    used: int
    ranked: tuple[Ranked, ...]
    candidates: int | None = None
    """How many there were, where the table does not list them all."""
    ranks: tuple[int, ...] = ()
    """Then the rank of each line, from 1."""


class RuleAdmitted(Event, frozen=True, kw_only=True):
    """A rule became resident."""

    experience: str
    subject: str
    rank: int
    """From 1, in the table before it."""
    priority: float
    tokens: int


class RuleEvicted(Event, frozen=True, kw_only=True):
    """A rule left the resident set; its experience can be retrieved again."""

    experience: str
    subject: str
    reason: str


# --- names on disk -------------------------------------------------------------------------------------------------

NAMES: dict[str, tuple[type[Event], int]] = {
    "library.created": (LibraryCreated, 1),
    "library.policy_changed": (PolicyChanged, 1),
    "experience.recorded": (ExperienceRecorded, 1),
    "experience.amended": (ExperienceAmended, 1),
    "experience.retired": (ExperienceRetired, 1),
    "experience.superseded": (ExperienceSuperseded, 1),
    "experience.conflict_recorded": (ConflictRecorded, 1),
    "experience.conflict_resolved": (ConflictResolved, 1),
    "experience.revalidation_required": (RevalidationRequired, 1),
    "experience.revalidated": (Revalidated, 1),
    "experience.embedded": (ExperienceEmbedded, 1),
    "experience.redacted": (ExperienceRedacted, 1),
    "task.started": (TaskStarted, 1),
    "task.finished": (TaskFinished, 1),
    "stage.started": (StageStarted, 1),
    "stage.experiences_retrieved": (ExperiencesRetrieved, 1),
    "stage.rules_presented": (RulesPresented, 1),
    "stage.rule_withheld": (RuleWithheld, 1),
    "stage.adoption_decided": (AdoptionDecided, 1),
    "stage.candidate_proposed": (CandidateProposed, 1),
    "stage.candidate_compiled": (CandidateCompiled, 1),
    "stage.candidate_verified": (CandidateVerified, 1),
    "stage.candidate_measured": (CandidateMeasured, 1),
    "stage.diagnosed": (StageDiagnosed, 1),
    "stage.cost_incurred": (CostIncurred, 1),
    "stage.outcome_reported": (OutcomeReported, 1),
    "stage.scored": (StageScored, 1),
    "stage.abandoned": (StageAbandoned, 1),
    "stage.invalidated": (StageInvalidated, 1),
    "stage.reinstated": (StageReinstated, 1),
    "memory.restated": (MemoryRestated, 1),
    "value.updated": (ValueUpdated, 1),
    "frequency.updated": (FrequencyUpdated, 1),
    "rule.distilled": (RuleDistilled, 1),
    "memory.consolidated": (Consolidated, 1),
    "rule.admitted": (RuleAdmitted, 1),
    "rule.evicted": (RuleEvicted, 1),
}
"""Name on disk -> (event, schema number written today). A name is never reused for something else."""

NAME_OF: dict[type[Event], str] = {event: name for name, (event, _) in NAMES.items()}
