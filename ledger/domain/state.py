"""The state of one library as a fold over its events: `initial()`, then `evolve(state, event)` for each, in order.

The fold owns its state and changes it in place, because a library of 10^5 events is opened by it; nobody else writes
to a `State`. It is total: an event that this version does not know moves the position and changes nothing else.

Beside what an event changes, the fold notes its sequence with the stages and experiences that it bears on, so that an
answer to `why` reads those events and not the whole log; `ledger.domain.whereabouts` gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ledger.domain import events as ev
from ledger.domain.model import (
    Candidate,
    Conflict,
    Environment,
    Experience,
    Stage,
    State,
    Task,
    frequency,
    initial,
)

__all__ = ["Candidate", "Conflict", "Environment", "Experience", "Stage", "State", "Task"]
__all__ += ["evolve", "evolve_all", "frequency", "initial"]


def _library_created(state: State, event: ev.LibraryCreated) -> None:
    state.policy = event.policy
    state.policy_name = event.policy_name
    state.title = event.title


def _policy_changed(state: State, event: ev.PolicyChanged) -> None:
    state.policy = event.policy
    state.policy_name = event.policy_name


def _experience_recorded(state: State, event: ev.ExperienceRecorded) -> None:
    state.experiences[event.experience] = Experience(
        id=event.experience,
        title=event.title,
        body=event.body,
        stages=event.stages,
        conditions=event.conditions,
        source=event.source,
        recorded=state.sequence,
        scored_before=state.eligible(event.stages),
        trail=[state.sequence],
    )


def _experience_amended(state: State, event: ev.ExperienceAmended) -> None:
    experience = state.experiences[event.experience]
    experience.title = event.title
    experience.body = event.body
    if event.conditions is not None:
        experience.conditions = event.conditions
    experience.vectors.clear()
    experience.trail.append(state.sequence)


def _experience_retired(state: State, event: ev.ExperienceRetired) -> None:
    experience = state.experiences[event.experience]
    experience.frozen = frequency(experience, state.eligible(experience.stages))
    experience.trail.append(state.sequence)


def _experience_superseded(state: State, event: ev.ExperienceSuperseded) -> None:
    experience = state.experiences[event.experience]
    experience.frozen = frequency(experience, state.eligible(experience.stages))
    experience.superseded_by = event.by
    experience.trail.append(state.sequence)


def _conflict_recorded(state: State, event: ev.ConflictRecorded) -> None:
    conflict = Conflict(event.conflict, event.first, event.second, event.reason)
    state.conflicts[event.conflict] = conflict
    for name in (event.first, event.second):
        state.conflicts_of.setdefault(name, []).append(conflict)
        state.experiences[name].trail.append(state.sequence)


def _conflict_resolved(state: State, event: ev.ConflictResolved) -> None:
    conflict = state.conflicts[event.conflict]
    conflict.open = False
    conflict.loser = event.loser
    for name in (conflict.first, conflict.second):
        state.experiences[name].trail.append(state.sequence)


def _revalidation_required(state: State, event: ev.RevalidationRequired) -> None:
    experience = state.experiences[event.experience]
    experience.questioned.add((event.chip, event.toolkit))
    experience.trail.append(state.sequence)


def _revalidated(state: State, event: ev.Revalidated) -> None:
    state.experiences[event.experience].trail.append(state.sequence)


def _embedded(state: State, event: ev.ExperienceEmbedded) -> None:
    state.experiences[event.experience].vectors[f"{event.model}@{event.version}"] = event.vector


def _reversed(state: State, event: ev.StageInvalidated | ev.StageReinstated) -> None:
    state.reversal = state.sequence
    invalid = isinstance(event, ev.StageInvalidated)
    kind, _, name = event.subject.partition(":")
    if kind == "candidate":
        (state.withdrawn.add if invalid else state.withdrawn.discard)(name)
    else:
        named = state.tasks[name].stages if kind == "task" else [name]
        for stage in (state.stages[one] for one in named if state.stages[one].status == "scored"):
            ended = stage.reversals if kind == "stage" else {event.subject}
            stage.reversals = stage.reversals | {event.subject} if invalid else stage.reversals - ended
    for stage in (state.stages[one] for one in event.stages):
        stage.invalid = invalid
        stage.trail.append(state.sequence)


def _restated(state: State, event: ev.MemoryRestated) -> None:
    state.scored = dict(event.scored)
    for name, residents in event.hot_at_start.items():
        state.stages[name].residents_at_start = frozenset(residents)
    for told in event.experiences:
        experience = state.experiences[told.experience]
        experience.value = told.value
        experience.n = told.n
        experience.adoptions = told.adoptions
        experience.operators = set(told.operators)
        experience.scored_before = told.scored_before
        experience.average = told.average
        experience.frozen = told.frozen
        experience.environments = {(chip, toolkit) for chip, toolkit in told.environments}
        experience.trail += (state.reversal, state.sequence)
        if told.average is None:
            state.averaged.discard(told.experience)
        else:
            state.averaged.add(told.experience)


def _task_started(state: State, event: ev.TaskStarted) -> None:
    state.tasks[event.task] = Task(
        id=event.task,
        operator=event.operator,
        level=event.level,
        model=event.model,
        budget=event.budget,
        family=event.family,
        dtype=event.dtype,
        language=event.language,
        configuration=event.configuration,
        environment=event.environment,
        shapes=event.shapes,
    )


def _task_finished(state: State, event: ev.TaskFinished) -> None:
    task = state.tasks[event.task]
    task.finished = True
    task.solved = event.solved


def _stage_started(state: State, event: ev.StageStarted) -> None:
    state.stages[event.stage] = Stage(
        id=event.stage,
        task=event.task,
        kind=event.kind,
        operator=event.operator,
        basis=event.basis,
        residents_at_start=frozenset(state.residents),
        drawn=event.basis == "judged" and state.policy.holdout_rate > 0.0,
        trail=[state.sequence],
    )
    state.tasks[event.task].stages.append(event.stage)


def _retrieved(state: State, event: ev.ExperiencesRetrieved) -> None:
    stage = state.stages[event.stage]
    stage.retrieved.update(dict.fromkeys(event.offered))
    for trail in (stage.trail, *(state.experiences[name].trail for name in event.offered)):
        trail.append(state.sequence)


def _rules_presented(state: State, event: ev.RulesPresented) -> None:
    stage = state.stages[event.stage]
    stage.rules = event.rules
    stage.trail.append(state.sequence)


def _rule_withheld(state: State, event: ev.RuleWithheld) -> None:
    stage = state.stages[event.stage]
    stage.withheld = event.experience
    stage.trail.append(state.sequence)
    state.experiences[event.experience].trail.append(state.sequence)


def _decided(state: State, event: ev.AdoptionDecided) -> None:
    stage = state.stages[event.stage]
    name = event.experience
    already = stage.decisions.get(name, False)
    if event.adopted or not already:
        stage.reasons[name] = event.reason
    stage.decisions[name] = already or event.adopted
    stage.trail.append(state.sequence)
    state.experiences[name].trail.append(state.sequence)


def _proposed(state: State, event: ev.CandidateProposed) -> None:
    stage = state.stages[event.stage]
    stage.candidates.append(event.candidate)
    stage.trail.append(state.sequence)
    state.tasks[stage.task].candidates[event.candidate] = Candidate(
        id=event.candidate,
        stage=event.stage,
        round=event.round,
        source=event.source,
        language=event.language,
        change=event.change,
        hypothesis=event.hypothesis,
        parent=event.parent,
    )


def _candidate(state: State, stage_name: str, candidate: str) -> Candidate:
    """Find what an event tells of, and note the event with its stage."""
    stage = state.stages[stage_name]
    stage.trail.append(state.sequence)
    return state.tasks[stage.task].candidates[candidate]


def _compiled(state: State, event: ev.CandidateCompiled) -> None:
    candidate = _candidate(state, event.stage, event.candidate)
    candidate.report = event.report
    candidate.artefact = event.artefact
    state.reports[event.report] = event.candidate
    if not event.ok:
        candidate.outcome = "compile_error"
        candidate.summary = event.summary


def _verified(state: State, event: ev.CandidateVerified) -> None:
    candidate = _candidate(state, event.stage, event.candidate)
    candidate.outcome = event.outcome
    candidate.summary = event.summary
    candidate.report = event.report


def _measured(state: State, event: ev.CandidateMeasured) -> None:
    candidate = _candidate(state, event.stage, event.candidate)
    candidate.latency_ms = event.latency_ms
    candidate.reference_ms = event.reference_ms
    candidate.noise_ms = event.noise_ms


def _outcome_reported(state: State, event: ev.OutcomeReported) -> None:
    stage = state.stages[event.stage]
    stage.outcome = event
    stage.trail.append(state.sequence)


def _diagnosed(state: State, event: ev.StageDiagnosed) -> None:
    state.stages[event.stage].trail.append(state.sequence)


def _scored(state: State, event: ev.StageScored) -> None:
    stage = state.stages[event.stage]
    stage.status = "scored"
    stage.score = event.score
    stage.first = event.first
    stage.best = event.best
    stage.trail.append(state.sequence)
    state.scored[event.kind] += 1
    where = state.tasks[stage.task].where
    for name in event.offered:
        state.experiences[name].n += 1
    for name in event.adopted:
        experience = state.experiences[name]
        experience.adoptions += 1
        experience.operators.add(event.operator)
        if event.score > 0.0 and any(where):
            experience.environments.add(where)


def _abandoned(state: State, event: ev.StageAbandoned) -> None:
    stage = state.stages[event.stage]
    stage.status = "abandoned"
    stage.trail.append(state.sequence)


def _value_updated(state: State, event: ev.ValueUpdated) -> None:
    experience = state.experiences[event.experience]
    experience.value = event.new
    experience.trail.append(state.sequence)


def _frequency_updated(state: State, event: ev.FrequencyUpdated) -> None:
    for change in event.changes:
        experience = state.experiences[change.experience]
        experience.frequencies.append(state.sequence)
        if change.averaged:
            experience.average = change.new


def _rule_distilled(state: State, event: ev.RuleDistilled) -> None:
    experience = state.experiences[event.experience]
    experience.rule = event.text
    experience.tokens = event.tokens
    experience.tokenizer = event.tokenizer
    experience.trail.append(state.sequence)


def _consolidated(state: State, _event: ev.Consolidated) -> None:
    state.table = state.sequence
    state.left.clear()


def _admitted(state: State, event: ev.RuleAdmitted) -> None:
    experience = state.experiences[event.experience]
    if experience.average is None:
        # The average starts from the ratio, so that frequency does not jump at the border.
        experience.average = frequency(experience, state.eligible(experience.stages))
    experience.resident = True
    experience.trail += (state.table, state.sequence)
    state.averaged.add(event.experience)
    state.residents[event.experience] = None


def _evicted(state: State, event: ev.RuleEvicted) -> None:
    experience = state.experiences[event.experience]
    experience.resident = False
    experience.trail += (state.table, state.sequence)
    state.residents.pop(event.experience, None)
    state.left.add(event.experience)


_HANDLERS: dict[type[ev.Event], Callable[[State, Any], None]] = {
    ev.LibraryCreated: _library_created,
    ev.PolicyChanged: _policy_changed,
    ev.ExperienceRecorded: _experience_recorded,
    ev.ExperienceAmended: _experience_amended,
    ev.ExperienceRetired: _experience_retired,
    ev.ExperienceSuperseded: _experience_superseded,
    ev.ConflictRecorded: _conflict_recorded,
    ev.ConflictResolved: _conflict_resolved,
    ev.RevalidationRequired: _revalidation_required,
    ev.Revalidated: _revalidated,
    ev.ExperienceEmbedded: _embedded,
    ev.StageInvalidated: _reversed,
    ev.StageReinstated: _reversed,
    ev.MemoryRestated: _restated,
    ev.TaskStarted: _task_started,
    ev.TaskFinished: _task_finished,
    ev.StageStarted: _stage_started,
    ev.ExperiencesRetrieved: _retrieved,
    ev.RulesPresented: _rules_presented,
    ev.RuleWithheld: _rule_withheld,
    ev.AdoptionDecided: _decided,
    ev.CandidateProposed: _proposed,
    ev.CandidateCompiled: _compiled,
    ev.CandidateVerified: _verified,
    ev.CandidateMeasured: _measured,
    ev.StageDiagnosed: _diagnosed,
    ev.OutcomeReported: _outcome_reported,
    ev.StageScored: _scored,
    ev.StageAbandoned: _abandoned,
    ev.ValueUpdated: _value_updated,
    ev.FrequencyUpdated: _frequency_updated,
    ev.RuleDistilled: _rule_distilled,
    ev.Consolidated: _consolidated,
    ev.RuleAdmitted: _admitted,
    ev.RuleEvicted: _evicted,
}


def evolve(state: State, event: ev.Event) -> State:
    """The state after the event. Consumes the state that it is given."""
    state.sequence += 1
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event)
    return state


def evolve_all(state: State, events: Iterable[ev.Event]) -> None:
    """`evolve` for each; where one raises, `state.sequence` is its."""
    find = _HANDLERS.get
    for event in events:
        state.sequence += 1
        handler = find(type(event))
        if handler is not None:
            handler(state, event)
