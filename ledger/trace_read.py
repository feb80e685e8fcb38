"""Taking a trace in: many records a transaction, each whole or not at all, refused by line."""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ledger import errors, trace, verdict, views, wire
from ledger.commands.governance import reverse_in
from ledger.commands.libraries import resolve_policy
from ledger.domain import decide, govern
from ledger.domain import events as ev
from ledger.domain.policy import Policy, from_mapping
from ledger.errors import LedgerError, TraceInvalidError
from ledger.service import Batch, Call, Ledger
from ledger.transfer import held_records

CHUNK = 256
"""Records a transaction, at most."""
CHUNK_BYTES = 4 << 20


@dataclass
class _Line:
    number: int
    record: trace.TraceRecord
    size: int


@dataclass
class _Import:
    """One import: where it goes, under which policy a library is made, and what is passed over."""

    ledger: Ledger
    actor: str
    library: str
    wanted: tuple[Policy, str] | None
    create: bool
    resume: bool
    held: Counter[bytes] = field(default_factory=Counter)
    title: str = ""
    read: int = 0
    taken: int = 0

    def exists(self) -> bool:
        return self.library in self.ledger.libraries()


def import_trace(
    ledger: Ledger,
    call: Call,
    library: str,
    lines: Iterable[bytes],
    *,
    resume: bool = False,
    policy: str | Mapping[str, Any] | None = None,
    create: bool = False,
) -> wire.ImportedTrace:
    """Take a trace in, line by line. Raises TraceInvalidError with the line; what came before it is stored.

    With `create` or a `policy` a library that is not there is made with the first record: under `policy`, else that of
    the trace's `library` record, else `sage`. A library that is there must have that policy: raises PolicyError,
    UnknownLibraryError. With `resume`, records that the library holds already are passed over, so that an import that
    broke off goes on.
    """
    wanted = resolve_policy(policy) if policy is not None else None
    job = _Import(ledger, call.actor, library, wanted, create or policy is not None, resume)
    exists = job.exists()
    if not exists and not job.create:
        raise errors.UnknownLibraryError(library, ledger.libraries())
    before = ledger.head(library) if exists else 1
    if exists and wanted is not None:
        _same_policy(job, wanted[0], None)
    if exists and resume:
        job.held = Counter(hashlib.sha256(trace.canonical(r)).digest() for r in held_records(ledger, library))
    for chunk in _chunks(job, lines):
        if chunk:
            _take(job, chunk)
    if not job.exists():
        _take(job, [])
    with ledger.reading(library) as state:
        return wire.ImportedTrace(records=job.taken, events=state.sequence - before, sequence=state.sequence)


def _chunks(job: _Import, lines: Iterable[bytes]) -> Iterator[list[_Line]]:
    """Records in runs of one transaction each; a line that can not be read ends them, after what came before it."""
    chunk: list[_Line] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901 - the mark is no part of the first record
        if not line.strip():
            continue
        try:
            record = trace.read(line)
        except ValidationError as error:
            yield chunk
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TraceInvalidError(number, f"{where or 'record'}: {first['msg']}", "trace-invalid") from None
        except ValueError as error:
            yield chunk
            raise TraceInvalidError(number, str(error), "trace-invalid") from None
        job.read += 1
        if isinstance(record, trace.LibraryRecord):
            yield chunk
            chunk, size = [], 0
            _begin(job, number, record)
            continue
        if job.held and job.held[key := hashlib.sha256(trace.canonical(record)).digest()] > 0:
            job.held[key] -= 1
            continue
        # What a reversal comes to is computed from the stored log.
        alone = isinstance(record, trace.ReversalRecord)
        if alone or len(chunk) == CHUNK or size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(_Line(number, record, len(line)))
        size += len(line)
        if alone:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _begin(job: _Import, number: int, record: trace.LibraryRecord) -> None:
    """The trace's own policy: that of the library to make, or of the one that is there."""
    if job.read > 1:
        raise TraceInvalidError(number, "a `library` record is the first of a trace", "trace-invalid")
    try:
        told = from_mapping(record.policy)
    except errors.PolicyError as error:
        raise TraceInvalidError(number, error.message, error.code) from None
    if job.exists():
        if job.wanted is None:
            _same_policy(job, told, number)
        return
    if job.wanted is None:
        job.wanted = (told, record.policy_name)
    job.title = record.title


def _same_policy(job: _Import, wanted: Policy, number: int | None) -> None:
    with job.ledger.reading(job.library) as state:
        there = state.policy.to_mapping()
    if job.resume and number is not None:
        # The trace may go on to change it, as the library has done since.
        created = next(iter(job.ledger.facts(job.library, until=1)))
        if isinstance(created, ev.LibraryCreated):
            there = created.policy.to_mapping()
    differing = [name for name, value in wanted.to_mapping().items() if value != there[name]]
    if not differing:
        return
    fields = ", ".join(differing)
    if number is None:
        raise errors.PolicyError(
            f"library {job.library!r} exists under another policy (they differ in {fields}); import into a new "
            "library, or give no policy",
            library=job.library,
        )
    raise TraceInvalidError(
        number,
        f"the trace was made under another policy than that of library {job.library!r} (they differ in {fields}); "
        "import into a new library, or without this line",
        "policy-invalid",
    )


def _take(job: _Import, chunk: list[_Line]) -> None:
    """Store a run of records in one transaction; where one is refused, those before it, and then say so."""
    failed: list[_Line] = []

    def command(batch: Batch) -> None:
        if not batch.state.sequence:
            chosen, name = job.wanted or resolve_policy("sage")
            batch.emit(decide.create_library(chosen, name, job.title))
        for line in chunk:
            failed[:] = [line]
            apply(job.ledger, batch, job.library, line.record)
        failed.clear()

    try:
        job.ledger.execute(job.library, Call(actor=job.actor), command, lambda _: None, create=job.create)
    except LedgerError as error:
        line = failed[0] if failed else None
        if line is None:
            raise
        good = chunk[: chunk.index(line)]
        if good:
            _take(job, good)
        raise TraceInvalidError(line.number, error.message, error.code) from error
    job.taken += len(chunk)


def apply(ledger: Ledger, batch: Batch, library: str, record: trace.TraceRecord) -> None:  # noqa: C901, PLR0912, PLR0915 - one arm a record
    """Decide on one record as the live command would. Raises what the command refuses with."""
    state = batch.state
    match record:
        case trace.StageRecord():
            _stage(batch, record)
        case trace.ExperienceRecord():
            source = ev.Source(
                kind=record.source.kind,
                name=record.source.name,
                texts=tuple(batch.blob(text) for text in record.source.texts),
            )
            new = ev.ExperienceRecorded(
                experience=record.id,
                title=record.title,
                body=batch.blob(record.body),
                stages=tuple(dict.fromkeys(record.stages)),
                source=source,
                conditions=views.conditions(record.conditions),
            )
            batch.emit(decide.record_experience(state, new))
        case trace.AmendRecord():
            amended = ev.ExperienceAmended(
                experience=record.experience,
                title=record.title,
                body=batch.blob(record.body),
                reason=record.reason,
                conditions=None if record.conditions is None else views.conditions(record.conditions),
            )
            batch.emit(decide.amend_experience(state, amended))
        case trace.RuleRecord():
            rule = ev.RuleDistilled(text=batch.blob(record.text), **_fields(record, "text"))
            batch.emit(decide.distill_rule(state, rule))
        case trace.RetireRecord():
            batch.emit(decide.retire_experience(state, record.experience, record.reason))
        case trace.SupersedeRecord():
            batch.emit(govern.supersede_experience(state, record.experience, record.by, record.reason))
        case trace.ConflictRecord():
            batch.emit(govern.record_conflict(state, ev.ConflictRecorded(**_fields(record))))
            batch.emit(govern.reconsolidate(state, "conflict", record.conflict))
        case trace.SettleRecord():
            batch.emit(govern.resolve_conflict(state, ev.ConflictResolved(**_fields(record))))
            batch.emit(govern.reconsolidate(state, "conflict", record.conflict))
        case trace.ReversalRecord():
            reverse_in(ledger, batch, library, record, record.record)
        case trace.PolicyRecord():
            batch.emit(govern.change_policy(state, from_mapping(record.policy), record.policy_name, record.reason))
            batch.emit(govern.reconsolidate(state, "policy", record.policy_name))
        case trace.TaskRecord():
            batch.emit(decide.start_task(state, ev.TaskStarted(**_fields(record))))
        case trace.FinishRecord():
            batch.emit(decide.finish_task(state, record.task, summary=record.summary))
        case trace.OpenRecord():
            operator = record.operator or decide.task_of(state, record.task).operator
            batch.emit(decide.open_stage(state, ev.StageStarted(operator=operator, **_fields(record, "operator"))))
        case trace.RetrieveRecord():
            pool = tuple(ev.PoolEntry(**entry.model_dump()) for entry in record.pool)
            found = ev.ExperiencesRetrieved(pool=pool, **_fields(record, "pool"))
            batch.emit(decide.retrieve(state, found))
        case trace.DecideRecord():
            batch.emit(decide.decide_adoptions(state, record.stage, [ev.AdoptionDecided(**_fields(record))]))
        case trace.CandidateRecord():
            made = decide.NewCandidate(source=batch.blob(record.source), **_fields(record, "source"))
            batch.emit(decide.propose_candidate(state, made))
        case trace.ReportRecord():
            _report(ledger, batch, record)
        case trace.DiagnoseRecord():
            batch.emit(decide.add_to_stage(state, record.stage, ev.StageDiagnosed(**_fields(record))))
        case trace.BlobRecord():
            data = record.text.encode()
            ledger.put_blob(hashlib.sha256(data).hexdigest(), data)
        case trace.CostRecord():
            batch.emit(decide.incur_cost(state, ev.CostIncurred(**_fields(record))))
        case trace.OutcomeTold():
            batch.emit(decide.report_outcome(state, ev.OutcomeReported(**_fields(record))))
        case trace.ScoreRecord():
            batch.emit(decide.score_stage(state, record.stage))
        case trace.AbandonRecord():
            batch.emit(decide.abandon_stage(state, record.stage, record.reason))
        case trace.LibraryRecord():
            raise TypeError(record)


def _fields(record: trace.TraceRecord, *without: str) -> dict[str, Any]:
    """The record's fields, which are the event's."""
    return record.model_dump(exclude={"record", *without})


def _report(ledger: Ledger, batch: Batch, record: trace.ReportRecord) -> None:
    if ledger.judges and record.judge_key not in ledger.judges:
        raise errors.JudgeUnknownError(record.judge_key)
    stage = decide.stage_of(batch.state, record.stage)
    subject = decide.candidate_of(batch.state, stage, record.candidate)
    facts = verdict.facts(
        record, stage=stage.id, candidate=record.candidate, source=subject.source, operator=stage.operator
    )
    batch.blob(verdict.blob_of(record))
    batch.emit(decide.hand_in_report(batch.state, stage.id, record.candidate, facts))


def _stage(batch: Batch, record: trace.StageRecord) -> None:
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
