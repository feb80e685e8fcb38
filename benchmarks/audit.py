"""The memory and its audit at size.

`why` on 100,000 events, a stage scored beside 10,000 candidates, hybrid retrieval over 100,000 experiences with
384-dimensional vectors, and the whole re-derivation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Measurement, timed
from ledger import wire
from ledger.bootstrap import configure_logging, memory_ledger
from ledger.commands import audit, libraries
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State, evolve, initial
from ledger.retrieval.dense import DenseIndex
from ledger.retrieval.fuse import weighted_scores
from ledger.retrieval.lexical import LexicalIndex
from ledger.service import Batch, Call, Ledger
from ledger.settings import Settings

CALL = Call(actor="bench")
EVENTS = 100_000
CANDIDATES = 10_000
TEXTS = 100_000
DIMENSIONS = 384
OPERATORS = tuple(f"operator{n}" for n in range(40))
WORDS = tuple(f"{a}{b}" for a in ("tile", "vector", "mask", "shift", "block", "thread") for b in range(400))


def _play(batch: Batch, number: int, dice: random.Random) -> None:
    """One reported stage with eight retrieved experiences, half of them adopted."""
    state = batch.state
    task, stage = f"t{number}", f"s{number}"
    operator = dice.choice(OPERATORS)
    batch.emit(decide.start_task(state, ev.TaskStarted(task=task, operator=operator, level=1, model="m", budget=1)))
    batch.emit(
        decide.open_stage(
            state, ev.StageStarted(stage=stage, task=task, kind="correctness", operator=operator, basis="reported")
        )
    )
    cold = [e for e in state.experiences if not state.experiences[e].resident]
    offered = tuple(dice.sample(cold, min(8, len(cold))))
    batch.emit(decide.retrieve(state, ev.ExperiencesRetrieved(stage=stage, query="q", pool=(), offered=offered)))
    used = [e for e in state.stages[stage].rules if dice.random() < 0.2]
    decisions = [
        ev.AdoptionDecided(stage=stage, experience=e, adopted=e in used or dice.random() < 0.5, reason="made for it")
        for e in (*offered, *used)
    ]
    batch.emit(decide.decide_adoptions(state, stage, decisions))
    batch.emit(decide.report_outcome(state, ev.OutcomeReported(stage=stage, correct=dice.random() < 0.8)))
    batch.emit(decide.score_stage(state, stage))


def _library(ledger: Ledger) -> str:
    """A library of about 100,000 events with some residents; answers with one of them."""
    libraries.create(ledger, CALL, wire.NewLibrary(library="bench"))
    dice = random.Random(11)

    def experiences(batch: Batch) -> None:
        for number in range(300):
            name = f"e{number}"
            new = ev.ExperienceRecorded(
                experience=name,
                title=name,
                body=batch.blob(name),
                stages=("correctness",),
                source=ev.Source(kind="person"),
            )
            batch.emit(decide.record_experience(batch.state, new))
            rule = ev.RuleDistilled(experience=name, text=batch.blob(f"rule {name}"), tokens=400, tokenizer="declared")
            batch.emit(decide.distill_rule(batch.state, rule))

    ledger.execute("bench", CALL, experiences, lambda _: None)
    number = 0
    while ledger.head("bench") < EVENTS:

        def stages(batch: Batch) -> None:
            nonlocal number
            for _ in range(100):
                number += 1
                _play(batch, number, dice)

        ledger.execute("bench", CALL, stages, lambda _: None)
    with ledger.reading("bench") as state:
        return next(iter(state.residents))


def _candidates() -> State:
    """10,000 experiences that pass the gate, and an open stage with 20 retrieved and decided."""
    state = initial()

    def take(events: list[ev.Event]) -> None:
        for event in events:
            evolve(state, event)

    take(decide.create_library(Policy(), "sage", ""))
    for number in range(CANDIDATES):
        name = f"e{number}"
        take(
            [
                ev.ExperienceRecorded(
                    experience=name, title="t", body="0" * 64, stages=("correctness",), source=ev.Source(kind="person")
                ),
                ev.RuleDistilled(experience=name, text="1" * 64, tokens=50 + number % 400, tokenizer="declared"),
            ]
        )
        item = state.experiences[name]
        item.value, item.n, item.adoptions, item.operators = 0.1 + number % 97 / 100, 5, 4, {"a", "b", "c"}
    take(decide.start_task(state, ev.TaskStarted(task="t", operator="softmax", level=1, model="m", budget=1)))
    opened = ev.StageStarted(stage="s", task="t", kind="correctness", operator="softmax", basis="reported")
    take(decide.open_stage(state, opened))
    offered = tuple(f"e{n}" for n in range(20))
    take(decide.retrieve(state, ev.ExperiencesRetrieved(stage="s", query="q", pool=(), offered=offered)))
    decisions = [ev.AdoptionDecided(stage="s", experience=e, adopted=True, reason="r") for e in offered]
    take(decide.decide_adoptions(state, "s", decisions))
    take(decide.report_outcome(state, ev.OutcomeReported(stage="s", correct=True)))
    return state


def _hybrid() -> Iterator[Measurement]:
    dice = random.Random(5)
    generator = np.random.default_rng(5)
    lexical, dense = LexicalIndex(), DenseIndex(DIMENSIONS)
    spectrum = (np.arange(1, DIMENSIONS + 1) ** -0.5).astype(np.float32)
    rows = generator.standard_normal((TEXTS, DIMENSIONS), dtype=np.float32) * spectrum
    for number in range(TEXTS):
        lexical.add(f"e{number}", " ".join(dice.choices(WORDS, k=5)), " ".join(dice.choices(WORDS, k=40)))
        dense.put(f"e{number}", rows[number])
    queries = [" ".join(dice.choices(WORDS, k=6)) for _ in range(220)]
    vectors = generator.standard_normal((220, DIMENSIONS), dtype=np.float32) * spectrum

    def both(index: int) -> object:
        words = lexical.search(queries[index], 60)
        return weighted_scores(words, dense.search(vectors[index], 60), 0.6)

    yield timed("hybrid", f"lexical and dense search over {TEXTS:,} texts, fused", both, times=200)
    yield timed("dense", "its dense part", lambda i: dense.search(vectors[i], 60), times=200)
    yield timed("scan", "floor: one product with all vectors", lambda i: rows @ vectors[i], times=50)


def measurements() -> Iterator[Measurement]:
    """Yield the rows as they are measured."""
    configure_logging(Settings(log_level="error"))
    state = _candidates()
    stage = state.stages["s"]
    yield timed(
        "score", f"score a stage with 20 retrieved, consolidate over {CANDIDATES:,} candidates",
        lambda _: decide.settle(state, stage), times=30,
    )  # fmt: skip
    ledger = memory_ledger()
    try:
        resident = _library(ledger)
        head = ledger.head("bench")
        yield timed(
            "why", f"why a rule is resident, {head:,} events", lambda _: audit.why(ledger, "bench", resident), times=20
        )
        yield timed(
            "rederive", f"re-derive {head:,} events under the recorded policy",
            lambda _: audit.rederivation(ledger, "bench", None), times=3, warm_up=0, items=head,
        )  # fmt: skip
        yield timed(
            "rederive other", "the same under `paper`",
            lambda _: audit.rederivation(ledger, "bench", "paper"), times=3, warm_up=0, items=head,
        )  # fmt: skip
    finally:
        ledger.close()
    yield from _hybrid()
