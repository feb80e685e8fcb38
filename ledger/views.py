"""The state of a library as the wire shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from ledger import wire
from ledger.domain import applicability, consolidation
from ledger.domain import events as ev
from ledger.domain.state import Candidate, Conflict, Experience, Stage, State, Task, frequency

Text = Callable[[str], str | None]
"""A blob's text by its SHA-256; None where it was erased."""


def conditions(given: wire.Conditions) -> ev.Conditions:
    """Conditions as the domain has them. Raises InvalidInputError where one can not hold."""
    made = msgspec.convert(given.model_dump(), ev.Conditions)
    applicability.check(made)
    return made


def library(name: str, state: State) -> wire.Library:
    """The library in one line."""
    return wire.Library(
        library=name,
        title=state.title,
        sequence=state.sequence,
        policy_name=state.policy_name,
        policy=state.policy.to_mapping(),
        experiences=len(state.experiences),
        residents=len(state.residents),
        resident_tokens=sum(state.experiences[r].tokens or 0 for r in state.residents),
        tasks=len(state.tasks),
        scored_stages=sum(state.scored.values()),
    )


def experience(state: State, item: Experience, text: Text) -> wire.Experience:
    """One experience with its texts."""
    standing = consolidation.standing_of(state, item)
    return wire.Experience(
        experience=item.id,
        title=item.title,
        body=text(item.body),
        stages=item.stages,
        conditions=wire.Conditions(**msgspec.to_builtins(item.conditions)),
        source=wire.Source(**msgspec.to_builtins(item.source)),
        recorded=item.recorded,
        value=item.value,
        retrievals=item.n,
        adoptions=item.adoptions,
        operators=sorted(item.operators),
        frequency=standing.frequency,
        resident=item.resident,
        tokens=item.tokens,
        rule=text(item.rule) if item.rule else None,
        retired=item.retired,
        superseded_by=item.superseded_by,
        needs_revalidation=sorted(e for e in item.questioned if item.needs_revalidation(e)),
        conflicts=[c.id for c in state.conflicts_of.get(item.id, ())],
        awaiting_distillation=consolidation.is_awaiting(state, item),
    )


def experience_state(state: State, item: Experience) -> wire.ExperienceState:
    """One line of `sagebook state`."""
    return wire.ExperienceState(
        value=item.value,
        retrievals=item.n,
        adoptions=item.adoptions,
        operators=sorted(item.operators),
        frequency=frequency(item, state.eligible(item.stages)),
        resident=item.resident,
        tokens=item.tokens,
        retired=item.retired,
    )


def library_state(name: str, state: State) -> wire.State:
    """Everything that the memory knows in numbers."""
    return wire.State(
        library=name,
        sequence=state.sequence,
        policy=state.policy.to_mapping(),
        experiences={e.id: experience_state(state, e) for e in state.experiences.values()},
    )


def stage(item: Stage) -> wire.Stage:
    """One stage as it stands."""
    return wire.Stage(
        stage=item.id,
        task=item.task,
        kind=item.kind,
        operator=item.operator,
        status=cast("Any", item.status),
        invalid=item.invalid,
        score=item.score,
        retrieved=list(item.retrieved),
        rules=list(item.rules),
        withheld=item.withheld,
        undecided=list(item.undecided),
        decided=dict(item.decisions),
    )


def conflict(item: Conflict) -> wire.Conflict:
    """One conflict."""
    return wire.Conflict(
        conflict=item.id,
        first=item.first,
        second=item.second,
        reason=item.reason,
        open=item.open,
        loser=item.loser,
    )


def candidate(state: State, item: Candidate) -> wire.Candidate:
    """One candidate as far as it was judged."""
    return wire.Candidate(
        candidate=item.id,
        stage=item.stage,
        round=item.round,
        source=item.source,
        language=item.language,
        change=item.change,
        hypothesis=item.hypothesis,
        parent=item.parent,
        outcome=item.outcome,
        withdrawn=state.is_withdrawn(item),
        summary=item.summary,
        latency_ms=item.latency_ms,
        reference_ms=item.reference_ms,
        noise_ms=None if item.latency_ms is None else item.noise_ms,
        report=item.report,
    )


def task(state: State, item: Task) -> wire.Task:
    """One task with everything that an interrupted agent needs to go on."""
    return wire.Task(
        task=item.id,
        operator=item.operator,
        level=item.level,
        model=item.model,
        budget=item.budget,
        rounds=len(item.candidates),
        configuration=item.configuration,
        environment=item.environment,
        finished=item.finished,
        solved=item.solved,
        stages=[stage(state.stages[name]) for name in item.stages],
        candidates=[candidate(state, c) for c in item.candidates.values()],
    )


def consolidation_result(events: list[tuple[int, ev.Event]]) -> wire.ConsolidationResult | None:
    """The consolidation among a batch's (sequence, event) pairs, if there was one."""
    for sequence, event in events:
        if isinstance(event, ev.Consolidated):
            return wire.ConsolidationResult(
                sequence=sequence,
                trigger=event.trigger,
                subject=event.subject,
                budget=event.budget,
                used=event.used,
                admitted=[e.experience for _, e in events if isinstance(e, ev.RuleAdmitted)],
                evicted=[e.experience for _, e in events if isinstance(e, ev.RuleEvicted)],
                ranked=[wire.RankedRule(**msgspec.to_builtins(r)) for r in event.ranked],
            )
    return None


def score(state: State, events: list[tuple[int, ev.Event]]) -> wire.Score:
    """What closing a stage came to."""
    sequence, scored = next((s, e) for s, e in events if isinstance(e, ev.StageScored))
    return wire.Score(
        stage=scored.stage,
        sequence=sequence,
        score=scored.score,
        adopted=list(scored.adopted),
        updates=[
            wire.ValueChange(
                experience=e.experience,
                old=e.old,
                new=e.new,
                alpha=e.alpha,
                n=e.n,
                feedback=e.feedback,
                adopted=e.adopted,
            )
            for _, e in events
            if isinstance(e, ev.ValueUpdated)
        ],
        consolidation=consolidation_result(events),
        awaiting_distillation=list(consolidation.awaiting_distillation(state)),
    )
