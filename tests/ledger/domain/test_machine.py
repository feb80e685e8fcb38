"""The memory as a machine: whatever is done next, what must hold holds after every step."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledger import errors
from ledger.bootstrap import memory_ledger
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.rederive import OUTCOMES, rederive
from ledger.domain.state import State, evolve, frequency, initial
from ledger.folding import Folds
from ledger.opened import Opened
from ledger.service import Batch, Call, Ledger
from ledger.store.codec import Unknown
from tests.ledger.histories import CHANGED, Game, policies

DICE = st.integers(0, 2**20)
CALL = Call(actor="machine")


class Memory(RuleBasedStateMachine):
    """One library that is played step by step, beside its log in a real store with snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self.game: Game | None = None
        self.ledger: Ledger = memory_ledger()
        self.stored = 0

    @initialize(policy=policies())
    def begin(self, policy: Policy) -> None:
        self.game = Game(policy)
        self.game.play.record("b", "a", "d", "c")
        for name, tokens in (("d", 100), ("a", 400), ("b", 100)):
            self.game.play.rule(name, tokens)

    def _state(self) -> State:
        assert self.game is not None
        return self.game.play.state

    @rule(move=st.sampled_from(CHANGED), seed=DICE)
    def step(self, move: str, seed: int) -> None:
        """Any command, at any moment."""
        assert self.game is not None
        self.game.do(move, random.Random(seed))

    @rule(seed=DICE)
    def an_unknown_event(self, seed: int) -> None:
        """What a newer version wrote moves the position and nothing else."""
        assert self.game is not None
        before = numbers(self._state())
        unknown = Unknown(name="moon.phase_changed", schema=9, payload=b'{"experience":"a"}')  # type: ignore[arg-type]
        self.game.play.take([unknown])
        assert numbers(self._state()) == before

    @rule()
    def stored_and_read_back_through_a_snapshot(self) -> None:
        """What a store holds folds to the same state from its start, from a snapshot, and without it again."""
        assert self.game is not None
        fresh = self.game.play.events[self.stored :]
        if any(isinstance(e, Unknown) for e in fresh):
            return

        def command(batch: Batch) -> None:
            batch.emit(fresh)

        if fresh:
            self.ledger.execute("lib", CALL, command, lambda _: None, create=True)
            self.stored = len(self.game.play.events)
        log = self.ledger._log
        folds = Folds(log, every=1)
        for _ in range(2):
            opened = Opened("lib")
            folds.catch_up(opened)
            assert opened.state == self._state()
        log.shelf.drop_snapshots("lib", "state")

    @invariant()
    def the_fold_is_the_re_derivation(self) -> None:
        if self.game is None:
            return
        events = self.game.play.events
        derivation = rederive(events)
        assert derivation.first_difference is None
        folded = initial()
        for event in events:
            evolve(folded, event)
        assert folded == derivation.state == self._state()

    @invariant()
    def numbers_stay_within_their_bounds(self) -> None:
        if self.game is None:
            return
        state = self._state()
        low, high = state.policy.value_bounds
        for item in state.experiences.values():
            assert low <= item.value <= high
            assert 0.0 <= frequency(item, state.eligible(item.stages)) <= 1.0
            assert 0 <= item.adoptions <= item.n
        assert sum(state.experiences[name].tokens or 0 for name in state.residents) <= state.policy.budget_tokens

    @invariant()
    def what_is_given_away_is_the_stage_s_score(self) -> None:
        if self.game is None:
            return
        for stage, scored, updates in stages(self.game.play.events):
            shares = [u.feedback for u in updates if u.adopted]
            if shares:
                assert abs(sum(shares) - scored.score) < 1e-9, stage

    @invariant()
    def nobody_is_resident_without_the_gate_or_beside_a_rival(self) -> None:
        if self.game is None or self._state().policy.consolidation != "utility":
            return
        state = self._state()
        for name in state.residents:
            item = state.experiences[name]
            assert item.rule is not None
            assert not item.retired
            assert item.value > 0.0
        for conflict in state.conflicts.values():
            assert not (conflict.open and {conflict.first, conflict.second} <= set(state.residents))

    @invariant()
    def an_undecided_stage_is_never_scored(self) -> None:
        if self.game is None:
            return
        state = self._state()
        assert all(not s.undecided for s in state.stages.values() if s.status == "scored")
        for stage in [s for s in state.stages.values() if s.status == "open" and s.undecided][:1]:
            with pytest.raises(errors.DecisionsMissingError) as refused:
                decide.score_stage(state, stage.id)
            assert set(refused.value.facts["missing"]) == set(stage.undecided)

    def teardown(self) -> None:
        self.ledger.close()


def numbers(state: State) -> dict[str, tuple[object, ...]]:
    return {e.id: (e.value, e.n, e.adoptions, e.average, e.resident) for e in state.experiences.values()}


def stages(events: list[ev.Event]) -> Iterator[tuple[str, ev.StageScored, list[ev.ValueUpdated]]]:
    """Each stage that was scored while credit was split, with the updates that follow it."""
    splits = False
    for i, event in enumerate(events):
        if isinstance(event, ev.LibraryCreated | ev.PolicyChanged):
            splits = event.policy.credit == "adopted_split"
        if isinstance(event, ev.StageScored) and splits:
            updates = []
            for later in events[i + 1 :]:
                if not isinstance(later, OUTCOMES) or isinstance(later, ev.StageScored):
                    break
                if isinstance(later, ev.ValueUpdated):
                    updates.append(later)
            yield event.stage, event, updates


TestMemory = Memory.TestCase
# Not shrunk: a history shrinks over minutes, and its moves can be read from the seed.
TestMemory.settings = settings(
    max_examples=40, stateful_step_count=60, deadline=None, phases=(Phase.explicit, Phase.generate)
)
