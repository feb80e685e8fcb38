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
    offers = trail.offers.get(update.stage)
    shown = trail.presented.get(update.stage)
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
        "reversals": [
            reversal(r)
            for r in trail.reversals
            if isinstance(r.event, ev.StageInvalidated | ev.StageReinstated) and update.stage in r.event.stages
        ],
        "adopted_in_stage": len(result.adopted),
        "adopted": update.adopted,
        "feedback": update.feedback,
        "alpha": update.alpha,
        "n": update.n,
        "old": update.old,
        "new": update.new,
        "offered": offer(trail.name, offers[0]) if offers else None,
        "presented": None if shown is None else _presented(shown),
        "decisions": decisions(state, trail, update.stage, text),
        "evidence": _evidence(trail, task.id, result, text=text, candidates=task.candidates),
    }


def reversal(entry: Entry) -> Json:
    """A reversal, or the reversal of one: what it did, to what, who and why."""
    event = entry.event
    if not isinstance(event, ev.StageInvalidated | ev.StageReinstated):
        raise TypeError(event)
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "actor": entry.actor,
        "what": "invalidated" if isinstance(event, ev.StageInvalidated) else "reinstated",
        "subject": event.subject,
        "stages": list(event.stages),
        "reason": event.reason,
        "by": event.by,
    }


def offer(name: str, entry: Entry) -> Json:
    """Why a retrieval offered an experience: its place in the pool, and what its score was made of."""
    event = entry.event
    if not isinstance(event, ev.ExperiencesRetrieved):
        raise TypeError(event)
    place = next((number for number, p in enumerate(event.pool, 1) if p.experience == name), None)
    at = event.pool[place - 1] if place else None
    return {
        "sequence": entry.sequence,
        "stage": event.stage,
        "query": event.query,
        "position": event.offered.index(name) + 1,
        "offered": len(event.offered),
        "pool": len(event.pool),
        "pool_rank": place,
        "relevance": at.relevance if at else None,
        "lexical": at.lexical if at else None,
        "dense": at.dense if at else None,
        "value": at.value if at else None,
        "score": at.score if at else None,
        "fusion": event.fusion,
        "model": event.model,
    }


def _presented(entry: Entry) -> Json:
    event = entry.event
    if not isinstance(event, ev.RulesPresented):
        raise TypeError(event)
    return {"sequence": entry.sequence, "rules": len(event.rules), "tokens": event.tokens}


def unscored(state: State, trail: Trail, text: Text) -> list[Json]:
    """The stages that it was offered to or decided on in, and that moved no value: open, abandoned, or uncredited."""
    told = {e.event.stage for e in trail.updates if isinstance(e.event, ev.ValueUpdated)}
    return [
        {
            "stage": name,
            "kind": state.stages[name].kind,
            "operator": state.stages[name].operator,
            "status": state.stages[name].status,
            "counts": not state.stages[name].invalid,
            "offered": offer(trail.name, trail.offers[name][0]) if name in trail.offers else None,
            "presented": _presented(trail.presented[name]) if name in trail.presented else None,
            "decisions": decisions(state, trail, name, text),
        }
        for name in dict.fromkeys((*trail.offers, *trail.decisions))
        if name not in told
    ]


def withheld(state: State, entry: Entry) -> Json:
    """A stage that was played without the rule, to measure what it brings."""
    event = entry.event
    if not isinstance(event, ev.RuleWithheld):
        raise TypeError(event)
    stage = state.stages[event.stage]
    return {
        "sequence": entry.sequence,
        "stage": stage.id,
        "kind": stage.kind,
        "operator": stage.operator,
        "status": stage.status,
        "score": stage.score,
        "counts": not stage.invalid,
        "rate": event.rate,
    }


def decisions(state: State, trail: Trail, stage: str, text: Text) -> list[Json]:
    """What was decided on it in a stage, with the code difference that an adoption led to."""
    task = state.stages[stage].task
    return [_decision(state, trail, task, entry, text) for entry in trail.decisions.get(stage, [])]


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
