"""The course of a value as an SVG step line. Every point is a link to the stage that moved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 14, 28


@dataclass(frozen=True, slots=True)
class Mark:
    """One update on the picture: where it stands, what it says, which stage it opens."""

    x: float
    y: float
    shape: str
    """`circle` adopted, `square` not adopted, `cross` withdrawn; the word is in the label, too."""
    label: str
    stage: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Marks, the step line through them, and the axis."""

    width: int
    height: int
    line: str
    marks: list[Mark]
    ticks: list[tuple[float, str]]
    zero: float
    bands: list[tuple[float, float]]
    """x from and to of the spans in which the rule was resident."""


def value_course(answer: Json, low: float, high: float) -> Picture:
    """The picture of an answer to `why`; `low` and `high` are the policy's value bounds."""
    updates = answer["value"]
    span = max(high - low, 1e-9)
    first: int = answer["origin"]["sequence"]
    last: int = max(answer["sequence"], first + 1)

    def across(sequence: int) -> float:
        share = float(sequence - first) / float(last - first)
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * share

    def up(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - value) / span

    steps = [(first, 0.0)] + [(u["sequence"], u["new"]) for u in updates]
    steps += [(r["sequence"], r["value"]) for r in answer["restated"]]
    steps.sort()
    parts = [f"M{across(first):.1f},{up(0.0):.1f}"]
    parts += [f"H{across(sequence):.1f}V{up(value):.1f}" for sequence, value in steps[1:]]
    parts.append(f"H{across(last):.1f}")
    marks = [
        Mark(
            across(u["sequence"]),
            up(u["new"]),
            "cross" if not u["counts"] else "circle" if u["adopted"] else "square",
            f"[{u['sequence']}] {u['operator']} {u['kind']}: score {u['score']:.4f}, "
            f"{'adopted' if u['adopted'] else 'not adopted'}{'' if u['counts'] else ', withdrawn'}, "
            f"{u['old']:.4f} to {u['new']:.4f}",
            u["stage"],
        )
        for u in updates
    ]
    values = sorted({low, 0.0, round((low + high) / 2, 2), high})
    return Picture(
        WIDTH,
        HEIGHT,
        "".join(parts),
        marks,
        [(up(value), f"{value:g}") for value in values],
        up(0.0),
        _bands(answer["moves"], across, last),
    )


def _bands(moves: list[Json], across: Any, last: int) -> list[tuple[float, float]]:
    bands = []
    since: int | None = None
    for move in moves:
        if move["move"] == "admitted" and since is None:
            since = move["sequence"]
        elif move["move"] == "evicted" and since is not None:
            bands.append((across(since), across(move["sequence"])))
            since = None
    if since is not None:
        bands.append((across(since), across(last)))
    return bands
