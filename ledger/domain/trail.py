"""The events that bear on one experience, picked from the log in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ledger.domain import events as ev
from ledger.domain.state import State

Text = Callable[[str], str | None]
"""A blob's text by its SHA-256; None where it was erased."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its place, as the log has it."""

    sequence: int
    time: str
    actor: str
    event: ev.Event


class Trail:
    """The events that bear on one experience, picked from the log in one pass."""

    def __init__(self, name: str, state: State, entries: Iterable[Entry]) -> None:
        self.name = name
        self.recorded: Entry | None = None
        self.amended: list[Entry] = []
        self.rules: list[Entry] = []
        self.retired: Entry | None = None
        self.moves: list[Entry] = []
        self.updates: list[Entry] = []
        self.frequencies: list[tuple[int, str, ev.FrequencyChange]] = []
        self.decisions: dict[str, list[Entry]] = {}
        self.offers: dict[str, list[Entry]] = {}
        self.presented: dict[str, Entry] = {}
        self.withheld: list[Entry] = []
        self.last_table: Entry | None = None
        self.tables: dict[int, Entry] = {}
        self.scored: dict[str, Entry] = {}
        self.measured: dict[tuple[str, str], Entry] = {}
        self.proposed: dict[tuple[str, str], Entry] = {}
        self.verified: dict[tuple[str, str], Entry] = {}
        self.reported: dict[str, Entry] = {}
        self.reversals: list[Entry] = []
        self.restated: list[tuple[Entry, ev.Restated, Entry | None]] = []
        """Each with the reversal that it follows from."""
        self.revalidations: list[Entry] = []
        self.conflicts: list[Entry] = []
        for entry in entries:
            self._take(name, state, entry)

    def _take(self, name: str, state: State, entry: Entry) -> None:  # noqa: C901, PLR0912 - one arm an event type
        """What names the experience, or moves it; the facts of a stage are in `_take_fact`."""
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
            case ev.ExperiencesRetrieved(stage=stage, offered=offered) if name in offered:
                self.offers.setdefault(stage, []).append(entry)
            case ev.RulesPresented(stage=stage, rules=rules) if name in rules:
                self.presented[stage] = entry
            case ev.RuleWithheld(experience=e) if e == name:
                self.withheld.append(entry)
            case ev.Consolidated():
                self.last_table = entry
            case ev.StageInvalidated() | ev.StageReinstated():
                self.reversals.append(entry)
            case ev.MemoryRestated(experiences=restated):
                because = self.reversals[-1] if self.reversals else None
                self.restated.extend((entry, r, because) for r in restated if r.experience == name)
            case ev.RevalidationRequired(experience=e) | ev.Revalidated(experience=e) if e == name:
                self.revalidations.append(entry)
            case ev.ConflictRecorded(first=first, second=second) if name in {first, second}:
                self.conflicts.append(entry)
            case ev.ConflictResolved(conflict=c) if name in {state.conflicts[c].first, state.conflicts[c].second}:
                self.conflicts.append(entry)
            case ev.ExperienceSuperseded(experience=e) if e == name:
                self.retired = entry
            case _:
                self._take_fact(state, entry)

    def _take_fact(self, state: State, entry: Entry) -> None:
        match entry.event:
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
