"""The trace format: the log of a library, or of another harness, as JSON lines. `docs/trace.md` describes it.

A record is one thing that happened. `stage` tells a whole stage at once, its verdict somebody's word; the long form
tells it step by step (`open`, `retrieve`, `decide`, `candidate`, `report` ..., `score`), with the judge's signed
reports.
What the ledger computes is in no record: an import computes it again.
"""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ledger import wire
from ledger.repeats import without_repeats

ERASED = "[erased]"
"""Stands in a trace for a text that a redaction took out."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Origin(wire.Wire):
    """Which log a trace was written from: `head` is the hash of its last record, in hex."""

    library: str
    sequence: wire.Count
    head: wire.Sha256


class LibraryRecord(wire.Wire):
    """First line, where there is one: the policy that the library was made under."""

    record: Literal["library"]
    policy: dict[str, Any]
    policy_name: wire.Line = "custom"
    title: str = ""
    origin: Origin | None = None


class PolicyRecord(wire.Wire):
    """Another policy holds from here on; all fields."""

    record: Literal["policy"]
    policy: dict[str, Any]
    policy_name: wire.Line = "custom"
    reason: wire.Reason


class SourceOf(wire.Wire):
    """Where an experience came from; `texts` are the texts themselves."""

    kind: Literal["document", "differential", "repair", "person", "import"] = "import"
    name: wire.Line = ""
    texts: tuple[wire.Text, ...] = ()


class ExperienceRecord(wire.Wire):
    """A new experience."""

    record: Literal["experience"]
    id: wire.Id
    title: wire.Title
    body: wire.Text = ""
    stages: Annotated[tuple[wire.StageKind, ...], Field(min_length=1)] = ("correctness", "optimization")
    conditions: wire.Conditions = wire.Conditions()
    source: SourceOf = SourceOf()


class AmendRecord(wire.AmendExperience):
    """Another text."""

    record: Literal["amend"]
    experience: wire.Id


class RuleRecord(wire.Wire):
    """The rule text of an experience, with its length in tokens as the source counted it."""

    record: Literal["rule"]
    experience: wire.Id
    text: wire.RuleText
    tokens: wire.Positive
    tokenizer: str = "declared"
    model: str = ""


class RetireRecord(wire.Wire):
    """An experience that is offered no more."""

    record: Literal["retire"]
    experience: wire.Id
    reason: wire.Reason


class SupersedeRecord(wire.Supersession):
    """A newer experience took its place."""

    record: Literal["supersede"]
    experience: wire.Id


class ConflictRecord(wire.NewConflict):
    """Two experiences contradict each other."""

    record: Literal["conflict"]


class SettleRecord(wire.ConflictEnd):
    """A conflict is settled."""

    record: Literal["settle"]
    conflict: wire.Id


class ReversalRecord(wire.NewReversal):
    """Verdicts were withdrawn, or count again."""

    record: Literal["invalidate", "reinstate"]


class AdoptionRecord(wire.Wire):
    """One decision; the last word of several on one experience does not undo an adoption."""

    experience: wire.Id
    adopted: wire.Flag
    reason: Annotated[str, Field(min_length=1, max_length=20_000)]


class OutcomeRecord(wire.Wire):
    """Correctness: `correct`. Optimization: `first_ms`, and `best_ms` (null: nothing verified was faster)."""

    correct: wire.Flag | None = None
    first_ms: wire.Milliseconds | None = None
    best_ms: wire.Milliseconds | None = None


class StageRecord(wire.Wire):
    """A whole scored stage, told where it was scored."""

    record: Literal["stage"]
    id: wire.Id
    task: wire.Id
    operator: wire.Title
    kind: wire.StageKind
    retrieved: tuple[wire.Id, ...]
    adoptions: tuple[AdoptionRecord, ...]
    outcome: OutcomeRecord
    level: wire.Whole = 0
    model: wire.Line = "import"


class TaskRecord(wire.NewTask):
    """A task was started."""

    record: Literal["task"]


class FinishRecord(wire.FinishTask):
    """A task ended."""

    record: Literal["finish"]
    task: wire.Id


class OpenRecord(wire.NewStage):
    """A stage began; what was presented and withheld follows from the residents."""

    record: Literal["open"]
    task: wire.Id


class PoolRecord(wire.Wire):
    """One experience in the pool of a retrieval, with its scores."""

    experience: wire.Id
    relevance: Number
    value: Number
    score: Number
    lexical: Number | None = None
    dense: Number | None = None


class RetrieveRecord(wire.Wire):
    """Experiences were offered in an open stage, in this order."""

    record: Literal["retrieve"]
    stage: wire.Id
    offered: tuple[wire.Id, ...]
    query: Annotated[str, Field(max_length=20_000)] = ""
    pool: tuple[PoolRecord, ...] = ()
    fusion: wire.Line = "lexical"
    model: wire.Line = ""


class DecideRecord(wire.Decision):
    """A decision on one offer."""

    record: Literal["decide"]
    stage: wire.Id


class CandidateRecord(wire.NewCandidate):
    """A kernel was written; `source` is its text."""

    record: Literal["candidate"]
    stage: wire.Id


class ReportRecord(wire.Report):
    """The judge's report on a candidate, with its signature, which an import checks."""

    record: Literal["report"]
    stage: wire.Id
    candidate: wire.Id


class DiagnoseRecord(wire.Diagnosis):
    """How a result was read."""

    record: Literal["diagnose"]
    stage: wire.Id


class BlobRecord(wire.Wire):
    """A text that a diagnosis names by its hash."""

    record: Literal["blob"]
    text: wire.Text


class CostRecord(wire.Cost):
    """What a step cost."""

    record: Literal["cost"]
    stage: wire.Id | None = None
    task: wire.Id | None = None


class OutcomeTold(wire.ReportedOutcome):
    """The outcome of an open stage, by hand."""

    record: Literal["outcome"]
    stage: wire.Id


class ScoreRecord(wire.Wire):
    """An open stage was closed with a score."""

    record: Literal["score"]
    stage: wire.Id


class AbandonRecord(wire.Abandonment):
    """An open stage was closed without a score."""

    record: Literal["abandon"]
    stage: wire.Id


TraceRecord = (
    LibraryRecord
    | PolicyRecord
    | ExperienceRecord
    | AmendRecord
    | RuleRecord
    | RetireRecord
    | SupersedeRecord
    | ConflictRecord
    | SettleRecord
    | ReversalRecord
    | StageRecord
    | TaskRecord
    | FinishRecord
    | OpenRecord
    | RetrieveRecord
    | DecideRecord
    | CandidateRecord
    | ReportRecord
    | DiagnoseRecord
    | BlobRecord
    | CostRecord
    | OutcomeTold
    | ScoreRecord
    | AbandonRecord
)
_READ: TypeAdapter[TraceRecord] = TypeAdapter(Annotated[TraceRecord, Field(discriminator="record")])


def read(line: bytes) -> TraceRecord:
    """One line as a record. Raises pydantic.ValidationError, and ValueError where a key stands twice."""
    with contextlib.suppress(json.JSONDecodeError, UnicodeDecodeError):  # what is no JSON is told about below
        json.loads(line, object_pairs_hook=without_repeats)
    return _READ.validate_json(line)


def canonical(record: TraceRecord) -> bytes:
    """The record's JSON with every field, so that equal records are equal bytes."""
    return record.model_dump_json().encode()
