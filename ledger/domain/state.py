"""The state of one library as a fold over its events: `initial()`, then `evolve(state, event)` for each, in order.

The fold owns its state and changes it in place, because a library of 10^5 events is opened by it; nobody else writes
to a `State`. It is total: an event that this version does not know moves the position and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ledger.domain import events as ev
from ledger.domain.policy import SAGE, Policy

Environment = tuple[str, str]
"""Chip and toolkit; empty where a task did not say."""


@dataclass(slots=True)
class Experience:
    """What is known of one experience, hot or cold."""

    id: str
    title: str
    body: str
    stages: tuple[ev.StageKind, ...]
    conditions: ev.Conditions
    source: ev.Source
    recorded: int
    """Sequence of the event that recorded it."""
    scored_before: int
    """Scored stages of its kinds before it was recorded; these were not eligible."""
    value: float = 0.0
    n: int = 0
    """Stages in which it was offered and looked at."""
    adoptions: int = 0
    operators: set[str] = field(default_factory=set)
    average: float | None = None
    """Moving average of use, from the first admission on."""
    frozen: float | None = None
    """Frequency at retirement."""
    resident: bool = False
    rule: str | None = None
    tokens: int | None = None
    tokenizer: str | None = None
    superseded_by: str | None = None
    environments: set[Environment] = field(default_factory=set)
    """Where it was adopted with success."""
    questioned: set[Environment] = field(default_factory=set)
    """Where a task ran although its evidence did not reach there."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Embedding model and version -> blob."""

    @property
    def retired(self) -> bool:
        """Offered no more."""
        return self.frozen is not None

    def needs_revalidation(self, environment: Environment) -> bool:
        """Whether its evidence was asked for under this chip and toolkit and has not been given since."""
        return environment in self.questioned and environment not in self.environments


@dataclass(slots=True)
class Candidate:
    """One kernel, as far as it has been judged."""

    id: str
    stage: str
    round: int
    source: str
    language: str
    change: str
    hypothesis: str
    parent: str | None
    outcome: str | None = None
    summary: str = ""
    latency_ms: float | None = None
    reference_ms: float | None = None
    noise_ms: float = 0.0
    report: str | None = None
    artefact: str | None = None


@dataclass(slots=True)
class Stage:
    """One stage of a task."""

    id: str
    task: str
    kind: ev.StageKind
    operator: str
    basis: ev.Basis
    residents_at_start: frozenset[str]
    """As this fold has them. In a re-derivation they may differ from the rules that the agent was shown."""
    status: str = "open"
    score: float | None = None
    retrieved: dict[str, None] = field(default_factory=dict)
    """In order, each once."""
    rules: tuple[str, ...] = ()
    withheld: str | None = None
    decisions: dict[str, bool] = field(default_factory=dict)
    """Experience -> adopted at least once."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The reason of the adoption, or else of the last decision."""
    candidates: list[str] = field(default_factory=list)
    outcome: ev.OutcomeReported | None = None
    invalid: bool = False
    """Its verdicts were withdrawn; the memory is as if it had not been scored."""
    first: str | None = None
    best: str | None = None
    """Candidates that its score was read from."""

    @property
    def adopted(self) -> tuple[str, ...]:
        """Members of the retrieved or presented that were adopted at least once, by id."""
        return tuple(sorted(e for e, adopted in self.decisions.items() if adopted))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Retrieved experiences without a decision, in order."""
        return tuple(e for e in self.retrieved if e not in self.decisions)


@dataclass(slots=True)
class Task:
    """One operator attempted by one agent run."""

    id: str
    operator: str
    level: int
    model: str
    budget: int
    family: str
    dtype: str
    language: str
    configuration: dict[str, str]
    environment: dict[str, str]
    shapes: dict[str, int]
    finished: bool = False
    solved: bool = False
    stages: list[str] = field(default_factory=list)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """In the order in which they were proposed; each took one round."""

    @property
    def where(self) -> Environment:
        """Chip and toolkit that it runs under."""
        return self.environment.get("chip", ""), self.environment.get("toolkit", "")

    def first_correct(self) -> Candidate | None:
        """The first candidate that passed verification and was measured."""
        return next((c for c in self.candidates.values() if c.outcome == "correct" and c.latency_ms is not None), None)


@dataclass(slots=True)
class Conflict:
    """Two rules that contradict each other."""

    id: str
    first: str
    second: str
    reason: str
    open: bool = True
    loser: str | None = None
    """Once it is settled; None then: they do not contradict each other."""

    def rival(self, name: str) -> str:
        """The other one."""
        return self.second if name == self.first else self.first


@dataclass(slots=True)
class State:
    """One library."""

    sequence: int = 0
    policy: Policy = SAGE
    policy_name: str = "sage"
    title: str = ""
    experiences: dict[str, Experience] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    scored: dict[str, int] = field(default_factory=lambda: {"correctness": 0, "optimization": 0})
    """Scored stages by kind."""
    averaged: set[str] = field(default_factory=set)
    """Experiences that are or were resident."""
    residents: dict[str, None] = field(default_factory=dict)
    """In the order of their admission."""
    reports: dict[str, str] = field(default_factory=dict)
    """Blob of each judge's report -> the candidate that it was handed in for."""
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    conflicts_of: dict[str, list[Conflict]] = field(default_factory=dict)
    """By experience."""

    def eligible(self, stages: tuple[ev.StageKind, ...]) -> int:
        """Scored stages of these kinds so far."""
        return sum(self.scored[kind] for kind in stages)


def initial() -> State:
    """A library before its first event."""
    return State()


def frequency(experience: Experience, eligible: int) -> float:
    """How often an experience is needed, 0 to 1.

    `eligible` is `State.eligible` of its kinds now. Never resident: N over the stages that it could have been offered
    in since it was recorded; then the moving average; retired: as it stood.
    """
    if experience.frozen is not None:
        return experience.frozen
    if experience.average is not None:
        return experience.average
    since = eligible - experience.scored_before
    return experience.n / since if since > 0 else 0.0


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
    )


def _experience_amended(state: State, event: ev.ExperienceAmended) -> None:
    experience = state.experiences[event.experience]
    experience.title = event.title
    experience.body = event.body
    experience.vectors.clear()


def _experience_retired(state: State, event: ev.ExperienceRetired) -> None:
    experience = state.experiences[event.experience]
    experience.frozen = frequency(experience, state.eligible(experience.stages))


def _experience_superseded(state: State, event: ev.ExperienceSuperseded) -> None:
    experience = state.experiences[event.experience]
    experience.frozen = frequency(experience, state.eligible(experience.stages))
    experience.superseded_by = event.by


def _conflict_recorded(state: State, event: ev.ConflictRecorded) -> None:
    conflict = Conflict(event.conflict, event.first, event.second, event.reason)
    state.conflicts[event.conflict] = conflict
    for name in (event.first, event.second):
        state.conflicts_of.setdefault(name, []).append(conflict)


def _conflict_resolved(state: State, event: ev.ConflictResolved) -> None:
    conflict = state.conflicts[event.conflict]
    conflict.open = False
    conflict.loser = event.loser


def _revalidation_required(state: State, event: ev.RevalidationRequired) -> None:
    state.experiences[event.experience].questioned.add((event.chip, event.toolkit))


def _embedded(state: State, event: ev.ExperienceEmbedded) -> None:
    state.experiences[event.experience].vectors[f"{event.model}@{event.version}"] = event.vector


def _invalidated(state: State, event: ev.StageInvalidated) -> None:
    for name in event.stages:
        state.stages[name].invalid = True


def _reinstated(state: State, event: ev.StageReinstated) -> None:
    for name in event.stages:
        state.stages[name].invalid = False


def _restated(state: State, event: ev.MemoryRestated) -> None:
    state.scored = dict(event.scored)
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
    )
    state.tasks[event.task].stages.append(event.stage)


def _retrieved(state: State, event: ev.ExperiencesRetrieved) -> None:
    state.stages[event.stage].retrieved.update(dict.fromkeys(event.offered))


def _rules_presented(state: State, event: ev.RulesPresented) -> None:
    state.stages[event.stage].rules = event.rules


def _rule_withheld(state: State, event: ev.RuleWithheld) -> None:
    state.stages[event.stage].withheld = event.experience


def _decided(state: State, event: ev.AdoptionDecided) -> None:
    stage = state.stages[event.stage]
    already = stage.decisions.get(event.experience, False)
    if event.adopted or not already:
        stage.reasons[event.experience] = event.reason
    stage.decisions[event.experience] = already or event.adopted


def _proposed(state: State, event: ev.CandidateProposed) -> None:
    stage = state.stages[event.stage]
    stage.candidates.append(event.candidate)
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


def _candidate(state: State, stage: str, candidate: str) -> Candidate:
    return state.tasks[state.stages[stage].task].candidates[candidate]


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
    state.stages[event.stage].outcome = event


def _scored(state: State, event: ev.StageScored) -> None:
    stage = state.stages[event.stage]
    stage.status = "scored"
    stage.score = event.score
    stage.first = event.first
    stage.best = event.best
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
    state.stages[event.stage].status = "abandoned"


def _value_updated(state: State, event: ev.ValueUpdated) -> None:
    state.experiences[event.experience].value = event.new


def _frequency_updated(state: State, event: ev.FrequencyUpdated) -> None:
    for change in event.changes:
        if change.averaged:
            state.experiences[change.experience].average = change.new


def _rule_distilled(state: State, event: ev.RuleDistilled) -> None:
    experience = state.experiences[event.experience]
    experience.rule = event.text
    experience.tokens = event.tokens
    experience.tokenizer = event.tokenizer


def _admitted(state: State, event: ev.RuleAdmitted) -> None:
    experience = state.experiences[event.experience]
    if experience.average is None:
        # The average starts from the ratio, so that frequency does not jump at the border.
        experience.average = frequency(experience, state.eligible(experience.stages))
    experience.resident = True
    state.averaged.add(event.experience)
    state.residents[event.experience] = None


def _evicted(state: State, event: ev.RuleEvicted) -> None:
    state.experiences[event.experience].resident = False
    state.residents.pop(event.experience, None)


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
    ev.ExperienceEmbedded: _embedded,
    ev.StageInvalidated: _invalidated,
    ev.StageReinstated: _reinstated,
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
    ev.OutcomeReported: _outcome_reported,
    ev.StageScored: _scored,
    ev.StageAbandoned: _abandoned,
    ev.ValueUpdated: _value_updated,
    ev.FrequencyUpdated: _frequency_updated,
    ev.RuleDistilled: _rule_distilled,
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
