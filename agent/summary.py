"""What a run came to: execution rate, share faster than torch, self-acceleration, and the rules that are resident."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.progress import TaskResult
from ledger import wire


@dataclass(frozen=True, slots=True)
class ResidentRule:
    """One rule that is in context in every stage."""

    experience: str
    rule: str
    value: float
    frequency: float
    tokens: int

    @property
    def priority(self) -> float:
        """Value times frequency over tokens: its place in the resident set. Source: SAGE, UGC."""
        return self.value * self.frequency / self.tokens


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of a run, in the source's terms."""

    library: str
    results: tuple[TaskResult, ...]
    residents: tuple[ResidentRule, ...]
    experiences: int
    verified: wire.Verification
    rederived: wire.Rederivation

    @property
    def solved(self) -> int:
        """Operators with a correct, measured kernel."""
        return sum(result.solved for result in self.results)

    @property
    def execution_rate(self) -> float | None:
        """Solved of attempted; None where nothing was attempted."""
        return self.solved / len(self.results) if self.results else None

    @property
    def faster(self) -> float | None:
        """Share of the solved operators whose best kernel is faster than the torch reference."""
        speedups = [result.speedup for result in self.results if result.speedup is not None]
        return sum(speedup > 1.0 for speedup in speedups) / len(speedups) if speedups else None

    @property
    def acceleration(self) -> float | None:
        """Median over the solved operators of first correct latency over best latency."""
        found = [result.acceleration for result in self.results if result.acceleration is not None]
        return statistics.median(found) if found else None

    @property
    def rederivation_clean(self) -> bool:
        """Whether the recorded outcome follows from the facts, event by event."""
        return self.rederived.first_difference is None

    @property
    def clean(self) -> bool:
        """Whether the log verifies and re-derives."""
        return self.verified.ok and self.rederivation_clean

    def to_mapping(self) -> dict[str, Any]:
        """Give everything as JSON-ready values."""
        return {
            "library": self.library,
            "attempted": len(self.results),
            "solved": self.solved,
            "execution_rate": self.execution_rate,
            "faster_than_reference": self.faster,
            "median_self_acceleration": self.acceleration,
            "operators": [
                {
                    "operator": result.operator,
                    "level": result.level,
                    "task": result.task,
                    "solved": result.solved,
                    "rounds": result.rounds,
                    "first_ms": result.first_ms,
                    "best_ms": result.best_ms,
                    "reference_ms": result.reference_ms,
                    "speedup": result.speedup,
                    "acceleration": result.acceleration,
                }
                for result in self.results
            ],
            "experiences": self.experiences,
            "residents": [
                {
                    "experience": rule.experience,
                    "rule": rule.rule,
                    "value": rule.value,
                    "frequency": rule.frequency,
                    "tokens": rule.tokens,
                    "priority": rule.priority,
                }
                for rule in self.residents
            ],
            "verify": {"clean": self.verified.ok, "events": self.verified.events, "head": self.verified.head},
            "rederive": {"clean": self.rederivation_clean, "compared": self.rederived.compared},
        }


def residents_of(experiences: Sequence[wire.Experience]) -> tuple[ResidentRule, ...]:
    """Pick the resident rules, highest priority first."""
    found = [
        ResidentRule(item.experience, item.rule or "", item.value, item.frequency, item.tokens or 1)
        for item in experiences
        if item.resident
    ]
    return tuple(sorted(found, key=lambda rule: (-rule.priority, rule.tokens, rule.experience)))


def lines(summary: Summary) -> list[str]:
    """Write the summary for a person, in columns."""
    table = [("operator", "level", "rounds", "first", "best", "torch", "speedup", "self-accel.")]
    table += [
        (
            result.operator,
            str(result.level),
            str(result.rounds),
            _ms(result.first_ms),
            _ms(result.best_ms),
            _ms(result.reference_ms),
            _times(result.speedup),
            _times(result.acceleration),
        )
        for result in summary.results
    ]
    found = _columns(table)
    attempted = len(summary.results)
    found += [
        "",
        f"solved of attempted, execution rate:  {summary.solved} of {attempted}, {_percent(summary.execution_rate)}",
        f"faster than the torch reference:      {_percent(summary.faster)} of the solved",
        f"median self-acceleration:             {_times(summary.acceleration)} (first correct to best)",
        "",
        f"resident rules ({len(summary.residents)} of {summary.experiences} experiences):",
    ]
    if not summary.residents:
        found.append(
            "  none yet: a rule needs a value above 0 and 3 adoptions over 3 operators, then a place in the budget"
        )
        return found
    rules = [("experience", "value", "frequency", "tokens", "priority")]
    rules += [
        (rule.experience, f"{rule.value:.4f}", f"{rule.frequency:.4f}", str(rule.tokens), f"{rule.priority:.6f}")
        for rule in summary.residents
    ]
    return found + [f"  {line}" for line in _columns(rules)]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f} ms"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
