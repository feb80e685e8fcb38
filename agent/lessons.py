"""What a task leaves behind: repairs that worked, patterns read from an expert's kernel, rules that are due."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.calls import Calls
from agent.coldstart.differential import Differential
from agent.distill import Distiller
from agent.journal import Journal
from agent.port import Attempt, OperatorCard
from agent.progress import Progress
from ledger import wire

_CHOICE = re.compile(r"([A-Za-z_][\w.]*)\s*(?:=|->|:=)\s*([\w.+\-]+)")
_LAYOUTS = {"compile_error", "refused"}


@dataclass
class Lessons:
    """Learns from one task at a time. Everything here can be repeated: ids are derived from what was learnt."""

    journal: Journal
    distiller: Distiller
    differential: Differential | None
    """None where nothing is to be compared with an expert's kernel."""
    progress: Progress
    record: bool = True
    """False: neither repairs nor patterns are recorded."""

    def learn(
        self,
        card: OperatorCard,
        task: str,
        history: Sequence[Attempt],
        calls: Calls,
        still_fails: Callable[[OperatorCard, Attempt, Attempt], bool],
    ) -> None:
        """Record what the task taught, then distill what is due. Called before the task is finished.

        `still_fails` judges a failed version on the inputs that the version after it passed. A wrong answer alone
        depends on them; a text that does not compile or a kernel that crashes or hangs was repaired whatever they were.
        """
        stages = self.journal.task(task)
        stage = stages.stages[-1].stage if stages is not None and stages.stages else None
        if self.record:
            for failed, repaired in repairs(history):
                if failed.outcome == "wrong" and not still_fails(card, failed, repaired):
                    continue
                new = self._repair(card, task, failed, repaired)
                if self.journal.record(new):
                    self.progress.note(f"experience recorded: {new.experience}")
            if self.differential is not None and stage is not None:
                self.differential.run(card, history, calls, stage)
        self.distiller.run(calls, stage)

    def _repair(self, card: OperatorCard, task: str, failed: Attempt, repaired: Attempt) -> wire.NewExperience:
        texts = (self.journal.blob(failed.source), self.journal.blob(repaired.source))
        return repair_experience(card, task, failed, repaired, texts)


def repairs(history: Sequence[Attempt]) -> list[tuple[Attempt, Attempt]]:
    """Pair each correct round with the failing one that it started from, where the change between them was stated."""
    failed = {item.candidate: item for item in history if item.outcome != "correct"}
    return [
        (failed[item.parent], item)
        for item in history
        if item.outcome == "correct" and item.parent in failed and item.change.strip()
    ]


def repair_id(card: OperatorCard, failed: Attempt, repaired: Attempt) -> str:
    """Derive the id of a repair: the same change after the same kind of failure in a family is the same experience."""
    changed = ",".join(f"{name}={value}" for name, value in choices(repaired.change)) or repaired.change
    digest = hashlib.sha256(f"{card.family}|{failed.outcome}|{changed}".encode()).hexdigest()[:10]
    words = re.sub(r"[^a-z0-9]+", "-", changed.lower()).strip("-")[:48].strip("-")
    return f"repair-{failed.outcome.replace('_', '-')}-{words or 'change'}-{digest}"


def choices(change: str) -> tuple[tuple[str, str], ...]:
    """Read the concrete choices, `name = value`, that a change names."""
    return tuple(_CHOICE.findall(change))


def repair_experience(
    card: OperatorCard, task: str, failed: Attempt, repaired: Attempt, texts: tuple[str, str]
) -> wire.NewExperience:
    """Write the experience of a repair. `texts` are the blobs of the failing and of the repaired source."""
    lines = [
        f"A {card.language} kernel for `{card.name}` ({card.family}) failed: {failed.outcome.replace('_', ' ')}.",
        "",
        f"What was seen: {failed.summary.strip()}",
        "",
        _excerpt(failed.evidence),
        "",
        f"What was changed: {repaired.change.strip()}",
        "",
        f"Why: {repaired.hypothesis.strip() or 'not stated'}",
        "",
        "The next version from it passed verification.",
        "",
        *(f"Change: {name} = {value}" for name, value in choices(repaired.change)),
    ]
    anywhere = failed.outcome in _LAYOUTS
    return wire.NewExperience(
        experience=repair_id(card, failed, repaired),
        title=f"Repair of a {card.family} kernel: {failed.outcome.replace('_', ' ')}, {_title(repaired.change)}",
        body="\n".join(lines).strip() + "\n",
        stages=("correctness",) if failed.stage == "correctness" else ("correctness", "optimization"),
        conditions=wire.Conditions(families=() if anywhere else (card.family,), languages=(card.language,)),
        source=wire.Source(kind="repair", name=f"{task}, rounds {failed.round} and {repaired.round}", texts=texts),
    )


def _excerpt(evidence: str, limit: int = 1200) -> str:
    text = evidence if len(evidence) <= limit else f"{evidence[:limit]}\n…"
    return "\n".join(f"    {line}" for line in text.splitlines())


def _title(change: str, limit: int = 90) -> str:
    line = " ".join(change.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
