"""What changed between two points of a library, and which events did it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ledger.domain import events as ev
from ledger.domain.state import Conflict, Experience, State, frequency

_MOVERS = (
    ev.ExperienceRecorded,
    ev.ExperienceAmended,
    ev.ExperienceRetired,
    ev.ExperienceSuperseded,
    ev.ValueUpdated,
    ev.RuleDistilled,
    ev.RevalidationRequired,
    ev.Revalidated,
)
_FACTS = (
    ev.StageScored,
    ev.StageInvalidated,
    ev.StageReinstated,
    ev.RuleDistilled,
    ev.ExperienceRetired,
    ev.ExperienceSuperseded,
    ev.ConflictRecorded,
    ev.ConflictResolved,
    ev.PolicyChanged,
)
"""What the memory is restated or consolidated after."""


@dataclass(slots=True)
class Change:
    """One experience at two points; `before` fields are None where it did not exist yet."""

    experience: str
    value: tuple[float | None, float]
    frequency: tuple[float | None, float]
    resident: tuple[bool, bool]
    rule: tuple[str | None, str | None]
    """Blobs of the rule texts."""
    body: tuple[str | None, str]
    retired: tuple[bool, bool]
    events: list[int] = field(default_factory=list)
    """Sequences that moved it."""


def movers(events: Iterable[tuple[int, ev.Event]], conflicts: Mapping[str, Conflict]) -> dict[str, list[int]]:
    """Sequences by the experience that they moved.

    A restatement, an admission and an eviction come after the fact that they follow from: the reversal, the stage, the
    rule, the conflict or the policy.
    """
    fact: int | None = None
    found: dict[str, set[int]] = {}
    for sequence, event in events:
        because = {sequence} if fact is None else {fact, sequence}
        if isinstance(event, _FACTS):
            fact = sequence
        if isinstance(event, ev.RuleAdmitted | ev.RuleEvicted):
            found.setdefault(event.experience, set()).update(because)
        elif isinstance(event, _MOVERS):
            found.setdefault(event.experience, set()).add(sequence)
        elif isinstance(event, ev.MemoryRestated):
            for item in event.experiences:
                found.setdefault(item.experience, set()).update(because)
        elif isinstance(event, ev.ConflictRecorded | ev.ConflictResolved):
            conflict = conflicts[event.conflict]
            for name in (conflict.first, conflict.second):
                found.setdefault(name, set()).add(sequence)
    return {name: sorted(sequences) for name, sequences in found.items()}


def diff(before: State, after: State, events: Iterable[tuple[int, ev.Event]]) -> list[Change]:
    """Experiences whose value, residence, rule, text or retirement differs, in the order of their recording.

    `events` are those after `before` up to `after`, numbered. A frequency that only follows from further scored stages
    is shown with a change of something else, but is none by itself.
    """
    moved = movers(events, after.conflicts)
    changes = []
    for name, now in after.experiences.items():
        then = before.experiences.get(name)
        if then is not None and _facts(then) == _facts(now):
            continue
        changes.append(
            Change(
                experience=name,
                value=(then.value if then else None, now.value),
                frequency=(
                    frequency(then, before.eligible(then.stages)) if then else None,
                    frequency(now, after.eligible(now.stages)),
                ),
                resident=(then.resident if then else False, now.resident),
                rule=(then.rule if then else None, now.rule),
                body=(then.body if then else None, now.body),
                retired=(then.retired if then else False, now.retired),
                events=moved.get(name, []),
            )
        )
    return changes


def _facts(item: Experience) -> tuple[object, ...]:
    return item.value, item.resident, item.rule, item.body, item.title, item.retired
