"""Why an offered experience was not followed, said at the end of a stage for each that no round decided on."""

from __future__ import annotations

from agent.models.search.improve import best_so_far
from agent.models.search.plan import Situation
from agent.models.search.recommend import (
    CORRECTNESS,
    MEANING,
    UNSOUND,
    Recommendation,
    applied,
    made,
    recommendations,
)
from agent.models.search.space import Choices
from agent.port import Attempt, Decision


def closing(situation: Situation, *, use_memory: bool) -> tuple[Decision, ...]:
    """One decision for each offer of the stage; those that a round adopted come out as adopted again."""
    offered = {offer.id for offer in situation.context.offers}
    if not use_memory:
        reason = "memory is switched off in this configuration: offers are not read"
        return tuple(Decision(name, adopted=False, reason=reason) for name in sorted(offered))
    found = [item for item in recommendations(situation.context) if item.id in offered]
    return tuple(_decision(situation, item) for item in found)


def _decision(situation: Situation, item: Recommendation) -> Decision:
    for base, attempt in _steps(situation):
        if made(item, base, situation.choices_of(attempt)):
            return Decision(item.id, adopted=True, reason=f"made in round {attempt.round}: {item.words}")
    return Decision(item.id, adopted=False, reason=_reason(situation, item))


def _steps(situation: Situation) -> list[tuple[Choices, Attempt]]:
    """Each attempt of the stage with the choices that it started from."""
    found: list[tuple[Choices, Attempt]] = []
    for at, attempt in enumerate(situation.context.history):
        before = situation.context.history[:at]
        if not before:
            base = situation.draft
        elif attempt.stage == "optimization":
            best, _ = best_so_far(before)
            base = situation.choices_of(best or before[-1])
        else:
            base = situation.choices_of(before[-1])
        if attempt.stage == situation.context.stage:
            found.append((base, attempt))
    return found


def _reason(situation: Situation, item: Recommendation) -> str:  # noqa: C901, PLR0911  (one return for each reason)
    if not item.changes:
        return "it names no change in the vocabulary of this model, which can follow `Change:` lines only"
    stage, history = situation.context.stage, situation.context.history
    mine = [attempt for attempt in history if attempt.stage == stage]
    last = situation.choices_of(history[-1]) if history else situation.draft
    best, _ = best_so_far(history)
    kept = situation.choices_of(best) if best is not None and stage == "optimization" else last
    target = applied(situation.traits, kept, item.changes)
    if target is None:
        return f"{item.words} does not apply to this {situation.traits.family} kernel"
    if all(kept.get(n) == v for n, v in item.changes):
        return f"{item.words} was so already"
    if stage == "optimization":
        for name, value in item.changes:
            if name in MEANING or value in UNSOUND.get(name, frozenset()):
                return (
                    f"{name} = {value} would give up cases that the kernel handles, which is no way to make it faster"
                )
    elif not all(name in CORRECTNESS for name, _ in item.changes):
        return f"{item.words} is about speed; this stage was about a first correct kernel"
    for attempt in mine:
        choices = situation.choices_of(attempt)
        if all(choices.get(n) == v for n, v in item.changes) and attempt.outcome != "correct":
            return f"the kernel of round {attempt.round} had {item.words} and ended {attempt.outcome}"
    if not mine:
        return "no round was left in which it could have been tried"
    if mine[-1].outcome == "correct" and stage == "correctness":
        return f"nothing in the evidence pointed at it before round {mine[-1].round} was correct"
    return f"its turn did not come in the {len(mine)} rounds of this stage: others were recommended more strongly"
