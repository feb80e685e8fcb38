"""The optimization stage: changes to the fastest correct kernel, what memory recommends first, then blindly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from agent.models.search import diagnose, space
from agent.models.search.plan import Plan, Situation, adoptions, reasons, told
from agent.models.search.recommend import (
    MEANING,
    UNSOUND,
    Recommendation,
    applied,
    difference,
    moves,
    written,
)
from agent.models.search.space import Choices
from agent.port import Attempt, Diagnosis


def next_improvement(situation: Situation) -> Plan:
    """The next candidate on the way to a faster one, or none after `patience` rounds without an improvement."""
    best, since = best_so_far(situation.context.history)
    if best is None:
        return Plan(None, "", "there is no measured kernel to improve on")
    if since >= situation.patience:
        return Plan(None, "", f"the last {since} changes brought nothing beyond the noise of the measurement")
    base = situation.choices_of(best)
    last = situation.context.history[-1]
    for target, why in _targets(situation, base):
        if target != base and situation.judged(target) is None:
            changes = difference(base, target)
            purpose = f"to make the kernel of round {best.round} faster ({_ms(best)})"
            undone = "" if last.candidate == best.candidate else f" The change of round {last.round} is undone."
            hypothesis = (
                f"{diagnose.words(last)}; the fastest so far is round {best.round}.{undone} {why} {reasons(changes)}."
            )
            diagnosis = Diagnosis("judge", diagnose.words(last), last.evidence or last.summary, written(changes))
            decided = adoptions(situation, base, target, purpose)
            return Plan(target, told(base, target), hypothesis, decided, diagnosis, best.candidate)
    return Plan(None, "", "every change that is open to this kernel was tried")


def best_so_far(history: tuple[Attempt, ...]) -> tuple[Attempt | None, int]:
    """The fastest correct attempt, and how many rounds have passed since; a gain within the noise is none."""
    best: Attempt | None = None
    since = 0
    for attempt in history:
        faster = attempt.outcome == "correct" and attempt.latency_ms is not None and beats(attempt, best)
        if faster:
            best, since = attempt, 0
        elif best is not None:
            since += 1
    return best, since


def beats(attempt: Attempt, best: Attempt | None) -> bool:
    """Whether an attempt is faster than the best by more than the noise of the two measurements."""
    if attempt.latency_ms is None:
        return False
    if best is None or best.latency_ms is None:
        return True
    noise = max(attempt.noise_ms or 0.0, best.noise_ms or 0.0)
    return attempt.latency_ms < best.latency_ms - noise


def _ms(attempt: Attempt) -> str:
    return "not measured" if attempt.latency_ms is None else f"{attempt.latency_ms:.4f} ms"


def _targets(situation: Situation, base: Choices) -> Iterator[tuple[Choices, str]]:
    yield from _repairs(situation)
    usable = [item for item in situation.advice if _usable(situation, base, item)]
    # Two recommendations that do not contradict each other are tried together first: rounds are scarce.
    for one, two in combinations(usable[:4], 2):
        if not {n for n, _ in one.changes} & {n for n, _ in two.changes} and not _failed(situation, one, two):
            target = applied(situation.traits, base, (*one.changes, *two.changes))
            if target is not None:
                yield target, f"Memory recommends {one.words} and {two.words}."
    for item in usable:
        target = applied(situation.traits, base, item.changes)
        if target is not None:
            yield target, f"Memory recommends {item.words}."
    open_moves = list(moves(situation.traits, base))
    situation.rng.shuffle(open_moves)
    for name, value in open_moves:
        wanted = {name: value}
        if situation.rng.random() < 1 / 3 and len(open_moves) > 1:
            other, second = situation.rng.choice(open_moves)
            wanted |= {other: second} if other != name else {}
        yield (
            space.settle(situation.traits, base | wanted),
            "No recommendation is left, so this one is drawn by chance.",
        )


def _repairs(situation: Situation) -> Iterator[tuple[Choices, str]]:
    """The last change kept, and what its wrong result points at changed with it: speed may need another accumulator.

    Chance is given a say only when two changes in a row came out wrong: then the fault may lie in the kernel itself.
    """
    history = situation.context.history
    last = history[-1]
    if last.outcome != "wrong" or last.stage != "optimization":
        return
    broken = situation.choices_of(last)
    advised = {change for item in situation.advice for change in item.changes}
    again = len(history) > 1 and history[-2].outcome == "wrong"
    for name in diagnose.suspects(last, situation.traits, broken):
        for value in space.BY_NAME[name].values:
            sound = name not in MEANING and value not in UNSOUND.get(name, frozenset())
            if sound and value != broken[name] and (again or (name, value) in advised):
                yield space.settle(situation.traits, broken | {name: value}), f"Round {last.round} went wrong by it."


def _usable(situation: Situation, base: Choices, item: Recommendation) -> bool:
    if not item.changes or any(n in MEANING or v in UNSOUND.get(n, frozenset()) for n, v in item.changes):
        return False
    target = applied(situation.traits, base, item.changes)
    return target is not None and target != base


def _failed(situation: Situation, one: Recommendation, two: Recommendation) -> bool:
    """Whether one of the two was made in this stage already and did not stay: then it is no partner for the other."""
    for attempt in situation.context.history:
        choices = situation.choices_of(attempt)
        if attempt.stage == "optimization" and any(
            all(choices.get(n) == v for n, v in item.changes) for item in (one, two)
        ):
            return True
    return False
