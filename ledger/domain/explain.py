"""Why a rule is resident, or why not: one answer whose every link is a sequence of the log or a blob."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from ledger.domain import consolidation, decide
from ledger.domain import events as ev
from ledger.domain.state import Candidate, Experience, State, frequency

Json = dict[str, Any]
Text = Callable[[str], str | None]

_DIFF_LINES = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its place, as the log has it."""

    sequence: int
    time: str
    actor: str
    event: ev.Event


class _Trail:
    """The events that bear on one experience, picked from the log in one pass."""

    def __init__(self, name: str, state: State, entries: Iterable[Entry]) -> None:
        self.recorded: Entry | None = None
        self.amended: list[Entry] = []
        self.rules: list[Entry] = []
        self.retired: Entry | None = None
        self.moves: list[Entry] = []
        self.updates: list[Entry] = []
        self.frequencies: list[tuple[int, str, ev.FrequencyChange]] = []
        self.decisions: dict[str, list[Entry]] = {}
        self.offers: dict[str, tuple[int, ev.PoolEntry | None, str]] = {}
        self.last_table: Entry | None = None
        self.tables: dict[int, Entry] = {}
        self.scored: dict[str, Entry] = {}
        self.measured: dict[tuple[str, str], Entry] = {}
        self.proposed: dict[tuple[str, str], Entry] = {}
        self.verified: dict[tuple[str, str], Entry] = {}
        self.reported: dict[str, Entry] = {}
        for entry in entries:
            self._take(name, state, entry)

    def _take(self, name: str, state: State, entry: Entry) -> None:  # noqa: C901, PLR0912 - one arm an event type
        match entry.event:
            case ev.ExperienceRecorded(experience=e) if e == name:
                self.recorded = entry
            case ev.ExperienceAmended(experience=e) if e == name:
                self.amended.append(entry)
            case ev.ExperienceRetired(experience=e) if e == name:
                self.retired = entry
            case ev.RuleDistilled(experience=e) if e == name:
                self.rules.append(entry)
            case ev.RuleAdmitted(experience=e) | ev.RuleEvicted(experience=e) if e == name:
                self.moves.append(entry)
                if self.last_table is not None:
                    self.tables[entry.sequence] = self.last_table
            case ev.ValueUpdated(experience=e) if e == name:
                self.updates.append(entry)
            case ev.FrequencyUpdated(stage=stage, changes=changes):
                self.frequencies.extend((entry.sequence, stage, c) for c in changes if c.experience == name)
            case ev.AdoptionDecided(stage=stage, experience=e) if e == name:
                self.decisions.setdefault(stage, []).append(entry)
            case ev.ExperiencesRetrieved(stage=stage, offered=offered, pool=pool, query=query) if name in offered:
                at = next((p for p in pool if p.experience == name), None)
                self.offers.setdefault(stage, (entry.sequence, at, query))
            case ev.Consolidated():
                self.last_table = entry
            case ev.StageScored(stage=stage):
                self.scored[stage] = entry
            case ev.OutcomeReported(stage=stage):
                self.reported[stage] = entry
            case ev.CandidateProposed(stage=stage, candidate=c):
                self.proposed[state.stages[stage].task, c] = entry
            case ev.CandidateVerified(stage=stage, candidate=c):
                self.verified[state.stages[stage].task, c] = entry
            case ev.CandidateMeasured(stage=stage, candidate=c):
                self.measured[state.stages[stage].task, c] = entry
            case _:
                pass


def why(state: State, name: str, entries: Iterable[Entry], text: Text) -> Json:
    """Everything that made an experience what it is. `entries` is the whole log, `text` reads a blob.

    Raises UnknownExperienceError.
    """
    experience = decide.experience_of(state, name)
    trail = _Trail(name, state, entries)
    gate = _gate(state, experience)
    table = _table(state, experience, trail)
    return {
        "experience": name,
        "title": experience.title,
        "sequence": state.sequence,
        "resident": experience.resident,
        "answer": _answer(state, experience, trail, gate, table),
        "gate": gate,
        "consolidation": table,
        "rule": _rule(experience, trail, text),
        "moves": [_move(entry) for entry in trail.moves],
        "value": [_update(state, trail, entry, text) for entry in trail.updates],
        "frequency": {
            "now": frequency(experience, state.eligible(experience.stages)),
            "rule": _frequency_rule(state, experience),
            "course": [
                {
                    "sequence": sequence,
                    "stage": stage,
                    "old": change.old,
                    "new": change.new,
                    "used": change.used,
                    "averaged": change.averaged,
                }
                for sequence, stage, change in trail.frequencies
            ],
        },
        "origin": _origin(experience, trail, text),
    }


def _gate(state: State, experience: Experience) -> Json:
    policy = state.policy
    return {
        "passes": consolidation.gate(policy, consolidation.standing_of(state, experience)),
        "value": experience.value,
        "value_above": 0.0,
        "adoptions": experience.adoptions,
        "min_adoptions": policy.min_adoptions,
        "operators": sorted(experience.operators),
        "min_operators": policy.min_operators,
    }


def _answer(state: State, experience: Experience, trail: _Trail, gate: Json, table: Json | None) -> str:
    if experience.resident and table is not None:
        admitted = trail.moves[-1]
        return (
            f"{experience.id} is resident since sequence {admitted.sequence}: value {experience.value:.4f} > 0, adopted in "
            f"{experience.adoptions} stages over {len(experience.operators)} operators ({', '.join(gate['operators'])}); "
            f"priority {table['priority']:.3g} ranks {table['rank']} of {table['candidates']} and its {experience.tokens} "
            f"tokens fit the budget of {table['budget']} ({table['used']} used)."
        )
    return f"{experience.id} is not resident: " + "; ".join(_hindrances(state, experience, trail, table)) + "."


def _hindrances(state: State, experience: Experience, trail: _Trail, table: Json | None) -> list[str]:
    policy = state.policy
    if experience.retired:
        reason = (
            trail.retired.event.reason
            if trail.retired and isinstance(trail.retired.event, ev.ExperienceRetired)
            else ""
        )
        return [f"it was retired ({reason})"]
    if policy.consolidation == "none":
        return ["the policy keeps no residents"]
    found = []
    if policy.consolidation == "utility":
        if experience.value <= 0.0:
            found.append(f"its value {experience.value:.4f} is not above 0")
        if experience.adoptions < policy.min_adoptions:
            found.append(
                f"it was adopted in {experience.adoptions} of the {policy.min_adoptions} stages that the gate asks for"
            )
        if len(experience.operators) < policy.min_operators:
            found.append(
                f"it was adopted on {len(experience.operators)} of the {policy.min_operators} operators that the gate asks for"
            )
    if not found and experience.rule is None:
        found.append("it passes the gate and awaits distillation of a rule text")
    if not found and table is not None and not table["fits"]:
        found.append(
            f"at rank {table['rank']} its {experience.tokens} tokens do not fit what is left of {table['budget']}"
        )
    return found or ["the next consolidation decides"]


def _table(state: State, experience: Experience, trail: _Trail) -> Json | None:
    """The newest consolidation, seen from this experience's line."""
    entry = trail.last_table
    if entry is None or not isinstance(entry.event, ev.Consolidated):
        return None
    ranked = entry.event.ranked
    place = next((i for i, r in enumerate(ranked) if r.experience == experience.id), None)
    if place is None:
        return None
    line = ranked[place]
    first_out = next((r for r in ranked if not r.resident), None)
    admitted = next((e for e in reversed(trail.moves) if isinstance(e.event, ev.RuleAdmitted)), None)
    at_admission = trail.tables.get(admitted.sequence) if admitted else None
    return {
        "sequence": entry.sequence,
        "trigger": entry.event.trigger,
        "subject": entry.event.subject,
        "rank": place + 1,
        "candidates": len(ranked),
        "priority": line.priority,
        "value": line.value,
        "frequency": line.frequency,
        "tokens": line.tokens,
        "fits": line.resident,
        "budget": entry.event.budget,
        "used": entry.event.used,
        "used_before": sum(r.tokens for r in ranked[:place] if r.resident),
        "above": _neighbour(ranked[place - 1]) if place else None,
        "below": _neighbour(ranked[place + 1]) if place + 1 < len(ranked) else None,
        "first_left_out": _neighbour(first_out) if first_out else None,
        "margin_to_cut": line.priority - first_out.priority if first_out else None,
        "admitted_by": at_admission.sequence if at_admission else None,
        "residents": len(state.residents),
    }


def _neighbour(line: ev.Ranked) -> Json:
    return {"experience": line.experience, "priority": line.priority, "tokens": line.tokens, "fits": line.resident}


def _rule(experience: Experience, trail: _Trail, text: Text) -> Json | None:
    if not trail.rules or experience.rule is None:
        return None
    entry = trail.rules[-1]
    return {
        "sequence": entry.sequence,
        "actor": entry.actor,
        "blob": experience.rule,
        "tokens": experience.tokens,
        "tokenizer": experience.tokenizer,
        "text": text(experience.rule),
    }


def _move(entry: Entry) -> Json:
    event = entry.event
    facts: Json = {"sequence": entry.sequence, "time": entry.time}
    if isinstance(event, ev.RuleAdmitted):
        return facts | {"move": "admitted", "subject": event.subject, "rank": event.rank, "priority": event.priority}
    if isinstance(event, ev.RuleEvicted):
        return facts | {"move": "evicted", "subject": event.subject, "reason": event.reason}
    return facts


def _update(state: State, trail: _Trail, entry: Entry, text: Text) -> Json:
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
        "score": result.score,
        "scored_at": scored.sequence,
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


def _decision(state: State, trail: _Trail, task: str, entry: Entry, text: Text) -> Json:
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


def _change(trail: _Trail, task: str, candidates: dict[str, Candidate], name: str, text: Text) -> Json | None:
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


def _evidence(
    trail: _Trail, task: str, scored: ev.StageScored, *, text: Text, candidates: dict[str, Candidate]
) -> Json:
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


def _measurement(trail: _Trail, task: str, name: str) -> Json:
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


def _frequency_rule(state: State, experience: Experience) -> str:
    if experience.frozen is not None:
        return "retired: it stands still"
    if experience.average is not None:
        return f"moving average of use, beta {state.policy.beta}"
    since = state.eligible(experience.stages) - experience.scored_before
    return f"offered in {experience.n} of {since} eligible stages since it was recorded"


def _origin(experience: Experience, trail: _Trail, text: Text) -> Json:
    entry = trail.recorded
    return {
        "sequence": experience.recorded,
        "time": entry.time if entry else None,
        "actor": entry.actor if entry else None,
        "kind": experience.source.kind,
        "name": experience.source.name,
        "texts": list(experience.source.texts),
        "body": experience.body,
        "body_text": text(experience.body),
        "amended": [e.sequence for e in trail.amended],
        "retired": trail.retired.sequence if trail.retired else None,
    }
