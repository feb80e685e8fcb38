"""ATU, adoption-traced utility: who was offered, who took part, and what a stage's score means for each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import Candidate, Experience, Stage, State, frequency
from ledger.errors import EvidenceMissingError


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that a score was read from."""

    passed: bool
    first_ms: float | None = None
    best_ms: float | None = None
    noise_ms: float = 0.0
    first: str | None = None
    best: str | None = None


def evidence(state: State, stage: Stage) -> Evidence:
    """The outcome of a stage, from the judge's verdicts or, for a `reported` stage, from the word given.

    A candidate whose verdict was withdrawn is no evidence. Raises EvidenceMissingError where there is nothing to
    score.
    """
    if stage.basis == "reported":
        return _reported(stage)
    task = state.tasks[stage.task]
    judged = [c for c in (task.candidates[name] for name in stage.candidates) if c.outcome is not None]
    if not judged:
        raise EvidenceMissingError(stage.id, "no candidate has a judge's report; hand one in, or abandon the stage")
    if stage.kind == "correctness":
        winner = next((c for c in judged if c.outcome == "correct" and not state.is_withdrawn(c)), None)
        return Evidence(passed=winner is not None, best=winner.id if winner else None)
    first = state.first_correct(task)
    if first is None:
        raise EvidenceMissingError(
            stage.id,
            "the task has no measured correct candidate to improve on that still counts; abandon the stage",
        )
    timed = [c for c in state.correct(task) if c.latency_ms is not None]
    # One noisy measurement must not hide a clear improvement beside it.
    better = [c for c in timed if _latency(first) - _latency(c) > _noise(first, c)]
    best = min(better or timed, key=_latency)
    return Evidence(
        passed=best is not first,
        first_ms=first.latency_ms,
        best_ms=best.latency_ms,
        noise_ms=_noise(first, best),
        first=first.id,
        best=best.id,
    )


def _latency(candidate: Candidate) -> float:
    return math.inf if candidate.latency_ms is None else candidate.latency_ms


def _noise(a: Candidate, b: Candidate) -> float:
    """Half-width of the 95 % interval of the difference between two latencies."""
    return math.hypot(a.noise_ms, b.noise_ms)


def _reported(stage: Stage) -> Evidence:
    told = stage.outcome
    if told is None:
        raise EvidenceMissingError(stage.id, "no outcome has been reported; report one, or abandon the stage")
    if stage.kind == "correctness":
        if told.correct is None:
            raise EvidenceMissingError(stage.id, "the reported outcome of a correctness stage needs `correct`")
        return Evidence(passed=told.correct)
    if told.first_ms is None:
        raise EvidenceMissingError(stage.id, "the reported outcome of an optimization stage needs `first_ms`")
    return Evidence(passed=told.best_ms is not None, first_ms=told.first_ms, best_ms=told.best_ms)


def score(policy: Policy, stage: Stage, facts: Evidence) -> float:
    """Stage score. Correctness: 1 for a pass. Optimization: (first - best) / first, if best is faster beyond noise.

    Source: SAGE, ATU 1; its printed sign is settled by its example (1 ms to 0.6 ms scores 0.4).
    """
    if not facts.passed:
        return policy.failure_score
    if stage.kind == "correctness":
        return 1.0
    if facts.first_ms is None or facts.best_ms is None or not facts.first_ms - facts.best_ms > facts.noise_ms:
        return policy.failure_score
    return (facts.first_ms - facts.best_ms) / facts.first_ms


def offered(stage: Stage) -> tuple[str, ...]:
    """Experiences that the stage looked at: the retrieved, and the residents that were adopted.

    In a re-derivation an experience may be resident although the agent had to retrieve it; such an offer counts only
    where it was adopted. In a live library the two sets agree and nothing is left out.
    """
    shown = set(stage.rules) | {stage.withheld}
    hidden = stage.residents_at_start - shown
    adopted = stage.adopted
    chosen = set(adopted)
    return tuple(e for e in stage.retrieved if e not in hidden or e in chosen) + tuple(
        e for e in adopted if e not in stage.retrieved
    )


def value_update(
    policy: Policy, stage: Stage, experience: Experience, *, stage_score: float, adopted: tuple[str, ...]
) -> ev.ValueUpdated:
    """One update: N += 1, alpha = max(alpha_min, 1 / (1 + N)), V = clamp((1 - alpha) V + alpha feedback)."""
    n = experience.n + 1
    alpha = max(policy.alpha_min, 1.0 / (1 + n))
    is_adopted = experience.id in adopted
    if policy.credit == "uniform":
        feedback = stage_score
    elif is_adopted:
        feedback = stage_score / len(adopted)
    else:
        feedback = policy.non_adoption_feedback
    low, high = policy.value_bounds
    new = min(max((1.0 - alpha) * experience.value + alpha * feedback, low), high)
    return ev.ValueUpdated(
        stage=stage.id,
        experience=experience.id,
        n=n,
        alpha=alpha,
        feedback=feedback,
        old=experience.value,
        new=new,
        adopted=is_adopted,
    )


def frequency_changes(state: State, stage: Stage, looked_at: tuple[str, ...]) -> tuple[ev.FrequencyChange, ...]:
    """Frequencies after this stage, for those offered in it and for all that are or were resident.

    While resident the average moves at every scored stage, used = adopted; after an eviction at those of its
    kinds, used = offered. `state` is as before the stage was scored.
    """
    adopted = set(stage.adopted)
    seen = set(looked_at)
    beta = state.policy.beta
    changes = []
    for name in dict.fromkeys((*looked_at, *sorted(state.averaged))):
        experience = state.experiences[name]
        if experience.retired:
            continue
        eligible = state.eligible(experience.stages)
        old = frequency(experience, eligible)
        applies = stage.kind in experience.stages
        if experience.average is None:
            since = eligible + applies - experience.scored_before
            used = name in seen
            new = (experience.n + used) / since if since > 0 else 0.0
        elif experience.resident or applies:
            used = name in (adopted if experience.resident else seen)
            new = (1.0 - beta) * old + beta * used
        else:
            continue
        changes.append(
            ev.FrequencyChange(experience=name, old=old, new=new, used=used, averaged=experience.average is not None)
        )
    return tuple(changes)
