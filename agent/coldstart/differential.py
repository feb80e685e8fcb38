"""Differential mining: what an expert's kernel does that the generated one does not, kept as reusable patterns.

Source: SAGE, knowledge cold start 2. It applies to simple operators (levels 1 and 2) that compile, pass and have an
expert kernel. Both kernels are judged, so that a pattern names its evidence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.calls import Calls
from agent.errors import ModelFailed, ModelUnavailableError
from agent.journal import Journal
from agent.port import Attempt, OperatorCard, Pattern, Usage, Verdict, Workbench
from agent.progress import Progress
from ledger import wire

LEVELS = (1, 2)


@dataclass
class Differential:
    """Compares the best generated kernel of a task with the expert's."""

    journal: Journal
    workbench: Workbench
    progress: Progress
    seed: int = 0
    """Seed of the inputs that the expert's kernel is judged on."""

    def run(self, card: OperatorCard, history: Sequence[Attempt], calls: Calls, stage: str) -> int:
        """Record the patterns that the comparison shows; return how many are new. The cost is booked on `stage`."""
        measured = [item for item in history if item.outcome == "correct" and item.latency_ms is not None]
        if card.level not in LEVELS or not measured:
            return 0
        expert = self.workbench.expert(card.name)
        if expert is None:
            return 0
        best = min(measured, key=lambda item: item.latency_ms or 0.0)
        patterns, usage = self._compare(card, best, expert, calls)
        self.journal.model_cost(stage, usage, "differential", upkeep=True)
        known = {item.experience for item in self.journal.experiences()}
        fresh = [pattern for pattern in patterns if pattern_id(pattern) not in known]
        if not fresh:
            return 0
        judged = self.workbench.judge(expert, card.name, seed=self.seed)
        self.journal.judge_cost(stage, judged, "differential")
        if judged.outcome != "correct":
            self.progress.note(
                f"the expert kernel of {card.name} did not pass ({judged.summary}); nothing is learnt from it"
            )
            return 0
        texts = tuple(self.journal.blob(text) for text in (best.source, expert, judged.report))
        new = 0
        for pattern in fresh:
            experience = pattern_experience(card, pattern, best, judged, texts)
            if self.journal.record(experience):
                new += 1
                self.progress.note(f"pattern recorded: {experience.experience}")
        return new

    def _compare(
        self, card: OperatorCard, best: Attempt, expert: str, calls: Calls
    ) -> tuple[tuple[Pattern, ...], Usage]:
        try:
            return calls.until_usable(
                lambda _advice: calls.model.compare(card, best.source, expert),
                lambda error: self.progress.note(f"model: {error}"),
            )
        except (ModelFailed, ModelUnavailableError) as error:
            self.progress.note(f"no patterns from {card.name}: {error}")
            return (), Usage(model=calls.model.name)


def pattern_id(pattern: Pattern) -> str:
    """Derive the id of a pattern from its key: the same key found again is the same experience."""
    words = re.sub(r"[^a-z0-9]+", "-", pattern.key.lower()).strip("-")
    digest = "" if words == pattern.key else "-" + hashlib.sha256(pattern.key.encode()).hexdigest()[:8]
    return f"pattern-{words[:80]}{digest}"


def pattern_experience(
    card: OperatorCard, pattern: Pattern, best: Attempt, expert: Verdict, texts: tuple[str, ...]
) -> wire.NewExperience:
    """Write the experience of a pattern. `texts` are blobs: the generated source, the expert's, the expert's report."""
    evidence = (
        f"Evidence: on `{card.name}` the generated kernel ({best.candidate}) took {_ms(best.latency_ms)}, "
        f"the expert's {_ms(expert.latency_ms)}, the torch reference {_ms(expert.reference_ms)}; both are correct."
    )
    return wire.NewExperience(
        experience=pattern_id(pattern),
        title=pattern.title,
        body=f"{pattern.body.rstrip()}\n\n{evidence}\n",
        stages=pattern.stages,
        conditions=wire.Conditions(families=pattern.families, languages=(card.language,)),
        source=wire.Source(
            kind="differential", name=f"{card.name}: {best.candidate} and the expert kernel", texts=texts
        ),
    )


def _ms(latency: float | None) -> str:
    return "a time that was not measured" if latency is None else f"{latency:.4f} ms"
