"""Why a rule is resident, or why not: one answer whose every link is a sequence of the log or a blob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ledger.domain import consolidation, course, decide, table
from ledger.domain import events as ev
from ledger.domain.model import FREQUENCY_COURSE
from ledger.domain.state import Experience, State, frequency
from ledger.domain.trail import Entry, Text, Trail
from ledger.domain.whatif import Hindrance, hindrance

Json = dict[str, Any]


def why(state: State, name: str, entries: Iterable[Entry], text: Text) -> Json:
    """Everything that made an experience what it is. `entries` is the whole log, `text` reads a blob.

    Raises UnknownExperienceError.
    """
    experience = decide.experience_of(state, name)
    trail = Trail(name, state, entries)
    gate = _gate(state, experience)
    newest = table.newest(state, name, trail.last_table)
    lack = None if experience.resident else hindrance(state, experience)
    return {
        "experience": name,
        "title": experience.title,
        "sequence": state.sequence,
        "resident": experience.resident,
        "answer": _answer(experience, trail, newest, lack),
        "gate": gate,
        "admission": _admission(name, trail),
        "consolidation": newest,
        "rule": _rule(experience, trail, text),
        "what_would_it_take": None if lack is None else msgspec.to_builtins(lack),
        "moves": [_move(trail, entry) for entry in trail.moves],
        "value": [course.update(state, trail, entry, text) for entry in trail.updates],
        "unscored": course.unscored(state, trail, text),
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
            "kept": FREQUENCY_COURSE,
        },
        "reversals": [course.reversal(entry) for entry in trail.reversals],
        "restated": [_restated(entry, told, because) for entry, told, because in trail.restated],
        "withheld": [course.withheld(state, entry) for entry in trail.withheld],
        "conditions": {
            "stages": list(experience.stages),
            **{k: v for k, v in msgspec.to_builtins(experience.conditions).items() if v},
        },
        "environments": {
            "evidence": [list(e) for e in sorted(experience.environments)],
            "needs_revalidation": [list(e) for e in sorted(experience.questioned) if experience.needs_revalidation(e)],
            "events": [course.plain(entry) for entry in trail.revalidations],
        },
        "conflicts": list(_conflicts(state, experience, trail)),
        "origin": _origin(experience, trail, text),
    }


def _restated(entry: Entry, told: ev.Restated, because: Entry | None) -> Json:
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "because": None if because is None else course.reversal(because),
        "value": told.value,
        "retrievals": told.n,
        "adoptions": told.adoptions,
        "operators": list(told.operators),
        "frequency": told.frozen if told.frozen is not None else told.average,
    }


def _conflicts(state: State, experience: Experience, trail: Trail) -> Iterator[Json]:
    """Each conflict with the rule that it is with, and how it was settled."""
    ends = {e.event.conflict: e for e in trail.conflicts if isinstance(e.event, ev.ConflictResolved)}
    for entry in trail.conflicts:
        event = entry.event
        if not isinstance(event, ev.ConflictRecorded):
            continue
        rival = event.second if event.first == experience.id else event.first
        end = ends.get(event.conflict)
        settled = None
        if end is not None and isinstance(end.event, ev.ConflictResolved):
            settled = {
                "sequence": end.sequence,
                "time": end.time,
                "actor": end.actor,
                "loser": end.event.loser,
                "reason": end.event.reason,
            }
        yield {
            "conflict": event.conflict,
            "sequence": entry.sequence,
            "time": entry.time,
            "actor": entry.actor,
            "rival": rival,
            "rival_resident": state.experiences[rival].resident,
            "reason": event.reason,
            "proposed": event.proposed,
            "settled": settled,
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


def _answer(experience: Experience, trail: Trail, line: Json | None, lack: Hindrance | None) -> str:
    if lack is None:
        evidence = (
            f"{experience.id} is resident since sequence {trail.moves[-1].sequence}: value {experience.value:.4f}, "
            f"adopted in {experience.adoptions} stages over {len(experience.operators)} operators "
            f"({', '.join(sorted(experience.operators))})"
        )
        if line is None:
            return evidence + "."
        return (
            f"{evidence}; priority {line['priority']:.3g} ranks {line['rank']} of {line['candidates']} and its "
            f"{experience.tokens} tokens fit the budget of {line['budget']} ({line['used']} used)."
        )
    return f"{experience.id} is not resident: " + "; ".join(_hindrances(experience, trail, lack)) + "."


def _hindrances(experience: Experience, trail: Trail, lack: Hindrance) -> list[str]:  # noqa: C901 - one arm each
    if lack.retired:
        return [_retirement(trail)]
    if lack.no_residents:
        return ["the policy keeps no residents"]
    found = []
    if lack.value_short is not None:
        found.append(f"its value {experience.value:.4f} is not above 0")
    if lack.adoptions_missing:
        asked = experience.adoptions + lack.adoptions_missing
        found.append(f"it was adopted in {experience.adoptions} of the {asked} stages that the gate asks for")
    if lack.operators_missing:
        asked = len(experience.operators) + lack.operators_missing
        found.append(f"it was adopted on {len(experience.operators)} of the {asked} operators that the gate asks for")
    if not found and lack.rule_missing:
        found.append("it passes the gate and awaits distillation of a rule text")
    for item in lack.conflicts:
        if item.settled:
            found.append(f"it lost the conflict {item.conflict} with {item.rival} ({item.reason})")
        elif not found:
            found.append(f"it contradicts {item.rival}, which ranks above it ({item.reason})")
    if not found and lack.above:
        taken = sum(rule.tokens for rule in lack.above)
        found.append(
            f"at rank {lack.rank} of {lack.candidates} its {experience.tokens} tokens do not fit beside the "
            f"{taken} of the {len(lack.above)} rules that rank above it"
        )
    if not found and lack.fits:
        found.append("the next consolidation admits it")
    return found or ["its frequency is 0, and so is its priority"]


def _retirement(trail: Trail) -> str:
    event = trail.retired.event if trail.retired else None
    if isinstance(event, ev.ExperienceSuperseded):
        return f"it was superseded by {event.by} ({event.reason})"
    if isinstance(event, ev.ExperienceRetired):
        return f"it was retired ({event.reason})"
    return "it is retired"


def _admission(name: str, trail: Trail) -> Json | None:
    """The consolidation that admitted its rule last, seen from its line."""
    admitted = next((e for e in reversed(trail.moves) if isinstance(e.event, ev.RuleAdmitted)), None)
    if admitted is None:
        return None
    told = table.recorded(name, trail.tables.get(admitted.sequence))
    return None if told is None else told | {"admitted_at": admitted.sequence}


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


def _move(trail: Trail, entry: Entry) -> Json:
    event = entry.event
    told = trail.tables.get(entry.sequence)
    facts: Json = {
        "sequence": entry.sequence,
        "time": entry.time,
        "actor": entry.actor,
        "consolidation": told.sequence if told else None,
    }
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
    """Where it came from and its text as it was recorded; then each amendment, of which the last is the text now."""
    entry = trail.recorded
    first = entry.event if entry else None
    told = first if isinstance(first, ev.ExperienceRecorded) else None
    body = told.body if told else experience.body
    return {
        "sequence": experience.recorded,
        "time": entry.time if entry else None,
        "actor": entry.actor if entry else None,
        "kind": experience.source.kind,
        "name": experience.source.name,
        "texts": list(experience.source.texts),
        "title": told.title if told else experience.title,
        "body": body,
        "body_text": text(body),
        "amendments": [
            {
                "sequence": e.sequence,
                "time": e.time,
                "actor": e.actor,
                "reason": e.event.reason,
                "title": e.event.title,
                "body": e.event.body,
                "body_text": text(e.event.body),
                "conditions": None if e.event.conditions is None else msgspec.to_builtins(e.event.conditions),
            }
            for e in trail.amended
            if isinstance(e.event, ev.ExperienceAmended)
        ],
        "retired": _end(trail.retired),
    }


def _end(entry: Entry | None) -> Json | None:
    """Its retirement or supersession: who and why."""
    if entry is None:
        return None
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "actor": entry.actor,
        "by": getattr(entry.event, "by", None),
        "reason": getattr(entry.event, "reason", ""),
    }
