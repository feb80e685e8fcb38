"""Libraries played at random: every command that the domain takes, in any order that it allows.

`histories()` draws whole logs, with several stages open at once. `Play`, the library itself, is in `tests.ledger.play`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import structs

from ledger import errors
from ledger.domain import decide, govern, reversal
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from tests.ledger.play import BOTH, JUDGE, Play

__all__ = [
    "BOTH",
    "CHANGED",
    "GOVERNED",
    "JUDGE",
    "MOVES",
    "OPERATORS",
    "REVERSALS",
    "Game",
    "Play",
    "histories",
    "policies",
    "source",
]

OPERATORS = ("softmax", "matmul", "gelu", "argmax")
MOVES = (
    "record",
    "open",
    "offer",
    "decide",
    "judge",
    "score",
    "score",
    "abandon",
    "rule",
    "retire",
    "play",
    "play",
    "play",
)


REVERSALS = (*MOVES, "reverse", "reverse", "reinstate", "withdraw")
GOVERNED = (*REVERSALS, "conflict", "resolve", "supersede")
CHANGED = (*GOVERNED, "policy")


def source(dice: random.Random) -> str:
    """The hash of one of few kernels, so that the same one comes up in several tasks."""
    return dice.choice("0123456789") * 64


class Game:
    """Each move draws what it needs from a generator of its own, so that dropping one move leaves the others alike."""

    def __init__(self, policy: Policy) -> None:
        self.play = Play(policy)
        self.made = 0

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def do(self, move: str, dice: random.Random) -> None:
        getattr(self, f"_{move}")(dice)

    def _one(self, dice: random.Random, names: Sequence[str]) -> str | None:
        return dice.choice(list(names)) if names else None

    def _open_stages(self) -> list[str]:
        return [s.id for s in self.play.state.stages.values() if s.status == "open"]

    def _cold(self, kind: ev.StageKind) -> list[str]:
        return [
            e.id for e in self.play.state.experiences.values() if kind in e.stages and not e.resident and not e.retired
        ]

    def _record(self, dice: random.Random) -> None:
        if not self.play.state.policy.open_to_experiences and self.play.state.tasks:
            return
        # Ids that neither count up nor sort as they were recorded.
        self.play.record(
            f"{dice.choice('zyxab')}{self.name('e')}", stages=dice.choice((BOTH, BOTH, BOTH[:1], BOTH[1:]))
        )

    def _open(self, dice: random.Random) -> None:
        if len(self._open_stages()) >= 3:
            return
        play = self.play
        task = self.name("t")
        play.task(task, dice.choice(OPERATORS))
        if dice.random() < 0.5:
            play.open(self.name("s"), task, dice.choice(BOTH), "reported")
            return
        stage = self.name("s")
        play.open(stage, task, "correctness", "judged")
        if dice.random() < 0.6:
            play.judge(stage, self.name("c"), "correct", dice.uniform(0.5, 2.0), dice.choice((0.0, 0.1)), source(dice))
            self._close(stage, dice)
            if play.state.first_correct(play.state.tasks[task]) is not None:
                play.open(self.name("s"), task, "optimization", "judged")

    def _offer(self, dice: random.Random) -> None:
        stage = self._one(dice, self._open_stages())
        if stage is None:
            return
        cold = self._cold(self.play.state.stages[stage].kind)
        self.play.retrieve(stage, *dice.sample(cold, min(len(cold), dice.randrange(5))))

    def _decide(self, dice: random.Random) -> None:
        stage = self._one(dice, self._open_stages())
        if stage is None:
            return
        item = self.play.state.stages[stage]
        for name in (*item.retrieved, *item.rules):
            if dice.random() < 0.6:
                self.play.decide(stage, {name: dice.random() < 0.6})

    def _judge(self, dice: random.Random) -> None:
        stage = self._one(dice, [s for s in self._open_stages() if self.play.state.stages[s].basis == "judged"])
        if stage is None:
            return
        outcome = dice.choice(("correct", "correct", "wrong", "compile_error", "crash", "hang"))
        ms = dice.uniform(0.1, 2.0) if outcome == "correct" and dice.random() < 0.9 else None
        self.play.judge(stage, self.name("c"), outcome, ms, dice.choice((0.0, 0.05, 0.5)), source(dice))

    def _close(self, stage: str, dice: random.Random) -> None:
        play = self.play
        item = play.state.stages[stage]
        for name in item.undecided:
            play.decide(stage, {name: dice.random() < 0.6})
        if item.basis == "reported":
            first = dice.uniform(0.5, 2.0)
            if item.kind == "correctness":
                play.tell(stage, correct=dice.random() < 0.8)
            else:
                play.tell(stage, None, first, dice.choice((None, first * dice.uniform(0.1, 1.2))))
        elif not any(play.state.tasks[item.task].candidates[c].outcome for c in item.candidates):
            play.judge(stage, self.name("c"), "wrong")
        try:
            play.score(stage)
        except errors.EvidenceMissingError:
            # What an optimization would have been measured against was withdrawn meanwhile.
            play.take(decide.abandon_stage(play.state, stage, "no evidence"))

    def _score(self, dice: random.Random) -> None:
        stage = self._one(dice, self._open_stages())
        if stage is not None:
            self._close(stage, dice)

    def _abandon(self, dice: random.Random) -> None:
        stage = self._one(dice, self._open_stages())
        if stage is not None and dice.random() < 0.3:
            self.play.take(decide.abandon_stage(self.play.state, stage, "cancelled"))

    def _rule(self, dice: random.Random) -> None:
        name = self._one(dice, [e.id for e in self.play.state.experiences.values() if not e.retired])
        if name is not None:
            self.play.rule(name, dice.choice((20, 100, 100, 400, 900)))

    def _retire(self, dice: random.Random) -> None:
        name = self._one(dice, [e.id for e in self.play.state.experiences.values() if not e.retired])
        if name is not None and dice.random() < 0.2:
            self.play.retire(name)

    def _live(self) -> list[str]:
        return [e.id for e in self.play.state.experiences.values() if not e.retired]

    def _reverse(self, dice: random.Random) -> None:
        stages = self.play.state.stages.values()
        stage = self._one(dice, [s.id for s in stages if s.status == "scored" and not s.invalid])
        if stage is not None:
            subject = f"task:{self.play.state.stages[stage].task}" if dice.random() < 0.3 else f"stage:{stage}"
            self.play.reverse(subject)

    def _withdraw(self, dice: random.Random) -> None:
        """A candidate at random, whether a score rests on it or not, or one that was withdrawn before."""
        state = self.play.state
        candidates = [c for t in state.tasks.values() for c in t.candidates.values()]
        known = sorted({c.source for c in candidates})
        sha256 = self._one(dice, known)
        if sha256 is not None:
            self.play.reverse(f"candidate:{sha256}", back=sha256 in state.withdrawn)

    def _reinstate(self, dice: random.Random) -> None:
        state = self.play.state
        stage = self._one(dice, [s.id for s in state.stages.values() if s.invalid])
        if stage is not None and not reversal.withdrawn_under(state, stage):
            self.play.reverse(f"stage:{stage}", back=True)

    def _conflict(self, dice: random.Random) -> None:
        live = self._live()
        open_pairs = [{c.first, c.second} for c in self.play.state.conflicts.values() if c.open]
        if len(live) >= 2 and set(pair := dice.sample(live, 2)) not in open_pairs:
            self.play.conflict(self.name("x"), *pair)

    def _resolve(self, dice: random.Random) -> None:
        conflict = self._one(dice, [c.id for c in self.play.state.conflicts.values() if c.open])
        if conflict is not None:
            item = self.play.state.conflicts[conflict]
            self.play.resolve(conflict, dice.choice((None, item.first, item.second)))

    def _supersede(self, dice: random.Random) -> None:
        live = self._live()
        if len(live) >= 4 and dice.random() < 0.3:
            self.play.supersede(*dice.sample(live, 2))

    def _policy(self, dice: random.Random) -> None:
        """Another budget, gate, share of credit or kind of consolidation; bounds stay, so that values stay within."""
        changed = structs.replace(
            self.play.state.policy,
            budget_tokens=dice.choice((0, 100, 500, 10_000)),
            min_adoptions=dice.choice((0, 1, 2)),
            beta=dice.choice((0.1, 0.5)),
            credit=dice.choice(("adopted_split", "uniform", "none")),
            consolidation=dice.choice(("utility", "utility", "random", "none")),
        )
        if changed != self.play.state.policy:
            self.play.take(govern.change_policy(self.play.state, changed, "changed", "a trial"))
            self.play.take(govern.reconsolidate(self.play.state, "policy", "changed"))

    def _play(self, dice: random.Random) -> None:
        """A stage from start to end, most of what it offers adopted: what lifts experiences over the gate."""
        play = self.play
        task, stage = self.name("t"), self.name("s")
        play.task(task, dice.choice(OPERATORS))
        kind: ev.StageKind = dice.choice(BOTH)
        play.open(stage, task, kind)
        cold = self._cold(kind)
        play.retrieve(stage, *dice.sample(cold, min(len(cold), dice.randrange(1, 4))))
        item = play.state.stages[stage]
        for name in item.rules:
            if dice.random() < 0.5:
                play.decide(stage, {name: dice.random() < 0.8})
        play.decide(stage, {name: dice.random() < 0.8 for name in item.retrieved})
        self._close(stage, dice)


def policies() -> st.SearchStrategy[Policy]:
    """Policies with gates and budgets small enough that residents come and go within a short history."""
    return st.builds(
        Policy,
        failure_score=st.sampled_from((-0.1, -0.2, 0.0)),
        non_adoption_feedback=st.sampled_from((-0.2, -0.05)),
        value_bounds=st.sampled_from(((-0.1, 1.0), (-0.2, 1.0), (0.0, 0.3))),
        alpha_min=st.sampled_from((0.05, 0.5)),
        min_adoptions=st.sampled_from((0, 1, 2, 3)),
        min_operators=st.sampled_from((1, 2, 3)),
        budget_tokens=st.sampled_from((0, 100, 500, 1000, 10_000)),
        beta=st.sampled_from((0.1, 0.5)),
        credit=st.sampled_from(("adopted_split", "adopted_split", "uniform", "none")),
        consolidation=st.sampled_from(("utility", "utility", "utility", "random", "none")),
        holdout_rate=st.sampled_from((0.0, 0.0, 0.5)),
    )


@st.composite
def histories(
    draw: st.DrawFn,
    policy: st.SearchStrategy[Policy] | None = None,
    size: int = 50,
    moves: Sequence[str] = MOVES,
) -> Play:
    """A library with a random past; a few experiences are there from the start."""
    game = Game(draw(policies() if policy is None else policy))
    game.play.record("b", "a", "d", "c")
    for name, tokens in (("d", 100), ("a", 400), ("b", 100)):
        game.play.rule(name, tokens)
    move_and_seed = st.tuples(st.sampled_from(moves), st.integers(0, 2**20))
    for move, seed in draw(st.lists(move_and_seed, min_size=size // 2, max_size=size)):
        game.do(move, random.Random(seed))
    return game.play
