"""Commands of the people who look after a library: supersession, conflicts, reversals."""

from __future__ import annotations

from typing import Literal

from ledger import errors
from ledger.domain import consolidation, decide, reversal
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State


def change_policy(state: State, policy: Policy, name: str, reason: str) -> list[ev.Event]:
    """Put another policy in force from here on. The resident set follows in `reconsolidate`."""
    if policy == state.policy:
        raise errors.InvalidInputError(
            f"the policy {name!r} is the one that holds ({state.policy_name!r}); give one that differs", policy=name
        )
    return [ev.PolicyChanged(policy=policy, policy_name=name, reason=reason)]


def supersede_experience(state: State, name: str, by: str, reason: str) -> list[ev.Event]:
    """Put a newer experience in the place of an older one."""
    decide.live(state, name)
    decide.live(state, by)
    if name == by:
        raise errors.InvalidInputError(
            f"experience {name!r} can not supersede itself; name the newer one", experience=name
        )
    return [
        ev.ExperienceSuperseded(experience=name, by=by, reason=reason),
        *consolidation.consolidate(state, "supersede", name, consolidation.Overlay(without=name)),
    ]


def record_conflict(state: State, new: ev.ConflictRecorded) -> list[ev.Event]:
    """Link two experiences whose rules contradict each other. The resident set follows in `reconsolidate`."""
    decide.live(state, new.first)
    decide.live(state, new.second)
    if new.first == new.second:
        raise errors.InvalidInputError(f"experience {new.first!r} can not contradict itself", experience=new.first)
    if new.conflict in state.conflicts:
        raise errors.ConflictExistsError(new.conflict)
    pair = {new.first, new.second}
    standing = next((c for c in state.conflicts.values() if c.open and {c.first, c.second} == pair), None)
    if standing is not None:
        raise errors.ConflictExistsError(standing.id)
    return [new]


def resolve_conflict(state: State, end: ev.ConflictResolved) -> list[ev.Event]:
    """Settle a conflict. The resident set follows in `reconsolidate`."""
    conflict = state.conflicts.get(end.conflict)
    if conflict is None:
        raise errors.UnknownConflictError(end.conflict)
    if not conflict.open:
        raise errors.ConflictSettledError(end.conflict)
    if end.loser not in {None, conflict.first, conflict.second}:
        raise errors.InvalidInputError(
            f"the loser of conflict {end.conflict!r} is {conflict.first!r} or {conflict.second!r}, not {end.loser!r}"
        )
    return [end]


def reconsolidate(state: State, trigger: consolidation.Trigger, subject: str) -> list[ev.Event]:
    """Rebuild the resident set on the state as it is, after a fact that bears on it."""
    return consolidation.consolidate(state, trigger, subject)


def invalidate(state: State, subject: str, reason: str, by: Literal["person", "judge"]) -> list[ev.StageInvalidated]:
    """Withdraw the verdicts behind the scored stages that the subject names. The restatement follows.

    A candidate is withdrawn for good, wherever its source or artefact comes up: a stage that is open or yet to come is
    not scored from it either, so it may be withdrawn before any stage rests on it. A stage that no longer counts may
    be named once more under another subject, and counts again only when no reversal of it stands.
    """
    scored = reversal.stages_of(state, subject)
    stages = tuple(s for s in scored if not state.stages[s].invalid)
    if subject.startswith("candidate:"):
        known = _is_withdrawn(state, subject)
    else:
        known = all(subject in state.stages[s].reversals for s in scored)
    if not stages and known:
        raise errors.NothingToReverseError(subject, "it names no scored stage that still counts")
    return [ev.StageInvalidated(stages=stages, subject=subject, reason=reason, by=by)]


def reinstate(state: State, subject: str, reason: str, by: Literal["person", "judge"]) -> list[ev.StageReinstated]:
    """Reverse the reversal of a subject: the stages that no other reversal holds count again. The restatement follows.

    A stage may be taken out of the reversal of its task by its own name. What was scored without a candidate while it
    was withdrawn keeps that score.
    """
    invalid = tuple(s for s in reversal.stages_of(state, subject) if state.stages[s].invalid)
    ended = {s: reversal.ended_by(state, s, subject) for s in invalid}
    held = {s: others for s in invalid if (others := reversal.standing(state, s) - ended[s])}
    if not any(ended.values()) and not _is_withdrawn(state, subject):
        if not held:
            raise errors.NothingToReverseError(subject, "it names no stage that was invalidated")
        stage, others = next(iter(held.items()))
        raise errors.NothingToReverseError(
            subject, f"stage {stage!r} was invalidated as {min(others)}; reinstate {min(others)} instead"
        )
    stages = tuple(s for s in invalid if s not in held)
    return [ev.StageReinstated(stages=stages, subject=subject, reason=reason, by=by)]


def _is_withdrawn(state: State, subject: str) -> bool:
    kind, _, sha256 = subject.partition(":")
    return kind == "candidate" and sha256 in state.withdrawn
