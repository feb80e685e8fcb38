"""The correctness stage: a plain first draft, then one change a round at what the diagnosis points at."""

from __future__ import annotations

from collections.abc import Iterator

from agent.models.search import diagnose, space
from agent.models.search.plan import Plan, Situation, adoptions, reasons, told
from agent.models.search.recommend import CORRECTNESS, applied, difference, written
from agent.models.search.space import Choices
from agent.port import Attempt, Diagnosis

_DRAFT_ADVICE = 2


def next_repair(situation: Situation) -> Plan:
    """The next candidate on the way to a correct one."""
    history = situation.context.history
    return _first(situation) if not history else _repair(situation, history[-1])


def _first(situation: Situation) -> Plan:
    """A plain draft; where memory knows better, up to two of its recommendations are followed at once."""
    draft = situation.draft
    target, followed = dict(draft), 0
    for item in situation.advice:
        if followed == _DRAFT_ADVICE:
            break
        changes = [(n, v) for n, v in item.changes if n in CORRECTNESS]
        if len(changes) != len(item.changes) or not changes or any(target.get(n) != draft.get(n) for n, _ in changes):
            continue
        better = applied(situation.traits, target, changes)
        if better is not None and better != target:
            target, followed = better, followed + 1
    decisions = adoptions(situation, draft, target, "instead of what the plain draft would have done")
    followed_words = f" Memory changed {written(difference(draft, target))}." if decisions else ""
    hypothesis = f"A plain {situation.traits.family} kernel is the shortest way to a first verdict.{followed_words}"
    return Plan(target, "first draft: " + written(target), hypothesis, decisions)


def _repair(situation: Situation, last: Attempt) -> Plan:
    base = situation.choices_of(last)
    parent = last.candidate
    if last.outcome in {"compile_error", "refused"}:
        sound = next(
            (a for a in reversed(situation.context.history) if a.outcome not in {"compile_error", "refused"}), None
        )
        if sound is not None:
            base, parent = situation.choices_of(sound), sound.candidate
    suspects = diagnose.suspects(last, situation.traits, base)
    evidence = f"{last.summary}\n{last.evidence}".strip()
    for target, why in _targets(situation, base, suspects):
        if target != base and situation.judged(target) is None:
            changes = difference(base, target)
            purpose = f"for what round {last.round} showed: {last.summary}"
            hypothesis = f"{diagnose.words(last)}. {why} {reasons(changes)}."
            diagnosis = Diagnosis("judge", diagnose.words(last), evidence, written(changes))
            return Plan(
                target, told(base, target), hypothesis, adoptions(situation, base, target, purpose), diagnosis, parent
            )
    return Plan(None, "", "every change that the evidence points at, and every other one, was tried")


def _targets(situation: Situation, base: Choices, suspects: tuple[str, ...]) -> Iterator[tuple[Choices, str]]:
    """Choices to try, the likeliest first: recommended at a suspect, any at a suspect, any that can be wrong, any."""
    for name in suspects:
        for item in situation.advice:
            if any(n == name for n, _ in item.changes):
                target = applied(situation.traits, base, item.changes)
                if target is not None:
                    yield target, f"Memory recommends {item.words}."
    # Without memory the evidence tells where to look, and chance what to do there.
    for name in suspects:
        yield from _at_random(situation, base, name, "The evidence points at it.")
    open_names = [d.name for d in space.dimensions(situation.traits, base)]
    others = [name for name in open_names if name in CORRECTNESS and name not in suspects]
    situation.rng.shuffle(others)
    for name in others:
        yield from _at_random(situation, base, name, "Nothing else that the evidence points at is left.")
    yield from _pairs(situation, base)


def _at_random(situation: Situation, base: Choices, name: str, why: str) -> Iterator[tuple[Choices, str]]:
    values = [value for value in space.BY_NAME[name].values if value != base.get(name)]
    situation.rng.shuffle(values)
    for value in values:
        tried = any(
            situation.choices_of(attempt).get(name) == value and attempt.outcome != "correct"
            for attempt in situation.context.history
        )
        if not tried:
            yield space.settle(situation.traits, base | {name: value}), why


def _pairs(situation: Situation, base: Choices) -> Iterator[tuple[Choices, str]]:
    """Two changes at once, drawn at random: more than one thing can be wrong."""
    names = [d.name for d in space.dimensions(situation.traits, base) if d.name in CORRECTNESS]
    for _ in range(200 if len(names) > 1 else 0):
        wanted = {name: situation.rng.choice(space.BY_NAME[name].values) for name in situation.rng.sample(names, 2)}
        yield space.settle(situation.traits, base | wanted), "More than one thing may be wrong."
