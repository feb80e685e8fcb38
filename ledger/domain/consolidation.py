"""UGC, utility-gated consolidation: the resident set is rebuilt from empty within a budget of tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import Experience, State, frequency

TABLE_ROWS = 500
"""Candidates that a recorded table lists in full; with more, it lists the first and what matters among the others."""

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
    return tuple(sorted(e.id for e in state.experiences.values() if is_awaiting(state, e)))


def is_awaiting(state: State, item: Experience) -> bool:
    """Whether it passes the gate and has no rule text yet."""
    return (
        state.policy.consolidation != "none"
        and item.rule is None
        and not item.retired
        and gate(state.policy, standing_of(state, item))
    )


def drawn(policy: Policy, name: str) -> float:
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
    formerly: frozenset[str] | set[str] = frozenset()
    """Cold ones that are looked at as the residents that they were."""


NOTHING = Overlay()


def _keyed(state: State, overlay: Overlay) -> list[tuple[float, int, str, float, float]]:
    """Candidates as (-priority, tokens, id, value, frequency), in order. Flat: it runs over every experience."""
    policy = state.policy
    by_draw = policy.consolidation == "random"
    least_adoptions, least_operators = policy.min_adoptions, policy.min_operators
    scored = {kind: count + (kind == overlay.closing) for kind, count in state.scored.items()}
    eligible: dict[tuple[ev.StageKind, ...], int] = {}
    brought = overlay.distilled.experience if overlay.distilled is not None else None
    changed, without, formerly = overlay.changed, overlay.without, overlay.formerly
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
        passes = value > 0.0 and (
            (adoptions >= least_adoptions and operators >= least_operators) or item.resident or name in formerly
        )
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
        priority = drawn(policy, name) if by_draw else value * often / tokens
        if priority > 0.0:
            keyed.append((-priority, tokens, name, value, often))
    keyed.sort()
    return keyed


def _placed(state: State, overlay: Overlay) -> list[Place]:
    """Candidates in order of priority V * f / tokens, then fewer tokens, then id; what fits what is left is marked."""
    return _fitted(state, _keyed(state, overlay), overlay.without)


def newest(state: State) -> list[Place]:
    """Every line of the newest consolidation, from the state that it left."""
    return _placed(state, Overlay(formerly=state.left))


def others(state: State, name: str) -> list[Place]:
    """Every candidate but one, placed as if that one were none."""
    return _fitted(state, [key for key in _keyed(state, NOTHING) if key[2] != name], None)


def _fitted(state: State, keyed: Iterable[tuple[float, int, str, float, float]], without: str | None) -> list[Place]:
    budget = state.policy.budget_tokens
    used = 0
    admitted: set[str] = set()
    placed: list[Place] = []
    for negative, tokens, name, value, often in keyed:
        against = _against(state, name, admitted, without) if name in state.conflicts_of else None
        fits = against is None and used + tokens <= budget
        if fits:
            used += tokens
            admitted.add(name)
        placed.append((negative, tokens, name, value, often, fits, against))
    return placed


def row(place: Place) -> ev.Ranked:
    """One candidate as a recorded table has it."""
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
    return [row(place) for place in _placed(state, Overlay(changed=changed))]


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
    """The events of one consolidation. Where the policy keeps no residents, those of an earlier one leave."""
    if state.policy.consolidation == "none":
        return [
            ev.RuleEvicted(experience=name, subject=subject, reason="the policy keeps no residents")
            for name in sorted(state.residents)
        ]
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
    """The table that is recorded: every candidate, or where they are many the first rows and those that matter."""
    kept = placed
    ranks: tuple[int, ...] = ()
    if len(placed) > TABLE_ROWS:
        ranks = _telling(placed)
        kept = [placed[rank - 1] for rank in ranks]
    return ev.Consolidated(
        trigger=trigger,
        subject=subject,
        budget=state.policy.budget_tokens,
        used=sum(place[1] for place in placed if place[5]),
        ranked=tuple(row(place) for place in kept),
        candidates=len(placed) if ranks else None,
        ranks=ranks,
    )


def _telling(placed: list[Place]) -> tuple[int, ...]:
    """Ranks of the lines that a long table keeps: the first, each that fits with its neighbours, the first left out."""
    ranks = set(range(1, TABLE_ROWS + 1))
    for index in range(TABLE_ROWS, len(placed)):
        if placed[index][5]:
            ranks.update((index, index + 1, index + 2))
    out = next((rank for rank, place in enumerate(placed, 1) if not place[5]), None)
    if out is not None:
        ranks.add(out)
    ranks.discard(len(placed) + 1)
    return tuple(sorted(ranks))


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
        lost = next((c for c in state.conflicts_of[name] if c.loser == name and c.rival(name) == against), None)
        if lost is not None:
            return f"it lost the conflict {lost.id} with {against}: {lost.reason}"
        return f"it contradicts {against}, which stands above it"
    return f"out-ranked: at rank {number} its {tokens} tokens no longer fit the budget of {state.policy.budget_tokens}"
