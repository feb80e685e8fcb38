"""Where the audit finds the events of an experience again: sequences that the fold notes as it goes.

So an answer to `why` reads the events that bear on it, not the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger.domain import events as ev
from ledger.domain.model import State


def _bears_on(state: State, event: Any) -> Iterable[str]:
    """Experiences in whose trail an event belongs."""
    match event:
        case ev.ExperiencesRetrieved():
            return event.offered
        case ev.MemoryRestated():
            return [told.experience for told in event.experiences]
        case ev.ConflictRecorded():
            return (event.first, event.second)
        case ev.ConflictResolved():
            conflict = state.conflicts[event.conflict]
            return (conflict.first, conflict.second)
        case ev.StageInvalidated() | ev.StageReinstated():
            for name in event.stages:
                state.stages[name].trail.append(state.sequence)
            return ()
        case _:
            return (event.experience,)


_TRAILED_SET: frozenset[type[ev.Event]] = frozenset(
    (
        ev.ExperienceRecorded,
        ev.ExperienceAmended,
        ev.ExperienceRetired,
        ev.ExperienceSuperseded,
        ev.ConflictRecorded,
        ev.ConflictResolved,
        ev.RevalidationRequired,
        ev.Revalidated,
        ev.ExperiencesRetrieved,
        ev.AdoptionDecided,
        ev.ValueUpdated,
        ev.RuleDistilled,
        ev.RuleAdmitted,
        ev.RuleEvicted,
        ev.StageInvalidated,
        ev.StageReinstated,
        ev.MemoryRestated,
    )
)
_STAGED_SET: frozenset[type[ev.Event]] = frozenset(
    (
        ev.StageStarted,
        ev.ExperiencesRetrieved,
        ev.RulesPresented,
        ev.RuleWithheld,
        ev.AdoptionDecided,
        ev.CandidateProposed,
        ev.CandidateCompiled,
        ev.CandidateVerified,
        ev.CandidateMeasured,
        ev.StageDiagnosed,
        ev.OutcomeReported,
        ev.StageScored,
        ev.StageAbandoned,
    )
)


def follow(state: State, event: Any) -> None:
    """Note where the audit will find the event again."""
    kind = type(event)
    if kind is ev.FrequencyUpdated:
        for change in event.changes:
            state.experiences[change.experience].frequencies.append(state.sequence)
    elif kind is ev.Consolidated:
        state.table = state.sequence
    if kind in _STAGED_SET:
        state.stages[event.stage].trail.append(state.sequence)
    if kind in _TRAILED_SET:
        for name in _bears_on(state, event):
            trail = state.experiences[name].trail
            if kind is ev.RuleAdmitted or kind is ev.RuleEvicted:
                trail.append(state.table)
            trail.append(state.sequence)


def trail_of(state: State, name: str) -> list[int]:
    """Sequences of every event that the audit of an experience reads, in order."""
    experience = state.experiences[name]
    found = set(experience.trail) | set(experience.frequencies)
    if state.table:
        found.add(state.table)
    tasks = set()
    for stage in state.stages.values():
        if name in stage.retrieved or name in stage.decisions:
            tasks.add(stage.task)
    for task in tasks:
        # A score may rest on a candidate of the task's other stage.
        for stage_name in state.tasks[task].stages:
            found.update(state.stages[stage_name].trail)
    return sorted(found)
