"""The memory arithmetic a second time, written from the design's words alone and without a thought for speed.

It reads facts only (of what the ledger computed just that a stage was closed), keeps plain dictionaries and recounts
from lists, so that it shares no shortcut with the code that it checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.domain import events as ev
from ledger.domain.policy import Policy


@dataclass
class Kept:
    """What the oracle knows of one experience."""

    stages: tuple[str, ...]
    recorded_at: int
    value: float = 0.0
    looked_at: list[str] = field(default_factory=list)
    adopted_in: list[str] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)
    average: float | None = None
    tokens: int | None = None
    retired_with: float | None = None


class Oracle:
    """Values, frequencies and residents of a live library."""

    def __init__(self, events: Iterable[ev.Event], without: frozenset[str] = frozenset()) -> None:
        """`without` are stages that are taken as never scored."""
        self.without = without
        self.policy = Policy()
        self.known: dict[str, Kept] = {}
        self.residents: set[str] = set()
        self.closed: list[tuple[str, str]] = []
        """(stage, kind) of every scored stage, in order."""
        self.scores: dict[str, float] = {}
        self.stages: dict[str, ev.StageStarted] = {}
        self.retrieved: dict[str, set[str]] = {}
        self.presented: dict[str, set[str]] = {}
        self.hot_at_start: dict[str, set[str]] = {}
        self.withheld: dict[str, str] = {}
        self.chosen: dict[str, set[str]] = {}
        self.told: dict[str, ev.OutcomeReported] = {}
        self.verdicts: dict[str, list[tuple[str, str, str]]] = {}
        """Task -> (candidate, stage, outcome), in order."""
        self.sources: dict[tuple[str, str], str] = {}
        self.withdrawn: set[str] = set()
        """Sources and stages that do not count at this moment."""
        self.latency: dict[tuple[str, str], tuple[float, float]] = {}
        for event in events:
            self._take(event)

    def _take(self, event: ev.Event) -> None:  # noqa: C901, PLR0912 - one arm an event type
        match event:
            case ev.LibraryCreated():
                self.policy = event.policy
            case ev.ExperienceRecorded():
                self.known[event.experience] = Kept(event.stages, len(self.closed))
            case ev.RuleDistilled():
                self.known[event.experience].tokens = event.tokens
                self._consolidate()
            case ev.ExperienceRetired():
                self.known[event.experience].retired_with = self.frequency(event.experience)
                self._consolidate()
            case ev.StageStarted():
                self.stages[event.stage] = event
                self.hot_at_start[event.stage] = set(self.residents)
                for table in (self.retrieved, self.presented, self.chosen):
                    table[event.stage] = set()
            case ev.RulesPresented():
                self.presented[event.stage] = set(event.rules)
            case ev.RuleWithheld():
                self.withheld[event.stage] = event.experience
            case ev.ExperiencesRetrieved():
                self.retrieved[event.stage] |= set(event.offered)
            case ev.AdoptionDecided(adopted=True):
                self.chosen[event.stage].add(event.experience)
            case ev.OutcomeReported():
                self.told[event.stage] = event
            case ev.CandidateProposed():
                self.sources[self.stages[event.stage].task, event.candidate] = event.source
            case ev.StageInvalidated():
                self.withdrawn |= {*event.stages, event.subject}
            case ev.StageReinstated():
                self.withdrawn -= {*event.stages, event.subject}
            case ev.CandidateCompiled(ok=False):
                self._judged(event.stage, event.candidate, "compile_error")
            case ev.CandidateVerified():
                self._judged(event.stage, event.candidate, event.outcome)
            case ev.CandidateMeasured():
                task = self.stages[event.stage].task
                self.latency[task, event.candidate] = (event.latency_ms, event.noise_ms)
            case ev.StageScored() if event.stage not in self.without:
                self._close(event.stage)
            case _:
                pass

    def _judged(self, stage: str, candidate: str, outcome: str) -> None:
        self.verdicts.setdefault(self.stages[stage].task, []).append((candidate, stage, outcome))

    # --- the score -------------------------------------------------------------------------------------------------

    def _score(self, stage: str) -> float:
        started = self.stages[stage]
        fail = self.policy.failure_score
        if started.basis == "reported":
            told = self.told[stage]
            if started.kind == "correctness":
                return 1.0 if told.correct else fail
            assert told.first_ms is not None
            better = told.best_ms is not None and told.best_ms < told.first_ms
            return (told.first_ms - told.best_ms) / told.first_ms if better else fail  # type: ignore[operator]
        verdicts = [
            (candidate, made_in, outcome)
            for candidate, made_in, outcome in self.verdicts[started.task]
            if made_in not in self.withdrawn
            and f"candidate:{self.sources[started.task, candidate]}" not in self.withdrawn
        ]
        if started.kind == "correctness":
            return 1.0 if any(s == stage and outcome == "correct" for _, s, outcome in verdicts) else fail
        timed = [
            self.latency[started.task, c]
            for c, _, outcome in verdicts
            if outcome == "correct" and (started.task, c) in self.latency
        ]
        first, first_noise = timed[0]
        gains = [first - ms for ms, noise in timed[1:] if first - ms > math.sqrt(first_noise**2 + noise**2)]
        return max(gains) / first if gains else fail

    # --- values and frequencies ------------------------------------------------------------------------------------

    def _close(self, stage: str) -> None:
        policy = self.policy
        kind = self.stages[stage].kind
        adopted = self.chosen[stage]
        # Retrieved although it is resident here: it counts where it was adopted, as a rule that was used.
        hidden = self.hot_at_start[stage] - self.presented[stage] - {self.withheld.get(stage)}
        looked_at = (self.retrieved[stage] - (hidden - adopted)) | (adopted & self.presented[stage])
        score = self.scores[stage] = self._score(stage)
        self.closed.append((stage, kind))
        for name in looked_at:
            kept = self.known[name]
            kept.looked_at.append(stage)
            if name in adopted:
                kept.adopted_in.append(stage)
                kept.operators.add(self.stages[stage].operator)
            if policy.credit == "none":
                continue
            alpha = max(policy.alpha_min, 1 / (1 + len(kept.looked_at)))
            feedback = policy.non_adoption_feedback
            if policy.credit == "uniform":
                feedback = score
            elif name in adopted:
                feedback = score / len(adopted)
            low, high = policy.value_bounds
            kept.value = max(low, min(high, (1 - alpha) * kept.value + alpha * feedback))
        for name, kept in self.known.items():
            if kept.average is None or kept.retired_with is not None:
                continue
            if name in self.residents:
                used = name in adopted
            elif kind in kept.stages:
                used = name in looked_at
            else:
                continue
            kept.average = (1 - policy.beta) * kept.average + policy.beta * used
        self._consolidate()

    def frequency(self, name: str) -> float:
        kept = self.known[name]
        if kept.retired_with is not None:
            return kept.retired_with
        if kept.average is not None:
            return kept.average
        eligible = [stage for stage, kind in self.closed[kept.recorded_at :] if kind in kept.stages]
        return len(kept.looked_at) / len(eligible) if eligible else 0.0

    # --- residents -------------------------------------------------------------------------------------------------

    def _consolidate(self) -> None:
        policy = self.policy
        if policy.consolidation != "utility":
            return
        candidates = []
        for name, kept in self.known.items():
            if kept.tokens is None or kept.retired_with is not None or kept.value <= 0:
                continue
            passes = len(kept.adopted_in) >= policy.min_adoptions and len(kept.operators) >= policy.min_operators
            priority = kept.value * self.frequency(name) / kept.tokens
            if (passes or name in self.residents) and priority > 0:
                candidates.append((-priority, kept.tokens, name))
        left = policy.budget_tokens
        chosen = set()
        for _, tokens, name in sorted(candidates):
            if tokens <= left:
                left -= tokens
                chosen.add(name)
        for name in chosen:
            if self.known[name].average is None:
                self.known[name].average = self.frequency(name)
        self.residents = chosen
