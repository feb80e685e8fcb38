"""Commands: each reads the state and returns the events that follow, or raises a named refusal; all or nothing."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger import errors
from ledger.domain import consolidation, credit
from ledger.domain import events as ev
from ledger.domain.applicability import check_task
from ledger.domain.policy import Policy
from ledger.domain.state import Candidate, Experience, Stage, State, Task


def experience_of(state: State, name: str) -> Experience:
    """The experience of that id. Raises UnknownExperienceError with close names."""
    found = state.experiences.get(name)
    if found is None:
        raise errors.UnknownExperienceError(name, difflib.get_close_matches(name, state.experiences, n=3))
    return found


def task_of(state: State, name: str) -> Task:
    """The task of that id. Raises UnknownTaskError."""
    found = state.tasks.get(name)
    if found is None:
        raise errors.UnknownTaskError(name)
    return found


def stage_of(state: State, name: str) -> Stage:
    """The stage of that id. Raises UnknownStageError."""
    found = state.stages.get(name)
    if found is None:
        raise errors.UnknownStageError(name)
    return found


def candidate_of(state: State, stage: Stage, name: str) -> Candidate:
    """A candidate proposed in this stage. Raises UnknownCandidateError."""
    if name not in stage.candidates:
        raise errors.UnknownCandidateError(name)
    return state.tasks[stage.task].candidates[name]


def _open_stage(state: State, name: str) -> Stage:
    stage = stage_of(state, name)
    if stage.status != "open":
        raise errors.StageClosedError(name, stage.status)
    return stage


def live(state: State, name: str) -> Experience:
    """The experience of that id, not retired. Raises UnknownExperienceError, ExperienceRetiredError."""
    experience = experience_of(state, name)
    if experience.retired:
        raise errors.ExperienceRetiredError(name)
    return experience


# --- library and experiences ---------------------------------------------------------------------------------------


def create_library(policy: Policy, policy_name: str, title: str) -> list[ev.Event]:
    """The first event of a library."""
    return [ev.LibraryCreated(policy=policy, policy_name=policy_name, title=title)]


def record_experience(state: State, new: ev.ExperienceRecorded) -> list[ev.Event]:
    """Take an experience into cold memory."""
    if new.experience in state.experiences:
        raise errors.ExperienceExistsError(new.experience)
    if not state.policy.open_to_experiences and state.tasks:
        raise errors.ExperiencesFixedError(new.experience)
    if not new.stages:
        raise errors.InvalidInputError(
            f"experience {new.experience!r} applies to no stage; name correctness, optimization or both",
            experience=new.experience,
        )
    return [new]


def amend_experience(state: State, change: ev.ExperienceAmended) -> list[ev.Event]:
    """Change the text of an experience."""
    live(state, change.experience)
    return [change]


def retire_experience(state: State, name: str, reason: str) -> list[ev.Event]:
    """Offer an experience no more; the resident set is rebuilt without it."""
    live(state, name)
    return [
        ev.ExperienceRetired(experience=name, reason=reason),
        *consolidation.consolidate(state, "retire", name, consolidation.Overlay(without=name)),
    ]


def distill_rule(state: State, new: ev.RuleDistilled) -> list[ev.Event]:
    """Give an experience its rule and rebuild the resident set; the ranking decides whether the rule is in it."""
    live(state, new.experience)
    if new.tokens <= 0:
        raise errors.RuleInvalidError(f"the rule of {new.experience!r} has {new.tokens} tokens; it needs at least one")
    return [new, *consolidation.consolidate(state, "rule", new.experience, consolidation.Overlay(distilled=new))]


# --- tasks and stages ----------------------------------------------------------------------------------------------


def start_task(state: State, new: ev.TaskStarted) -> list[ev.Event]:
    """Begin an attempt."""
    if new.task in state.tasks:
        raise errors.TaskExistsError(new.task)
    check_task(new)
    return [new]


def _running_stage(state: State, task: Task) -> str | None:
    return next((name for name in reversed(task.stages) if state.stages[name].status == "open"), None)


def finish_task(state: State, name: str, *, summary: str) -> list[ev.Event]:
    """End an attempt; no stage may be open.

    Whether it solved the operator is read from the facts: a candidate passed verification, or an outcome was reported
    as correct.
    """
    task = task_of(state, name)
    if task.finished:
        raise errors.TaskFinishedError(name)
    running = _running_stage(state, task)
    if running is not None:
        raise errors.StageOpenError(name, running)
    outcomes = (state.stages[stage].outcome for stage in task.stages)
    solved = bool(state.correct(task)) or any(o and o.correct for o in outcomes)
    return [ev.TaskFinished(task=name, solved=solved, rounds=len(task.candidates), summary=summary)]


def open_stage(state: State, new: ev.StageStarted) -> list[ev.Event]:
    """Begin a stage and put the resident rules before the agent, one of them perhaps withheld."""
    if new.stage in state.stages:
        raise errors.StageExistsError(new.stage)
    task = task_of(state, new.task)
    if task.finished:
        raise errors.TaskFinishedError(task.id)
    running = _running_stage(state, task)
    if running is not None:
        raise errors.StageOpenError(task.id, running)
    if new.basis == "judged":
        _check_judged(state, task, new)
    withheld = _withheld(state, new)
    rules = tuple(name for name in state.residents if name != withheld)
    tokens = sum(state.experiences[name].tokens or 0 for name in rules)
    events: list[ev.Event] = [new]
    if withheld is not None:
        events.append(ev.RuleWithheld(stage=new.stage, experience=withheld, rate=state.policy.holdout_rate))
    events.append(ev.RulesPresented(stage=new.stage, rules=rules, tokens=tokens))
    events.extend(_questioned(state, task, rules))
    return events


def _check_judged(state: State, task: Task, new: ev.StageStarted) -> None:
    """A judged stage is one of its task's two, each scored once: a second would be given the first one's gain again.

    A reported stage was played elsewhere and stands as it was told.
    """
    if new.operator != task.operator:
        raise errors.InvalidInputError(
            f"stage {new.stage!r} is on operator {new.operator!r}, its task {task.id!r} on {task.operator!r}; "
            "start a task for each operator",
            stage=new.stage,
            task=task.id,
        )
    for stage in (state.stages[name] for name in task.stages):
        if stage.kind == new.kind and stage.status == "scored" and not stage.invalid:
            raise errors.KindScoredError(task.id, new.kind, stage.id)
    if new.kind == "optimization" and state.first_correct(task) is None:
        raise errors.NoCorrectCandidateError(task.id)


def _questioned(state: State, task: Task, names: Iterable[str]) -> list[ev.Event]:
    """Marks for what is offered where its evidence never reached. Without evidence there is nothing to go stale."""
    chip, toolkit = where = task.where
    if not any(where):
        return []
    return [
        ev.RevalidationRequired(experience=name, task=task.id, chip=chip, toolkit=toolkit)
        for name in names
        if (e := state.experiences[name]).environments and not e.covers(where) and where not in e.questioned
    ]


def _withheld(state: State, new: ev.StageStarted) -> str | None:
    """One resident for a share of the stages, fixed by the seed. A reported stage has been played already."""
    rate = state.policy.holdout_rate
    if rate <= 0.0 or not state.residents or new.basis == "reported":
        return None
    digest = hashlib.sha256(f"{state.policy.holdout_seed}:{new.stage}".encode()).digest()
    if int.from_bytes(digest[:8], "big") / 2**64 >= rate:
        return None
    residents = sorted(state.residents)
    return residents[int.from_bytes(digest[8:16], "big") % len(residents)]


def retrieve(state: State, found: ev.ExperiencesRetrieved) -> list[ev.Event]:
    """Record what a query was answered with, and which of it has no evidence where the task runs."""
    stage = _open_stage(state, found.stage)
    for name in found.offered:
        experience = live(state, name)
        if experience.resident:
            raise errors.ResidentRetrievedError(name, found.stage)
        if stage.kind not in experience.stages:
            raise errors.NotApplicableError(name, found.stage, stage.kind, experience.stages)
    return [found, *_questioned(state, state.tasks[stage.task], found.offered)]


def decide_adoptions(state: State, stage_name: str, decisions: Sequence[ev.AdoptionDecided]) -> list[ev.Event]:
    """Record decisions on offers; each experience must have been offered in this stage, and each reason be given."""
    stage = _open_stage(state, stage_name)
    for decision in decisions:
        experience_of(state, decision.experience)
        if decision.experience not in stage.retrieved and decision.experience not in stage.rules:
            raise errors.NotOfferedError(decision.experience, stage_name)
        if not decision.reason.strip():
            raise errors.InvalidInputError(
                f"the decision on {decision.experience!r} has no reason; say why it was or was not adopted",
                experience=decision.experience,
            )
        if decision.candidate is not None:
            candidate_of(state, stage, decision.candidate)
    return list(decisions)


@dataclass(frozen=True, slots=True)
class NewCandidate:
    """A kernel that takes the next round."""

    stage: str
    candidate: str
    source: str
    language: str
    change: str
    hypothesis: str
    parent: str | None


def propose_candidate(state: State, new: NewCandidate) -> list[ev.Event]:
    """Record a kernel before it is judged."""
    stage = _open_stage(state, new.stage)
    task = state.tasks[stage.task]
    if new.candidate in task.candidates:
        raise errors.CandidateExistsError(new.candidate)
    if len(task.candidates) >= task.budget:
        raise errors.BudgetSpentError(task.id, task.budget)
    if new.parent is not None and new.parent not in task.candidates:
        raise errors.UnknownCandidateError(new.parent)
    return [
        ev.CandidateProposed(
            stage=new.stage,
            candidate=new.candidate,
            round=len(task.candidates) + 1,
            source=new.source,
            language=new.language,
            change=new.change,
            hypothesis=new.hypothesis,
            parent=new.parent,
        )
    ]


def hand_in_report(state: State, stage_name: str, name: str, facts: Sequence[ev.Event]) -> list[ev.Event]:
    """Record the facts that were read from a judge's report; one report a candidate."""
    stage = _open_stage(state, stage_name)
    candidate = candidate_of(state, stage, name)
    if candidate.outcome is not None:
        raise errors.ReportInvalidError(
            f"candidate {name!r} has a report already; propose a new candidate to be judged again"
        )
    for fact in facts:
        if isinstance(fact, ev.CandidateCompiled) and fact.report in state.reports:
            raise errors.ReportUsedError(fact.report, state.reports[fact.report])
    return list(facts)


def add_to_stage(state: State, stage_name: str, event: ev.Event) -> list[ev.Event]:
    """A fact that an open stage takes as it is: a diagnosis or a cost."""
    _open_stage(state, stage_name)
    return [event]


def incur_cost(state: State, event: ev.CostIncurred) -> list[ev.Event]:
    """A cost may be known only after its stage was closed, so it is taken at any time."""
    if event.stage is not None:
        stage_of(state, event.stage)
    if event.task is not None:
        task_of(state, event.task)
    if event.experience is not None:
        experience_of(state, event.experience)
    return [event]


def report_outcome(state: State, event: ev.OutcomeReported) -> list[ev.Event]:
    """A verdict by hand; only a stage that was opened for one takes it."""
    stage = _open_stage(state, event.stage)
    if stage.basis != "reported":
        raise errors.EvidenceMissingError(
            event.stage, "it was opened to be judged, so a reported outcome does not count; hand in a judge's report"
        )
    return [event]


def abandon_stage(state: State, stage_name: str, reason: str) -> list[ev.Event]:
    """End a stage without a score."""
    _open_stage(state, stage_name)
    return [ev.StageAbandoned(stage=stage_name, reason=reason)]


def score_stage(state: State, stage_name: str) -> list[ev.Event]:
    """Close a stage: score, values, frequencies, then the resident set."""
    stage = _open_stage(state, stage_name)
    missing = stage.undecided
    if missing:
        raise errors.DecisionsMissingError(stage_name, missing)
    return settle(state, stage)


def settle(state: State, stage: Stage) -> list[ev.Event]:
    """What a stage's facts come to under the policy. Pure arithmetic: also what a re-derivation runs."""
    policy = state.policy
    facts = credit.evidence(state, stage)
    score = credit.score(policy, stage, facts)
    adopted = stage.adopted
    offered = credit.offered(stage)
    events: list[ev.Event] = [
        ev.StageScored(
            stage=stage.id,
            kind=stage.kind,
            operator=stage.operator,
            score=score,
            offered=offered,
            adopted=adopted,
            first=facts.first,
            best=facts.best,
            first_ms=facts.first_ms,
            best_ms=facts.best_ms,
        )
    ]
    values: dict[str, float] = {}
    if policy.credit != "none":
        for name in offered:
            update = credit.value_update(policy, stage, state.experiences[name], stage_score=score, adopted=adopted)
            values[name] = update.new
            events.append(update)
    chip, toolkit = where = state.tasks[stage.task].where
    if score > 0.0:
        events.extend(
            ev.Revalidated(experience=name, stage=stage.id, chip=chip, toolkit=toolkit)
            for name in adopted
            if state.experiences[name].needs_revalidation(where)
        )
    changes = credit.frequency_changes(state, stage, offered)
    if changes:
        events.append(ev.FrequencyUpdated(stage=stage.id, changes=changes))
    overlay = consolidation.Overlay(changed=_standings_after(state, stage, values, changes), closing=stage.kind)
    events.extend(consolidation.consolidate(state, "stage", stage.id, overlay))
    return events


def _standings_after(
    state: State, stage: Stage, values: dict[str, float], changes: Iterable[ev.FrequencyChange]
) -> dict[str, consolidation.Standing]:
    """Numbers after the stage of every experience whose frequency it moved by name: the offered and the averaged."""
    adopted = set(stage.adopted)
    standings = {}
    for change in changes:
        experience = state.experiences[change.experience]
        taken = experience.id in adopted
        standings[experience.id] = consolidation.Standing(
            values.get(experience.id, experience.value),
            change.new,
            experience.adoptions + taken,
            len(experience.operators | {stage.operator}) if taken else len(experience.operators),
        )
    return standings
