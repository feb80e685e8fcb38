"""UGC, utility-gated consolidation: the resident set is rebuilt from empty within a budget of tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import Experience, State, frequency

TABLE_ROWS = 500
"""Candidates that a recorded table lists in full; with more, it lists the first of them and every resident."""

Trigger = Literal["stage", "rule", "retire", "supersede", "conflict", "policy", "reversal"]


@dataclass(frozen=True, slots=True)
class Standing:
    """An experience's numbers as consolidation reads them."""

    value: float
    frequency: float
    adoptions: int
    operators: int


def gate(policy: Policy, standing: Standing) -> bool:
    """Cross-operator evidence: V > 0, enough adoptions, enough distinct operators."""
    return (
        standing.value > 0.0
        and standing.adoptions >= policy.min_adoptions
        and standing.operators >= policy.min_operators
    )


def standing_of(state: State, experience: Experience) -> Standing:
    """The numbers as the state has them now."""
    return Standing(
        experience.value,
        frequency(experience, state.eligible(experience.stages)),
        experience.adoptions,
        len(experience.operators),
    )


def awaiting_distillation(state: State) -> tuple[str, ...]:
    """Experiences that pass the gate and have no rule text, by id."""
    if state.policy.consolidation == "none":
        return ()
    return tuple(
        sorted(
            e.id
            for e in state.experiences.values()
            if e.rule is None and not e.retired and gate(state.policy, standing_of(state, e))
        )
    )


def _drawn(policy: Policy, name: str) -> float:
    """A number in (0, 1] fixed by the recorded seed and the id."""
    digest = hashlib.sha256(f"{policy.resident_seed}:{name}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 1) / 2**64


Place = tuple[float, int, str, float, float, bool, str | None]
"""One candidate in order: -priority, tokens, id, value, frequency, fits, against."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """What the batch that consolidates moves and the state does not show yet."""

    changed: Mapping[str, Standing] = field(default_factory=dict)
    """Numbers after it, of the experiences that it moves by name."""
    closing: ev.StageKind | None = None
    """The kind of the stage that it scores: one more eligible stage for everything of that kind."""
    without: str | None = None
    """One that it retires."""
    distilled: ev.RuleDistilled | None = None
    """A rule that it brings."""


NOTHING = Overlay()


def _keyed(state: State, overlay: Overlay) -> list[tuple[float, int, str, float, float]]:
    """Candidates as (-priority, tokens, id, value, frequency), in order. Flat: it runs over every experience."""
    policy = state.policy
    by_draw = policy.consolidation == "random"
    least_adoptions, least_operators = policy.min_adoptions, policy.min_operators
    scored = {kind: count + (kind == overlay.closing) for kind, count in state.scored.items()}
    eligible: dict[tuple[ev.StageKind, ...], int] = {}
    brought = overlay.distilled.experience if overlay.distilled is not None else None
    changed, without = overlay.changed, overlay.without
    keyed = []
    for name, item in state.experiences.items():
        tokens = item.tokens
        if brought == name and overlay.distilled is not None:
            tokens = overlay.distilled.tokens
        if tokens is None or item.frozen is not None or name == without:
            continue
        moved = changed.get(name)
        if moved is None:
            value, adoptions, operators = item.value, item.adoptions, len(item.operators)
        else:
            value, adoptions, operators = moved.value, moved.adoptions, moved.operators
        passes = value > 0.0 and (item.resident or (adoptions >= least_adoptions and operators >= least_operators))
        if not (by_draw or passes):
            continue
        if moved is not None:
            often = moved.frequency
        elif item.average is not None:
            often = item.average
        else:
            if item.stages not in eligible:
                eligible[item.stages] = sum(scored[kind] for kind in item.stages)
            since = eligible[item.stages] - item.scored_before
            often = item.n / since if since > 0 else 0.0
        priority = _drawn(policy, name) if by_draw else value * often / tokens
        if priority > 0.0:
            keyed.append((-priority, tokens, name, value, often))
    keyed.sort()
    return keyed


def _placed(state: State, overlay: Overlay) -> list[Place]:
    """Candidates in order of priority V * f / tokens, then fewer tokens, then id; what fits what is left is marked."""
    budget = state.policy.budget_tokens
    used = 0
    admitted: set[str] = set()
    placed: list[Place] = []
    for negative, tokens, name, value, often in _keyed(state, overlay):
        against = _against(state, name, admitted, overlay.without) if name in state.conflicts_of else None
        fits = against is None and used + tokens <= budget
        if fits:
            used += tokens
            admitted.add(name)
        placed.append((negative, tokens, name, value, often, fits, against))
    return placed


def _row(place: Place) -> ev.Ranked:
    negative, tokens, name, value, often, fits, against = place
    return ev.Ranked(
        experience=name,
        value=value,
        frequency=often,
        tokens=tokens,
        priority=-negative,
        resident=fits,
        against=against,
    )


def rank(state: State, changed: Mapping[str, Standing]) -> list[ev.Ranked]:
    """Every candidate in order, with the numbers in `changed` in place of the state's."""
    return [_row(place) for place in _placed(state, Overlay(changed=changed))]


def _against(state: State, name: str, admitted: set[str], without: str | None) -> str | None:
    """The rule that keeps this one out: a rival admitted before it, or the winner of a settled conflict."""
    for conflict in state.conflicts_of[name]:
        rival = conflict.rival(name)
        if conflict.open and rival in admitted:
            return rival
        if conflict.loser == name and rival != without and not state.experiences[rival].retired:
            return rival
    return None


def consolidate(state: State, trigger: Trigger, subject: str, overlay: Overlay = NOTHING) -> list[ev.Event]:
    """The events of one consolidation; none where the policy keeps no residents."""
    if state.policy.consolidation == "none":
        return []
    placed = _placed(state, overlay)
    residents = {place[2] for place in placed if place[5]}
    result: list[ev.Event] = [table(state, placed, trigger, subject)]
    leaving = sorted(set(state.residents) - residents)
    if leaving:
        listed = {place[2]: (number, place) for number, place in enumerate(placed, 1)}
        result.extend(
            ev.RuleEvicted(
                experience=name, subject=subject, reason=_eviction(state, name, listed.get(name), overlay.without)
            )
            for name in leaving
        )
    for number, (negative, tokens, name, _, _, fits, _) in enumerate(placed, 1):
        if fits and name not in state.residents:
            result.append(
                ev.RuleAdmitted(experience=name, subject=subject, rank=number, priority=-negative, tokens=tokens)
            )
    return result


def table(state: State, placed: list[Place], trigger: Trigger, subject: str) -> ev.Consolidated:
    """The table that is recorded: every candidate, or where they are many the first rows and each that fits."""
    kept = placed
    if len(placed) > TABLE_ROWS:
        kept = placed[:TABLE_ROWS] + [place for place in placed[TABLE_ROWS:] if place[5]]
    return ev.Consolidated(
        trigger=trigger,
        subject=subject,
        budget=state.policy.budget_tokens,
        used=sum(place[1] for place in placed if place[5]),
        ranked=tuple(_row(place) for place in kept),
        candidates=None if kept is placed else len(placed),
    )


def table_now(state: State, trigger: Trigger, subject: str) -> ev.Consolidated:
    """The table of the state as it is."""
    return table(state, _placed(state, NOTHING), trigger, subject)


def _eviction(state: State, name: str, listed: tuple[int, Place] | None, without: str | None) -> str:
    if name == without or state.experiences[name].retired:
        return "retired"
    if listed is None:
        return "its value is no longer above 0" if state.policy.consolidation == "utility" else "no longer drawn"
    number, (_, tokens, _, _, _, _, against) = listed
    if against is not None:
        return f"it contradicts {against}, which stands above it"
    return f"out-ranked: at rank {number} its {tokens} tokens no longer fit the budget of {state.policy.budget_tokens}"
