"""A library of any length, as agents fill it: tasks with their offers, decisions, candidates and scores."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator

from ledger.domain import events as ev
from ledger.domain.policy import SAGE
from ledger.store import codec
from ledger.store.log import AnySequence, Draft, Log, NewLibrary

EXPERIENCES = 300
_BATCH = 1000


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _stage(number: int) -> Iterator[ev.Event]:
    task, stage = f"task-{number:06}", f"task-{number:06}-correctness"
    offered = tuple(f"experience-{(number * 7 + n) % EXPERIENCES:04}" for n in range(4))
    yield ev.TaskStarted(task=task, operator=f"operator-{number % 24}", level=1, model="model", budget=30)
    yield ev.StageStarted(
        stage=stage, task=task, kind="correctness", operator=f"operator-{number % 24}", basis="reported"
    )
    yield ev.ExperiencesRetrieved(
        stage=stage,
        query="softmax over the last axis with a tail block",
        pool=tuple(ev.PoolEntry(experience=e, relevance=3.25, value=0.125, score=1.0) for e in offered),
        offered=offered,
    )
    for index, name in enumerate(offered):
        yield ev.AdoptionDecided(
            stage=stage, experience=name, adopted=index < 2, reason="the tail block needs its own mask"
        )
    for index in range(2):
        candidate = f"{stage}-{index}"
        yield ev.CandidateProposed(
            stage=stage, candidate=candidate, round=index + 1, source=_sha(candidate), language="cpp",
            change="threads = rows", hypothesis="rows are independent",
        )  # fmt: skip
        yield ev.CostIncurred(
            stage=stage, kind="model", seconds=2.5, round=index + 1, input_tokens=4000, output_tokens=900
        )
    yield ev.OutcomeReported(stage=stage, correct=True)
    yield ev.StageScored(
        stage=stage,
        kind="correctness",
        operator=f"operator-{number % 24}",
        score=1.0,
        offered=offered,
        adopted=offered[:2],
    )
    for index, name in enumerate(offered):
        yield ev.ValueUpdated(
            stage=stage, experience=name, n=3, alpha=0.25, feedback=0.5, old=0.125, new=0.21875, adopted=index < 2
        )
    yield ev.FrequencyUpdated(
        stage=stage,
        changes=tuple(ev.FrequencyChange(experience=e, old=0.25, new=0.26, used=True, averaged=False) for e in offered),
    )
    yield ev.TaskFinished(task=task, solved=True, rounds=2)


def events(count: int) -> Iterator[ev.Event]:
    """The first `count` events of an endless library."""

    def endless() -> Iterator[ev.Event]:
        yield ev.LibraryCreated(policy=SAGE, policy_name="sage")
        for n in range(EXPERIENCES):
            yield ev.ExperienceRecorded(
                experience=f"experience-{n:04}", title=f"Pattern {n}", body=_sha(str(n)), stages=("correctness",),
                source=ev.Source(kind="document", name="cheat sheet"),
            )  # fmt: skip
        for number in itertools.count():
            yield from _stage(number)

    return itertools.islice(endless(), count)


def draft_of(event: ev.Event, number: int) -> Draft:
    """An event as the service would append it."""
    name, schema, payload = codec.encode(event)
    stage = getattr(event, "stage", None)
    return Draft(
        *(name, schema, f"{number:032x}", "2026-12-01T10:00:00.000000Z", "agent"),
        *(getattr(event, "task", None) or (stage[:11] if stage else None), stage, payload),
    )


def fill(log: Log, library: str, count: int) -> None:
    """Append a library of `count` events."""
    drafts = (draft_of(event, number) for number, event in enumerate(events(count)))
    expected: NewLibrary | AnySequence = NewLibrary()
    while batch := list(itertools.islice(drafts, _BATCH)):
        log.append(library, batch, expected=expected)
        expected = AnySequence()
