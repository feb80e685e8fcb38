"""A library as a trace: JSON lines that import to the same state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ledger.domain import events as ev
from ledger.domain.state import State, evolve, initial
from ledger.errors import NotExpressibleError
from ledger.service import Ledger


def export_trace(ledger: Ledger, library: str) -> Iterator[bytes]:
    """Lines of a trace, each with its newline. A stage stands where it was scored.

    Raises NotExpressibleError at a conflict, a policy change, or a stage whose offers only make sense beside another
    stage that was open at the same time.
    """
    state = initial()
    invalid = _invalid_at_the_end(ledger, library)
    for recorded in ledger.recorded(library):
        event = recorded.event
        line = _record(ledger, state, recorded.sequence, event, invalid)
        if line is not None:
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"
        evolve(state, event)


def _invalid_at_the_end(ledger: Ledger, library: str) -> frozenset[str]:
    with ledger.reading(library) as state:
        return frozenset(name for name, stage in state.stages.items() if stage.invalid)


def _record(
    ledger: Ledger, state: State, sequence: int, event: ev.Event, invalid: frozenset[str]
) -> dict[str, Any] | None:
    match event:
        case ev.ExperienceRecorded():
            return {
                "record": "experience",
                "id": event.experience,
                "title": event.title,
                "body": ledger.text(event.body) or "",
                "stages": list(event.stages),
                "conditions": msgspec.to_builtins(event.conditions),
            }
        case ev.RuleDistilled():
            text = ledger.text(event.text) or ""
            return {"record": "rule", "experience": event.experience, "text": text, "tokens": event.tokens}
        case ev.ExperienceRetired():
            return {"record": "retire", "experience": event.experience, "reason": event.reason}
        case ev.ExperienceSuperseded():
            reason = f"superseded by {event.by}: {event.reason}"
            return {"record": "retire", "experience": event.experience, "reason": reason}
        case ev.StageScored():
            return None if event.stage in invalid else _stage(state, sequence, event)
        case ev.ConflictRecorded() | ev.ConflictResolved():
            raise NotExpressibleError(sequence, "a conflict between two rules")
        case ev.PolicyChanged():
            raise NotExpressibleError(sequence, "a change of policy")
        case _:
            return None


def _stage(state: State, sequence: int, event: ev.StageScored) -> dict[str, Any]:
    stage = state.stages[event.stage]
    task = state.tasks[stage.task]
    overtaken = [name for name in stage.retrieved if name in state.residents]
    missed = [name for name in stage.adopted if name not in stage.retrieved and name not in state.residents]
    if overtaken or missed:
        named = ", ".join(overtaken + missed)
        raise NotExpressibleError(sequence, f"while stage {stage.id!r} was open the residence of {named} changed")
    outcome: dict[str, Any]
    if event.kind == "correctness":
        outcome = {"correct": event.score == 1.0}
    else:
        improved = event.score > 0.0
        outcome = {"first_ms": event.first_ms, "best_ms": event.best_ms if improved else None}
    return {
        "record": "stage",
        "id": stage.id,
        "task": task.id,
        "operator": stage.operator,
        "kind": stage.kind,
        "retrieved": list(stage.retrieved),
        "adoptions": [
            {"experience": name, "adopted": adopted, "reason": stage.reasons[name]}
            for name, adopted in stage.decisions.items()
        ],
        "outcome": outcome,
        "level": task.level,
        "model": task.model,
    }
