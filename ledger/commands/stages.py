"""Stages: open, retrieve, decide, propose, report, score."""

from __future__ import annotations

from ledger import errors, verdict, views, wire
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.state import Environment, Experience
from ledger.service import Batch, Call, Ledger


def open_(ledger: Ledger, call: Call, library: str, task: str, new: wire.NewStage) -> wire.OpenedStage | bytes:
    """Begin a stage; answers with the resident rules."""

    def command(batch: Batch) -> None:
        operator = new.operator or decide.task_of(batch.state, task).operator
        batch.emit(
            decide.open_stage(
                batch.state,
                ev.StageStarted(stage=new.stage, task=task, kind=new.kind, operator=operator, basis=new.basis),
            )
        )

    def answer(batch: Batch) -> wire.OpenedStage:
        stage = batch.state.stages[new.stage]
        where = batch.state.tasks[task].where
        rules = [_rule(ledger, batch.state.experiences[name], where) for name in stage.rules]
        return wire.OpenedStage(stage=views.stage(stage), rules=rules)

    return ledger.execute(library, call, command, answer)


def _rule(ledger: Ledger, item: Experience, where: Environment) -> wire.PresentedRule:
    return wire.PresentedRule(
        experience=item.id,
        rule=(ledger.text(item.rule) if item.rule else None) or "",
        value=item.value,
        tokens=item.tokens or 0,
        needs_revalidation=item.needs_revalidation(where),
    )


def show(ledger: Ledger, library: str, name: str) -> wire.Stage:
    """One stage as it stands."""
    with ledger.reading(library) as state:
        return views.stage(decide.stage_of(state, name))


def decide_on(ledger: Ledger, call: Call, library: str, name: str, given: wire.Decisions) -> wire.Stage | bytes:
    """Record decisions on offers, all or none."""

    def command(batch: Batch) -> None:
        batch.emit(
            decide.decide_adoptions(
                batch.state, name, [ev.AdoptionDecided(stage=name, **item.model_dump()) for item in given.decisions]
            )
        )

    return ledger.execute(library, call, command, lambda batch: views.stage(batch.state.stages[name]))


def propose(ledger: Ledger, call: Call, library: str, name: str, new: wire.NewCandidate) -> wire.Candidate | bytes:
    """Record a kernel; it takes one round."""

    def command(batch: Batch) -> None:
        batch.emit(
            decide.propose_candidate(
                batch.state,
                decide.NewCandidate(
                    stage=name,
                    candidate=new.candidate,
                    source=batch.blob(new.source),
                    language=new.language,
                    change=new.change,
                    hypothesis=new.hypothesis,
                    parent=new.parent,
                ),
            )
        )

    return ledger.execute(library, call, command, lambda batch: _candidate(batch, name, new.candidate))


def _candidate(batch: Batch, stage: str, name: str) -> wire.Candidate:
    task = batch.state.tasks[batch.state.stages[stage].task]
    return views.candidate(batch.state, task.candidates[name])


def hand_in(
    ledger: Ledger, call: Call, library: str, name: str, candidate: str, report: wire.Report
) -> wire.Candidate | bytes:
    """Take a judge's report; its facts are read here. Raises JudgeUnknownError."""
    if ledger.judges and report.judge_key not in ledger.judges:
        raise errors.JudgeUnknownError(report.judge_key)

    def command(batch: Batch) -> None:
        stage = decide.stage_of(batch.state, name)
        subject = decide.candidate_of(batch.state, stage, candidate)
        facts = verdict.facts(report, stage=name, candidate=candidate, source=subject.source, operator=stage.operator)
        batch.blob(verdict.blob_of(report))
        batch.emit(decide.hand_in_report(batch.state, name, candidate, facts))

    return ledger.execute(library, call, command, lambda batch: _candidate(batch, name, candidate))


def _appended(batch: Batch) -> wire.Appended:
    return wire.Appended(first=batch.numbered()[0][0], last=batch.state.sequence)


def diagnose(ledger: Ledger, call: Call, library: str, name: str, given: wire.Diagnosis) -> wire.Appended | bytes:
    """Record what a tool's evidence said."""

    def command(batch: Batch) -> None:
        event = ev.StageDiagnosed(stage=name, **given.model_dump())
        batch.emit(decide.add_to_stage(batch.state, name, event))

    return ledger.execute(library, call, command, _appended)


def cost(ledger: Ledger, call: Call, library: str, name: str, given: wire.Cost) -> wire.Appended | bytes:
    """Record what a step cost."""

    def command(batch: Batch) -> None:
        batch.emit(decide.incur_cost(batch.state, ev.CostIncurred(stage=name, **given.model_dump())))

    return ledger.execute(library, call, command, _appended)


def report_outcome(
    ledger: Ledger, call: Call, library: str, name: str, told: wire.ReportedOutcome
) -> wire.Appended | bytes:
    """Record a verdict by hand."""

    def command(batch: Batch) -> None:
        kind = decide.stage_of(batch.state, name).kind
        if (kind == "correctness") != (told.correct is not None) or (kind == "optimization") != (
            told.first_ms is not None
        ):
            raise errors.InvalidInputError(
                f"the outcome of a {kind} stage is told by "
                + ("`correct` alone" if kind == "correctness" else "`first_ms` and, where there is one, `best_ms`"),
                stage=name,
            )
        batch.emit(decide.report_outcome(batch.state, ev.OutcomeReported(stage=name, **told.model_dump())))

    return ledger.execute(library, call, command, _appended)


def score(ledger: Ledger, call: Call, library: str, name: str) -> wire.Score | bytes:
    """Close a stage with the score that its facts come to."""

    def command(batch: Batch) -> None:
        batch.emit(decide.score_stage(batch.state, name))

    return ledger.execute(library, call, command, lambda batch: views.score(batch.state, batch.numbered()))


def abandon(ledger: Ledger, call: Call, library: str, name: str, reason: str) -> wire.Stage | bytes:
    """Close a stage without a score."""

    def command(batch: Batch) -> None:
        batch.emit(decide.abandon_stage(batch.state, name, reason))

    return ledger.execute(library, call, command, lambda batch: views.stage(batch.state.stages[name]))
