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
    not scored from it either, so it may be withdrawn before any stage rests on it.
    """
    stages = tuple(s for s in reversal.stages_of(state, subject) if not state.stages[s].invalid)
    kind, _, name = subject.partition(":")
    if not stages and (kind != "candidate" or name in state.withdrawn):
        raise errors.NothingToReverseError(subject, "it names no scored stage that still counts")
    return [ev.StageInvalidated(stages=stages, subject=subject, reason=reason, by=by)]


def reinstate(state: State, subject: str, reason: str, by: Literal["person", "judge"]) -> list[ev.StageReinstated]:
    """Let withdrawn verdicts count again. The restatement follows.

    What was scored without a candidate while it was withdrawn keeps that score. A stage whose score was read from a
    candidate that stays withdrawn does not count again.
    """
    invalid = [s for s in reversal.stages_of(state, subject) if state.stages[s].invalid]
    kind, _, name = subject.partition(":")
    back = {name} if kind == "candidate" else set()
    held = {s: under for s in invalid if (under := reversal.withdrawn_under(state, s) - back)}
    stages = tuple(s for s in invalid if s not in held)
    if not stages and not back & state.withdrawn:
        if held:
            stage, under = next(iter(held.items()))
            raise errors.NothingToReverseError(
                subject, f"stage {stage!r} rests on a withdrawn candidate; reinstate candidate:{min(under)} instead"
            )
        raise errors.NothingToReverseError(subject, "it names no stage that was invalidated")
    return [ev.StageReinstated(stages=stages, subject=subject, reason=reason, by=by)]
