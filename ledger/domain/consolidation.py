"""UGC, utility-gated consolidation: the resident set is rebuilt from empty within a budget of tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import Experience, State, frequency

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


def rank(
    state: State,
    changed: Mapping[str, Standing],
    without: str | None = None,
    distilled: ev.RuleDistilled | None = None,
) -> list[ev.Ranked]:
    """Candidates in order of priority V * f / tokens, then fewer tokens, then id, with what fits marked resident.

    `changed` overlays the numbers of experiences that this batch moves, `without` is one that it retires, `distilled`
    a rule that it brings.
    """
    policy = state.policy
    by_draw = policy.consolidation == "random"
    keyed: list[tuple[float, int, str, Standing]] = []
    for name, experience in state.experiences.items():
        tokens = distilled.tokens if distilled is not None and name == distilled.experience else experience.tokens
        if tokens is None or experience.frozen is not None or name == without:
            continue
        standing = changed.get(name) or standing_of(state, experience)
        if by_draw:
            priority = _drawn(policy, name)
        elif standing.value <= 0.0 or not (experience.resident or gate(policy, standing)):
            continue
        else:
            priority = standing.value * standing.frequency / tokens
            if priority <= 0.0:
                continue
        keyed.append((-priority, tokens, name, standing))
    keyed.sort(key=lambda item: item[:3])
    used = 0
    ranked = []
    admitted: set[str] = set()
    for negative, tokens, name, standing in keyed:
        against = _against(state, name, admitted, without) if name in state.conflicts_of else None
        fits = against is None and used + tokens <= policy.budget_tokens
        if fits:
            used += tokens
            admitted.add(name)
        ranked.append(
            ev.Ranked(
                experience=name,
                value=standing.value,
                frequency=standing.frequency,
                tokens=tokens,
                priority=-negative,
                resident=fits,
                against=against,
            )
        )
    return ranked


def _against(state: State, name: str, admitted: set[str], without: str | None) -> str | None:
    """The rule that keeps this one out: one admitted before it that it contradicts, or the winner of a settled conflict."""
    for conflict in state.conflicts_of[name]:
        rival = conflict.rival(name)
        if conflict.open and rival in admitted:
            return rival
        if conflict.loser == name and rival != without and not state.experiences[rival].retired:
            return rival
    return None


def consolidate(
    state: State,
    trigger: Trigger,
    subject: str,
    changed: Mapping[str, Standing] | None = None,
    without: str | None = None,
    distilled: ev.RuleDistilled | None = None,
) -> list[ev.Event]:
    """The events of one consolidation; none where the policy keeps no residents."""
    if state.policy.consolidation == "none":
        return []
    ranked = rank(state, changed or {}, without, distilled)
    residents = {r.experience for r in ranked if r.resident}
    used = sum(r.tokens for r in ranked if r.resident)
    budget = state.policy.budget_tokens
    result: list[ev.Event] = [
        ev.Consolidated(trigger=trigger, subject=subject, budget=budget, used=used, ranked=tuple(ranked))
    ]
    listed = {r.experience: (place, r) for place, r in enumerate(ranked, 1)}
    for name in sorted(set(state.residents) - residents):
        result.append(
            ev.RuleEvicted(experience=name, subject=subject, reason=_eviction(state, name, listed.get(name), without))
        )
    for place, r in enumerate(ranked, 1):
        if r.resident and r.experience not in state.residents:
            result.append(
                ev.RuleAdmitted(
                    experience=r.experience, subject=subject, rank=place, priority=r.priority, tokens=r.tokens
                )
            )
    return result


def _eviction(state: State, name: str, listed: tuple[int, ev.Ranked] | None, without: str | None) -> str:
    if name == without or state.experiences[name].retired:
        return "retired"
    if listed is None:
        return "its value is no longer above 0" if state.policy.consolidation == "utility" else "no longer drawn"
    place, r = listed
    if r.against is not None:
        return f"it contradicts {r.against}, which stands above it"
    return f"out-ranked: at rank {place} its {r.tokens} tokens no longer fit the budget of {state.policy.budget_tokens}"
