"""Audit: why, re-derivation, verification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ledger import wire
from ledger.commands.libraries import resolve_policy
from ledger.domain import events as ev
from ledger.domain import explain
from ledger.domain.rederive import Difference, rederive
from ledger.domain.state import State
from ledger.domain.trail import Entry
from ledger.service import Ledger


def why(ledger: Ledger, library: str, name: str) -> dict[str, Any]:
    """Why an experience's rule is resident or not."""
    with ledger.reading(library) as state:
        entries = (Entry(r.sequence, r.time, r.actor, r.event) for r in ledger.recorded(library, until=state.sequence))
        return {"library": library, **explain.why(state, name, entries, ledger.text)}


def verify(ledger: Ledger, library: str) -> wire.Verification:
    """Check the whole log of a library."""
    verdict = ledger.verify(library)
    return wire.Verification(
        library=library,
        ok=verdict.ok,
        events=verdict.events,
        head=verdict.head.hex(),
        bad_sequence=verdict.bad_sequence,
        reason=verdict.reason,
    )


def _shown(event: ev.Event | None) -> dict[str, Any] | None:
    return None if event is None else {"type": ev.NAME_OF.get(type(event), "?"), **msgspec.to_builtins(event)}


def _difference(found: Difference | None) -> wire.Difference | None:
    if found is None:
        return None
    return wire.Difference(sequence=found.sequence, recorded=_shown(found.recorded), derived=_shown(found.derived))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 with ties at their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: np.ndarray = (last - (counts - 1) / 2)[inverse]
    return mean


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's rank correlation; None below two items or where one side is constant."""
    if len(a) < 2:
        return None
    left, right = _ranks(np.asarray(a)), _ranks(np.asarray(b))
    if left.std() == 0.0 or right.std() == 0.0:
        return None
    return float(np.corrcoef(left, right)[0, 1])


def rederivation(ledger: Ledger, library: str, given: str | Mapping[str, Any] | None) -> wire.Rederivation:
    """Recompute from the facts, under the recorded policy (None) or another, and set the two side by side."""
    policy, name = (None, "") if given is None else resolve_policy(given)
    with ledger.reading(library) as state:
        derivation = rederive((r.event for r in ledger.recorded(library, until=state.sequence)), policy)
        derived = derivation.state
        names = sorted(state.experiences)
        return wire.Rederivation(
            library=library,
            sequence=state.sequence,
            policy_name=name or state.policy_name,
            policy=derived.policy.to_mapping(),
            same_policy=policy is None,
            compared=derivation.compared,
            first_difference=_difference(derivation.first_difference),
            residents=sorted(derived.residents),
            resident_tokens=sum(derived.experiences[r].tokens or 0 for r in derived.residents),
            would_enter=sorted(set(derived.residents) - set(state.residents)),
            would_leave=sorted(set(state.residents) - set(derived.residents)),
            rank_correlation=rank_correlation(_values(state, names), _values(derived, names)),
            experiences={
                item: wire.DerivedExperience(
                    value=derived.experiences[item].value,
                    recorded_value=state.experiences[item].value,
                    resident=derived.experiences[item].resident,
                    recorded_resident=state.experiences[item].resident,
                )
                for item in names
            },
        )


def _values(state: State, names: list[str]) -> list[float]:
    return [state.experiences[name].value for name in names]
