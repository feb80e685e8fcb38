"""A consolidation seen from one experience's line: its rank, its neighbours, the cut and the budget."""

from __future__ import annotations

from typing import Any

from ledger.domain import consolidation
from ledger.domain import events as ev
from ledger.domain.state import State
from ledger.domain.trail import Entry

Json = dict[str, Any]

_Rows = list[tuple[int, ev.Ranked]]


def newest(state: State, name: str, entry: Entry | None) -> Json | None:
    """The newest consolidation; None where the experience was no candidate.

    A long table does not list every line; what it leaves out is computed from the state that it left.
    """
    if entry is None or not isinstance(entry.event, ev.Consolidated):
        return None
    if entry.event.candidates is None:
        rows = _listed(entry.event)
    else:
        rows = [(rank, consolidation.row(place)) for rank, place in enumerate(consolidation.newest(state), 1)]
    told = _line(name, entry, entry.event, rows)
    return None if told is None else told | {"residents": len(state.residents)}


def recorded(name: str, entry: Entry | None) -> Json | None:
    """A consolidation as it was recorded; it lists what it admitted with its neighbours and the cut."""
    if entry is None or not isinstance(entry.event, ev.Consolidated):
        return None
    return _line(name, entry, entry.event, _listed(entry.event))


def _listed(event: ev.Consolidated) -> _Rows:
    return list(zip(event.ranks or range(1, len(event.ranked) + 1), event.ranked, strict=True))


def _line(name: str, entry: Entry, event: ev.Consolidated, rows: _Rows) -> Json | None:
    own = next((item for item in rows if item[1].experience == name), None)
    if own is None:
        return None
    rank, line = own
    at = {number: other for number, other in rows if abs(number - rank) == 1}
    first_out = next((other for _, other in rows if not other.resident), None)
    before = sum(other.tokens for number, other in rows if other.resident and number < rank)
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "trigger": event.trigger,
        "subject": event.subject,
        "rank": rank,
        "candidates": len(rows) if event.candidates is None else event.candidates,
        "priority": line.priority,
        "value": line.value,
        "frequency": line.frequency,
        "tokens": line.tokens,
        "fits": line.resident,
        "against": line.against,
        "budget": event.budget,
        "used": event.used,
        "used_before": before,
        "used_after": before + line.tokens if line.resident else before,
        "above": _neighbour(at.get(rank - 1)),
        "below": _neighbour(at.get(rank + 1)),
        "first_left_out": _neighbour(first_out),
        "margin_to_cut": line.priority - first_out.priority if first_out else None,
    }


def _neighbour(line: ev.Ranked | None) -> Json | None:
    if line is None:
        return None
    return {
        "experience": line.experience,
        "priority": line.priority,
        "tokens": line.tokens,
        "fits": line.resident,
        "against": line.against,
    }
