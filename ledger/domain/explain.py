"""Why a rule is resident, or why not: one answer whose every link is a sequence of the log or a blob."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ledger.domain import consolidation, course, decide
from ledger.domain import events as ev
from ledger.domain.state import Experience, State, frequency
from ledger.domain.trail import Entry, Text, Trail
from ledger.domain.whatif import hindrance

Json = dict[str, Any]


def why(state: State, name: str, entries: Iterable[Entry], text: Text) -> Json:
    """Everything that made an experience what it is. `entries` is the whole log, `text` reads a blob.

    Raises UnknownExperienceError.
    """
    experience = decide.experience_of(state, name)
    trail = Trail(name, state, entries)
    gate = _gate(state, experience)
    table = _table(state, experience, trail)
    return {
        "experience": name,
        "title": experience.title,
        "sequence": state.sequence,
        "resident": experience.resident,
        "answer": _answer(state, experience, trail, gate, table),
        "gate": gate,
        "admission": _admission(experience, trail),
        "consolidation": table,
        "rule": _rule(experience, trail, text),
        "what_would_it_take": None if experience.resident else msgspec.to_builtins(hindrance(state, experience)),
        "moves": [_move(entry) for entry in trail.moves],
        "value": [course.update(state, trail, entry, text) for entry in trail.updates],
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
        "restated": [
            {
                "sequence": entry.sequence,
                "value": told.value,
                "retrievals": told.n,
                "adoptions": told.adoptions,
                "operators": list(told.operators),
            }
            for entry, told in trail.restated
        ],
        "environments": {
            "evidence": [list(e) for e in sorted(experience.environments)],
            "needs_revalidation": [list(e) for e in sorted(experience.questioned) if experience.needs_revalidation(e)],
            "events": [course.plain(entry) for entry in trail.revalidations],
        },
        "conflicts": [course.plain(entry) for entry in trail.conflicts],
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


def _answer(state: State, experience: Experience, trail: Trail, gate: Json, table: Json | None) -> str:
    if experience.resident and table is not None:
        admitted = trail.moves[-1]
        return (
            f"{experience.id} is resident since sequence {admitted.sequence}: value {experience.value:.4f} > 0, "
            f"adopted in {experience.adoptions} stages over {len(experience.operators)} operators "
            f"({', '.join(gate['operators'])}); "
            f"priority {table['priority']:.3g} ranks {table['rank']} of {table['candidates']} "
            f"and its {experience.tokens} "
            f"tokens fit the budget of {table['budget']} ({table['used']} used)."
        )
    return f"{experience.id} is not resident: " + "; ".join(_hindrances(state, experience, trail, table)) + "."


def _hindrances(state: State, experience: Experience, trail: Trail, table: Json | None) -> list[str]:
    policy = state.policy
    if experience.retired:
        return [_retirement(trail)]
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
                f"it was adopted on {len(experience.operators)} of the {policy.min_operators} operators "
                "that the gate asks for"
            )
    if not found and experience.rule is None:
        found.append("it passes the gate and awaits distillation of a rule text")
    if not found and table is not None and not table["fits"]:
        found.append(
            f"at rank {table['rank']} its {experience.tokens} tokens do not fit what is left of {table['budget']}"
        )
    return found or ["the next consolidation decides"]


def _retirement(trail: Trail) -> str:
    event = trail.retired.event if trail.retired else None
    if isinstance(event, ev.ExperienceSuperseded):
        return f"it was superseded by {event.by} ({event.reason})"
    if isinstance(event, ev.ExperienceRetired):
        return f"it was retired ({event.reason})"
    return "it is retired"


def _table(state: State, experience: Experience, trail: Trail) -> Json | None:
    """The newest consolidation, seen from this experience's line."""
    told = _line(experience, trail.last_table)
    return None if told is None else told | {"residents": len(state.residents)}


def _admission(experience: Experience, trail: Trail) -> Json | None:
    """The consolidation that admitted its rule last, seen from its line."""
    admitted = next((e for e in reversed(trail.moves) if isinstance(e.event, ev.RuleAdmitted)), None)
    if admitted is None:
        return None
    told = _line(experience, trail.tables.get(admitted.sequence))
    return None if told is None else told | {"admitted_at": admitted.sequence, "time": admitted.time}


def _line(experience: Experience, entry: Entry | None) -> Json | None:
    """One consolidation's table from the line of an experience: its rank, its neighbours, the cut, the budget."""
    if entry is None or not isinstance(entry.event, ev.Consolidated):
        return None
    ranked = entry.event.ranked
    place = next((i for i, r in enumerate(ranked) if r.experience == experience.id), None)
    if place is None:
        return None
    line = ranked[place]
    first_out = next((r for r in ranked if not r.resident), None)
    before = sum(r.tokens for r in ranked[:place] if r.resident)
    return {
        "sequence": entry.sequence,
        "trigger": entry.event.trigger,
        "subject": entry.event.subject,
        "rank": place + 1,
        "candidates": len(ranked) if entry.event.candidates is None else entry.event.candidates,
        "priority": line.priority,
        "value": line.value,
        "frequency": line.frequency,
        "tokens": line.tokens,
        "fits": line.resident,
        "against": line.against,
        "budget": entry.event.budget,
        "used": entry.event.used,
        "used_before": before,
        "used_after": before + line.tokens if line.resident else before,
        "above": _neighbour(ranked[place - 1]) if place else None,
        "below": _neighbour(ranked[place + 1]) if place + 1 < len(ranked) else None,
        "first_left_out": _neighbour(first_out) if first_out else None,
        "margin_to_cut": line.priority - first_out.priority if first_out else None,
    }


def _neighbour(line: ev.Ranked) -> Json:
    return {"experience": line.experience, "priority": line.priority, "tokens": line.tokens, "fits": line.resident}


def _rule(experience: Experience, trail: Trail, text: Text) -> Json | None:
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


def _frequency_rule(state: State, experience: Experience) -> str:
    if experience.frozen is not None:
        return "retired: it stands still"
    if experience.average is not None:
        return f"moving average of use, beta {state.policy.beta}"
    since = state.eligible(experience.stages) - experience.scored_before
    return f"offered in {experience.n} of {since} eligible stages since it was recorded"


def _origin(experience: Experience, trail: Trail, text: Text) -> Json:
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
