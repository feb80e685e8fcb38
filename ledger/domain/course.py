"""The course of an experience's value: each update with its score, decisions, measurements and code difference."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from ledger.domain import events as ev
from ledger.domain.state import Candidate, State
from ledger.domain.trail import Entry, Text, Trail

Json = dict[str, Any]

_DIFF_LINES = 200


def plain(entry: Entry) -> Json:
    """An event with its place, as JSON."""
    return {"sequence": entry.sequence, "time": entry.time, "actor": entry.actor, **msgspec.to_builtins(entry.event)}


def update(state: State, trail: Trail, entry: Entry, text: Text) -> Json:
    """One move of the value, with the offer, the decisions and the evidence behind it."""
    update = entry.event
    if not isinstance(update, ev.ValueUpdated):
        raise TypeError(update)
    stage = state.stages[update.stage]
    task = state.tasks[stage.task]
    scored = trail.scored[update.stage]
    result = scored.event
    if not isinstance(result, ev.StageScored):
        raise TypeError(result)
    offer = trail.offers.get(update.stage)
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "stage": update.stage,
        "kind": stage.kind,
        "task": task.id,
        "operator": stage.operator,
        "agent": scored.actor,
        "model": task.model,
        "environment": dict(task.environment),
        "score": result.score,
        "scored_at": scored.sequence,
        "counts": not stage.invalid,
        "reversals": [plain(r) for r in trail.reversals.get(update.stage, [])],
        "adopted_in_stage": len(result.adopted),
        "adopted": update.adopted,
        "feedback": update.feedback,
        "alpha": update.alpha,
        "n": update.n,
        "old": update.old,
        "new": update.new,
        "offered": None
        if offer is None
        else {
            "sequence": offer[0],
            "query": offer[2],
            "relevance": offer[1].relevance if offer[1] else None,
            "score": offer[1].score if offer[1] else None,
        },
        "decisions": [_decision(state, trail, task.id, d, text) for d in trail.decisions.get(update.stage, [])],
        "evidence": _evidence(trail, task.id, result, text=text, candidates=task.candidates),
    }


def _decision(state: State, trail: Trail, task: str, entry: Entry, text: Text) -> Json:
    event = entry.event
    if not isinstance(event, ev.AdoptionDecided):
        raise TypeError(event)
    facts: Json = {
        "sequence": entry.sequence,
        "adopted": event.adopted,
        "reason": event.reason,
        "candidate": event.candidate,
    }
    if event.adopted and event.candidate is not None:
        facts["change"] = _change(trail, task, state.tasks[task].candidates, event.candidate, text)
    return facts


def _change(trail: Trail, task: str, candidates: dict[str, Candidate], name: str, text: Text) -> Json | None:
    """The code difference that a candidate brought, against the one that it was derived from."""
    candidate = candidates.get(name)
    if candidate is None:
        return None
    parent = candidates.get(candidate.parent) if candidate.parent else None
    after = text(candidate.source)
    before = text(parent.source) if parent else ""
    diff = None
    if after is not None and before is not None:
        lines = list(
            difflib.unified_diff(
                before.splitlines(),
                after.splitlines(),
                parent.id if parent else "nothing",
                candidate.id,
                lineterm="",
                n=1,
            )
        )
        diff = "\n".join(
            lines[:_DIFF_LINES] + ([f"… {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else [])
        )
    proposed = trail.proposed.get((task, name))
    return {
        "sequence": proposed.sequence if proposed else None,
        "candidate": candidate.id,
        "round": candidate.round,
        "parent": candidate.parent,
        "change": candidate.change,
        "hypothesis": candidate.hypothesis,
        "outcome": candidate.outcome,
        "latency_ms": candidate.latency_ms,
        "source": candidate.source,
        "parent_source": parent.source if parent else None,
        "diff": diff,
    }


def _evidence(trail: Trail, task: str, scored: ev.StageScored, *, text: Text, candidates: dict[str, Candidate]) -> Json:
    """What a score was read from: the judge's measurements, or the word that was given."""
    told = trail.reported.get(scored.stage)
    if told is not None:
        return {
            "basis": "reported",
            "sequence": told.sequence,
            "outcome": msgspec.to_builtins(told.event),
            "note": "a hand-made verdict: no judge's report stands behind it",
        }
    facts: Json = {"basis": "judged", "first_ms": scored.first_ms, "best_ms": scored.best_ms}
    for role, name in (("first", scored.first), ("best", scored.best)):
        facts[role] = None if name is None else _measurement(trail, task, name)
    if scored.best is not None:
        facts["change"] = _change(trail, task, candidates, scored.best, text)
    return facts


def _measurement(trail: Trail, task: str, name: str) -> Json:
    verified = trail.verified.get((task, name))
    measured = trail.measured.get((task, name))
    facts: Json = {"candidate": name}
    if verified is not None and isinstance(verified.event, ev.CandidateVerified):
        v = verified.event
        facts |= {
            "verified_at": verified.sequence,
            "outcome": v.outcome,
            "mode": v.mode,
            "rule": v.rule,
            "judge": v.judge,
            "report": v.report,
        }
    if measured is not None and isinstance(measured.event, ev.CandidateMeasured):
        m = measured.event
        facts |= {
            "measured_at": measured.sequence,
            "latency_ms": m.latency_ms,
            "noise_ms": m.noise_ms,
            "reference_ms": m.reference_ms,
            "device": m.device,
        }
    return facts
