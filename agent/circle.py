"""The whole circle: cold start, the operators level by level, and what was learnt from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agent.coldstart import documents
from agent.errors import ConfigurationError
from agent.loop import Loop
from agent.port import Workbench
from agent.progress import TaskResult
from agent.summary import Summary, residents_of

AFTERWARDS = 8.0
"""Seconds kept back of the allowance for the summary, the audit and the start of the next process."""


def chosen(workbench: Workbench, wanted: Sequence[str]) -> tuple[str, ...]:
    """Put the operators in order of level; none named means the whole starter suite.

    Raises ConfigurationError for an unknown name.
    """
    if not wanted:
        return workbench.operators()
    cards = [workbench.card(name) for name in dict.fromkeys(wanted)]
    return tuple(card.name for card in sorted(cards, key=lambda card: card.level))


def prepare(loop: Loop, policy: str | Mapping[str, object], title: str = "") -> int:
    """Open the library and record the documents that it lacks; return how many sections were new."""
    loop.journal.library_opened(policy, title)
    if not loop.settings.memory:
        return 0
    return documents.record(loop.journal, documents.bundled(), language="cpp")


def develop(
    loop: Loop,
    operators: Sequence[str],
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[TaskResult, ...]:
    """Develop operators one after the other. What is left of `seconds` is shared evenly among those still to do."""
    if not operators:
        raise ConfigurationError("no operator is named; `sagebook device operators` lists them")
    started = clock()
    results: list[TaskResult] = []
    settings = loop.settings
    for place, name in enumerate(operators, start=1):
        if seconds is not None:
            left = max(seconds - AFTERWARDS - (clock() - started), 0.0)
            loop.settings = replace(settings, seconds=round(left / (len(operators) - place + 1), 1))
        results.append(loop.develop(name, place=place, of=len(operators)))
    loop.settings = settings
    if all(result.continued for result in results):
        loop.progress.note(
            "all of this was finished before; another --seed or --run NAME begins anew with what was learnt"
        )
    return tuple(results)


def summarize(loop: Loop, results: Sequence[TaskResult]) -> Summary:
    """Read what the library holds now, verify its log and re-derive it."""
    journal = loop.journal
    experiences = journal.experiences()
    return Summary(
        library=journal.library,
        results=tuple(results),
        residents=residents_of(experiences),
        experiences=len(experiences),
        verified=journal.verified(),
        rederived=journal.rederived(),
    )


def to_explain(loop: Loop, summary: Summary) -> str | None:
    """Choose what `why` is shown of: the first resident rule, or else the experience of the highest value."""
    if summary.residents:
        return summary.residents[0].experience
    used = [item for item in loop.journal.experiences() if item.retrievals]
    return max(used, key=lambda item: (item.value, item.experience)).experience if used else None
