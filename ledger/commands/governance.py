"""What people decide about experiences and verdicts: supersession, conflicts, reversals."""

from __future__ import annotations

from typing import Literal

from ledger import views, wire
from ledger.domain import events as ev
from ledger.domain import govern, reversal
from ledger.domain.policy import from_mapping, preset
from ledger.domain.rederive import had_not_been_scored
from ledger.progress import Tell, counted, untold
from ledger.service import Batch, Call, Ledger


def supersede(ledger: Ledger, call: Call, library: str, name: str, given: wire.Supersession) -> wire.Experience | bytes:
    """Put a newer experience in the place of an older one."""

    def command(batch: Batch) -> None:
        batch.emit(govern.supersede_experience(batch.state, name, given.by, given.reason))

    return ledger.execute(
        library,
        call,
        command,
        lambda batch: views.experience(batch.state, batch.state.experiences[name], ledger.text),
    )


def record_conflict(ledger: Ledger, call: Call, library: str, new: wire.NewConflict) -> wire.Conflict | bytes:
    """Link two experiences that contradict each other; from here on they are never resident together."""

    def command(batch: Batch) -> None:
        batch.emit(govern.record_conflict(batch.state, ev.ConflictRecorded(**new.model_dump())))
        batch.emit(govern.reconsolidate(batch.state, "conflict", new.conflict))

    return ledger.execute(library, call, command, lambda batch: views.conflict(batch.state.conflicts[new.conflict]))


def resolve_conflict(
    ledger: Ledger, call: Call, library: str, name: str, end: wire.ConflictEnd
) -> wire.Conflict | bytes:
    """Settle a conflict: the loser stays out of the resident set, or there was none."""

    def command(batch: Batch) -> None:
        resolved = ev.ConflictResolved(conflict=name, loser=end.loser, reason=end.reason)
        batch.emit(govern.resolve_conflict(batch.state, resolved))
        batch.emit(govern.reconsolidate(batch.state, "conflict", name))

    return ledger.execute(library, call, command, lambda batch: views.conflict(batch.state.conflicts[name]))


def conflicts(ledger: Ledger, library: str) -> wire.Conflicts:
    """All conflicts, in the order in which they were recorded."""
    with ledger.reading(library) as state:
        return wire.Conflicts(items=[views.conflict(item) for item in state.conflicts.values()])


def reverse_in(
    ledger: Ledger,
    batch: Batch,
    library: str,
    given: wire.NewReversal,
    direction: Literal["invalidate", "reinstate"],
    tell: Tell = untold,
) -> None:
    """Decide on a reversal and on what it comes to; what comes before it in the log must be stored."""
    chosen = govern.invalidate if direction == "invalidate" else govern.reinstate
    before = batch.state.sequence
    decided = chosen(batch.state, given.subject, given.reason, given.by)
    batch.emit(decided)
    if not any(event.stages for event in decided):
        # A candidate that no score rests on yet.
        return
    invalid = frozenset(name for name, stage in batch.state.stages.items() if stage.invalid)
    true = had_not_been_scored(counted(ledger.facts(library, until=before), before, tell), invalid)
    batch.emit(reversal.restate(batch.state, true, given.subject))


def change_policy(ledger: Ledger, call: Call, library: str, given: wire.NewPolicy) -> wire.Library | bytes:
    """Put another policy in force: a preset, or fields over the one that holds. Values move at their next update."""

    def command(batch: Batch) -> None:
        now = batch.state.policy
        if isinstance(given.policy, str):
            policy, name = preset(given.policy), given.policy
        else:
            policy, name = from_mapping(given.policy, now), "custom"
        batch.emit(govern.change_policy(batch.state, policy, name, given.reason))
        batch.emit(govern.reconsolidate(batch.state, "policy", name))

    return ledger.execute(library, call, command, lambda batch: views.library(library, batch.state))


def reverse(
    ledger: Ledger,
    call: Call,
    library: str,
    given: wire.NewReversal,
    direction: Literal["invalidate", "reinstate"],
    tell: Tell = untold,
) -> wire.Reversal | bytes:
    """Take back the credit of scored stages, or give it back: state and residents follow."""

    def command(batch: Batch) -> None:
        reverse_in(ledger, batch, library, given, direction, tell)

    def answer(batch: Batch) -> wire.Reversal:
        first = batch.numbered()[0]
        reversed_ = first[1]
        restated = next((e for e in batch.events if isinstance(e, ev.MemoryRestated)), None)
        if not isinstance(reversed_, ev.StageInvalidated | ev.StageReinstated):
            raise TypeError(reversed_)
        return wire.Reversal(
            sequence=first[0],
            subject=given.subject,
            stages=list(reversed_.stages),
            moved=[item.experience for item in restated.experiences] if restated else [],
            admitted=[e.experience for e in batch.events if isinstance(e, ev.RuleAdmitted)],
            evicted=[e.experience for e in batch.events if isinstance(e, ev.RuleEvicted)],
        )

    return ledger.execute(library, call, command, answer)
