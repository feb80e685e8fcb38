"""Traces: the log of another harness as JSON lines, taken in record by record, each whole or not at all.

Records are `experience`, `stage`, `rule` and `retire`. A stage's verdict in a trace is somebody's word, not a judge's
report, and is recorded as such.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ledger import views, wire
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.state import State
from ledger.errors import LedgerError, TraceInvalidError
from ledger.service import Batch, Call, Ledger


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExperienceRecord(_Record):
    """A new experience."""

    record: Literal["experience"]
    id: wire.Id
    title: wire.Line
    body: wire.Text = ""
    stages: Annotated[tuple[wire.StageKind, ...], Field(min_length=1)] = ("correctness", "optimization")
    conditions: wire.Conditions = wire.Conditions()


class AdoptionRecord(_Record):
    """One decision; the last word of several on one experience does not undo an adoption."""

    experience: wire.Id
    adopted: wire.Flag
    reason: wire.Reason


class OutcomeRecord(_Record):
    """Correctness: `correct`. Optimization: `first_ms`, and `best_ms` (null: nothing verified was faster)."""

    correct: wire.Flag | None = None
    first_ms: wire.Milliseconds | None = None
    best_ms: wire.Milliseconds | None = None


class StageRecord(_Record):
    """A scored stage."""

    record: Literal["stage"]
    id: wire.Id
    task: wire.Id
    operator: wire.Line
    kind: wire.StageKind
    retrieved: tuple[wire.Id, ...]
    adoptions: tuple[AdoptionRecord, ...]
    outcome: OutcomeRecord
    level: wire.Whole = 0
    model: wire.Line = "import"


class RuleRecord(_Record):
    """The rule text of an experience, with its length in tokens as the source counted it."""

    record: Literal["rule"]
    experience: wire.Id
    text: wire.Text
    tokens: wire.Positive


class RetireRecord(_Record):
    """An experience that is offered no more."""

    record: Literal["retire"]
    experience: wire.Id
    reason: wire.Reason


TraceRecord = Annotated[ExperienceRecord | StageRecord | RuleRecord | RetireRecord, Field(discriminator="record")]
_READ: TypeAdapter[ExperienceRecord | StageRecord | RuleRecord | RetireRecord] = TypeAdapter(TraceRecord)


def import_trace(
    ledger: Ledger, call: Call, library: str, lines: Iterable[bytes], *, resume: bool = False
) -> wire.ImportedTrace:
    """Take a trace in, line by line. Raises TraceInvalidError with the line; what came before it is stored.

    With `resume`, records that the library holds already are passed over, so that an import that broke off goes on.
    """
    with ledger.reading(library) as state:
        before = state.sequence
    records = 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901 - the mark is no part of the first record
        if not line.strip():
            continue
        records += _import_line(ledger, call, library, number, line, resume=resume)
    with ledger.reading(library) as state:
        return wire.ImportedTrace(records=records, events=state.sequence - before, sequence=state.sequence)


def _held(state: State, record: ExperienceRecord | StageRecord | RuleRecord | RetireRecord) -> bool:
    """Whether the library holds this very record; the same id with another content is left to be refused."""
    match record:
        case ExperienceRecord():
            known = state.experiences.get(record.id)
            return known is not None and known.body == hashlib.sha256(record.body.encode()).hexdigest()
        case StageRecord():
            stage = state.stages.get(record.id)
            return (
                stage is not None
                and stage.status == "scored"
                and (stage.task, stage.operator, stage.kind) == (record.task, record.operator, record.kind)
                and tuple(stage.retrieved) == tuple(dict.fromkeys(record.retrieved))
                and stage.outcome is not None
                and (stage.outcome.correct, stage.outcome.first_ms, stage.outcome.best_ms)
                == (record.outcome.correct, record.outcome.first_ms, record.outcome.best_ms)
            )
        case RuleRecord():
            known = state.experiences.get(record.experience)
            return known is not None and known.rule == hashlib.sha256(record.text.encode()).hexdigest()
        case RetireRecord():
            known = state.experiences.get(record.experience)
            return known is not None and known.retired


def _import_line(ledger: Ledger, call: Call, library: str, number: int, line: bytes, *, resume: bool) -> bool:
    try:
        record = _READ.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TraceInvalidError(number, f"{where or 'record'}: {first['msg']}", "trace-invalid") from None

    def command(batch: Batch) -> None:
        if resume and _held(batch.state, record):
            return
        match record:
            case ExperienceRecord():
                _experience(batch, record)
            case StageRecord():
                _stage(batch, record)
            case RuleRecord():
                _rule(batch, record)
            case RetireRecord():
                batch.emit(decide.retire_experience(batch.state, record.experience, record.reason))

    try:
        taken: list[int] = []
        ledger.execute(library, Call(actor=call.actor), command, lambda batch: taken.append(len(batch.events)))
    except LedgerError as error:
        raise TraceInvalidError(number, error.message, error.code) from error
    return bool(taken[-1])


def _experience(batch: Batch, record: ExperienceRecord) -> None:
    batch.emit(
        decide.record_experience(
            batch.state,
            ev.ExperienceRecorded(
                experience=record.id,
                title=record.title,
                body=batch.blob(record.body),
                stages=tuple(dict.fromkeys(record.stages)),
                source=ev.Source(kind="import"),
                conditions=views.conditions(record.conditions),
            ),
        )
    )


def _rule(batch: Batch, record: RuleRecord) -> None:
    rule = ev.RuleDistilled(
        experience=record.experience, text=batch.blob(record.text), tokens=record.tokens, tokenizer="declared"
    )
    batch.emit(decide.distill_rule(batch.state, rule))


def _stage(batch: Batch, record: StageRecord) -> None:
    state = batch.state
    if record.task not in state.tasks:
        task = ev.TaskStarted(
            task=record.task, operator=record.operator, level=record.level, model=record.model, budget=1
        )
        batch.emit(decide.start_task(state, task))
    opened = ev.StageStarted(
        stage=record.id, task=record.task, kind=record.kind, operator=record.operator, basis="reported"
    )
    batch.emit(decide.open_stage(state, opened))
    retrieved = tuple(dict.fromkeys(record.retrieved))
    batch.emit(decide.retrieve(state, ev.ExperiencesRetrieved(stage=record.id, query="", pool=(), offered=retrieved)))
    decisions = [
        ev.AdoptionDecided(stage=record.id, experience=item.experience, adopted=item.adopted, reason=item.reason)
        for item in record.adoptions
    ]
    batch.emit(decide.decide_adoptions(state, record.id, decisions))
    told = ev.OutcomeReported(stage=record.id, source="trace", **record.outcome.model_dump())
    batch.emit(decide.report_outcome(state, told))
    batch.emit(decide.score_stage(state, record.id))
