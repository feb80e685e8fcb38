"""Reversal: the credit of withdrawn verdicts is taken back as if they had not been scored. Nothing is deleted."""

from __future__ import annotations

from ledger import errors
from ledger.domain import consolidation
from ledger.domain import events as ev
from ledger.domain.state import Experience, State


def stages_of(state: State, subject: str) -> tuple[str, ...]:
    """The scored stages that a subject names: `stage:ID`, `task:ID` or `candidate:SHA256` of a source or an artefact.

    A candidate's hash names the stages whose score was read from it. Raises UnknownStageError, UnknownTaskError,
    UnknownHashError, InvalidInputError.
    """
    kind, _, name = subject.partition(":")
    if kind == "stage":
        if name not in state.stages:
            raise errors.UnknownStageError(name)
        found = [name]
    elif kind == "task":
        if name not in state.tasks:
            raise errors.UnknownTaskError(name)
        found = state.tasks[name].stages
    elif kind == "candidate":
        found = _resting_on(state, name)
    else:
        raise errors.InvalidInputError(
            f"{subject!r} names nothing that can be invalidated; say stage:ID, task:ID or candidate:SHA256",
            subject=subject,
        )
    return tuple(s for s in found if state.stages[s].status == "scored")


def _resting_on(state: State, sha256: str) -> list[str]:
    found = []
    known = False
    for stage in state.stages.values():
        candidates = state.tasks[stage.task].candidates
        resting = {c.id for c in candidates.values() if sha256 in {c.source, c.artefact}}
        known = known or bool(resting)
        if stage.first in resting or stage.best in resting:
            found.append(stage.id)
    if not known:
        raise errors.UnknownHashError(sha256)
    return found


def withdrawn_under(state: State, stage: str) -> set[str]:
    """The withdrawn hashes of sources and artefacts that a stage's score was read from."""
    item = state.stages[stage]
    candidates = state.tasks[item.task].candidates
    read = [candidates[c] for c in (item.first, item.best) if c is not None]
    return {sha256 for c in read for sha256 in (c.source, c.artefact) if sha256 in state.withdrawn and sha256}


def standing(state: State, stage: str) -> set[str]:
    """The subjects under which a stage's verdicts were withdrawn, and still are."""
    return state.stages[stage].reversals | {f"candidate:{sha256}" for sha256 in withdrawn_under(state, stage)}


def ended_by(state: State, stage: str, subject: str) -> set[str]:
    """Those of them that reinstating a subject ends: its own, and for the stage itself those of its task too."""
    return state.stages[stage].reversals if subject == f"stage:{stage}" else standing(state, stage) & {subject}


def _numbers(experience: Experience) -> ev.Restated:
    return ev.Restated(
        experience=experience.id,
        value=experience.value,
        n=experience.n,
        adoptions=experience.adoptions,
        operators=tuple(sorted(experience.operators)),
        scored_before=experience.scored_before,
        average=experience.average,
        frozen=experience.frozen,
        environments=tuple(sorted(experience.environments)),
    )


def restate(state: State, true: State, subject: str) -> list[ev.Event]:
    """The events that bring `state` to the numbers and residents of `true`, which lacks the invalid stages."""
    moved = tuple(
        numbers
        for name, experience in state.experiences.items()
        if (numbers := _numbers(true.experiences[name])) != _numbers(experience)
    )
    began = {
        name: tuple(sorted(true.stages[name].residents_at_start))
        for name, stage in state.stages.items()
        if stage.status == "open" and stage.residents_at_start != true.stages[name].residents_at_start
    }
    events: list[ev.Event] = [ev.MemoryRestated(scored=dict(true.scored), experiences=moved, hot_at_start=began)]
    if true.policy.consolidation == "none":
        return events
    told = consolidation.table_now(true, "reversal", subject)
    events.append(told)
    events.extend(
        ev.RuleEvicted(experience=name, subject=subject, reason="the evidence that held it was withdrawn or came back")
        for name in sorted(set(state.residents) - set(true.residents))
    )
    places = {r.experience: (place, r) for place, r in enumerate(told.ranked, 1)}
    for name in sorted(set(true.residents) - set(state.residents), key=lambda n: places[n][0]):
        place, r = places[name]
        events.append(
            ev.RuleAdmitted(experience=name, subject=subject, rank=place, priority=r.priority, tokens=r.tokens)
        )
    return events
