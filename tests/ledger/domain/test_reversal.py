"""Reversal: withdrawn verdicts leave the memory as if their stages had not been scored."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ledger import errors
from ledger.domain import decide, govern, reversal
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.rederive import had_not_been_scored, rederive
from ledger.domain.state import State, evolve, frequency, initial
from tests.ledger.domain.oracle import Oracle
from tests.ledger.histories import MOVES, Play, histories, policies

UTILITY = policies().map(lambda p: msgspec.structs.replace(p, consolidation="utility"))
EASY = Policy(min_adoptions=1, min_operators=1)


def reverse(play: Play, subject: str, *, back: bool = False) -> None:
    """What the service does in one batch: the reversal, then what it comes to."""
    before = list(play.events)
    command = govern.reinstate if back else govern.invalidate
    if not play.take(command(play.state, subject, "a cheat was found", "person"))[0].stages:  # type: ignore[attr-defined]
        return
    invalid = frozenset(n for n, s in play.state.stages.items() if s.invalid)
    play.take(reversal.restate(play.state, had_not_been_scored(before, invalid), subject))


def numbers(state: State) -> dict[str, tuple[object, ...]]:
    return {
        e.id: (
            pytest.approx(e.value, abs=1e-12),
            e.n,
            e.adoptions,
            sorted(e.operators),
            pytest.approx(frequency(e, state.eligible(e.stages)), abs=1e-12),
            e.resident,
        )
        for e in state.experiences.values()
    }


class WithoutStage(Oracle):
    """The independent calculation for facts that were recorded in a world with other residents."""

    def _take(self, event: ev.Event) -> None:
        if isinstance(event, ev.StageStarted):
            self.at_start = {**getattr(self, "at_start", {}), event.stage: set(self.residents)}
            self.shown = {**getattr(self, "shown", {}), event.stage: set()}
        if isinstance(event, ev.RulesPresented):
            self.presented[event.stage] = set(event.rules)
            self.shown[event.stage] |= set(event.rules)
            return
        if isinstance(event, ev.RuleWithheld):
            self.shown[event.stage].add(event.experience)
        super()._take(event)

    def _close(self, stage: str) -> None:
        hidden = self.at_start[stage] - self.shown[stage]
        self.retrieved[stage] -= hidden - self.chosen[stage]
        super()._close(stage)


def test_a_reversal_takes_back_value_adoption_operator_and_frequency() -> None:
    """Two stages: 1.0 lifts `a` to 0.5, then 0.6667. Without the first it stands where the second alone puts it: 0.5."""
    play = Play()
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["a"])
    assert play.value("a") == pytest.approx(2 / 3)
    reverse(play, "stage:s1")
    a = play.state.experiences["a"]
    assert (a.value, a.n, a.adoptions, a.operators) == (0.5, 1, 1, {"gelu"})
    assert play.state.scored["correctness"] == 1
    assert frequency(a, play.state.eligible(a.stages)) == 1.0


def test_a_rule_that_rests_on_a_withdrawn_stage_is_evicted_and_another_takes_its_room() -> None:
    """`a` (0.5 on 100 tokens) keeps `b` (0.25) out of a budget of 100; without s1 the room is `b`'s."""
    play = Play(msgspec.structs.replace(EASY, budget_tokens=100))
    play.record("a", "b")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["b"], best=0.5)
    play.rule("a", 100)
    play.rule("b", 100)
    assert list(play.state.residents) == ["a"]
    reverse(play, "stage:s1")
    assert list(play.state.residents) == ["b"]
    assert [type(e).__name__ for e in play.events[-3:]] == ["Consolidated", "RuleEvicted", "RuleAdmitted"]


def test_reversing_a_reversal_gives_everything_back() -> None:
    """Numbers and residents are those before the reversal, and the log still re-derives."""
    play = Play(EASY)
    play.record("a", "b")
    play.rule("a", 50)
    play.played("s1", "softmax", adopted=["a"], rejected=["b"])
    play.played("s2", "gelu", adopted=["b"])
    before = numbers(play.state)
    reverse(play, "stage:s1")
    assert numbers(play.state) != before
    reverse(play, "stage:s1", back=True)
    assert numbers(play.state) == before
    assert rederive(play.events).first_difference is None


def test_a_candidate_s_hash_names_the_stages_that_rest_on_it() -> None:
    """Every candidate of the play has source 2…2: its correctness and its optimization both fall."""
    play = Play()
    play.record("a")
    play.task("t", "softmax")
    play.open("c", "t", "correctness", "judged")
    play.judge("c", "k1", "correct", 1.0)
    play.score("c")
    play.open("o", "t", "optimization", "judged")
    play.judge("o", "k2", "correct", 0.5)
    play.score("o")
    assert reversal.stages_of(play.state, "candidate:" + "2" * 64) == ("c", "o")
    assert reversal.stages_of(play.state, "task:t") == ("c", "o")
    with pytest.raises(errors.UnknownHashError):
        reversal.stages_of(play.state, "candidate:" + "3" * 64)


def withdrawn_kernel() -> Play:
    """Task t: k1 (source 2…2, 1 ms) is correct and scored; then 2…2 is withdrawn. `a` was adopted."""
    play = Play(EASY)
    play.record("a")
    play.task("t", "softmax")
    play.open("c", "t", "correctness", "judged")
    play.retrieve("c", "a")
    play.decide("c", {"a": True})
    play.judge("c", "k1", "correct", 1.0)
    play.score("c")
    reverse(play, "candidate:" + "2" * 64)
    return play


def test_a_withdrawn_candidate_earns_nothing_in_a_later_stage_of_its_task() -> None:
    """Optimization is measured from k2 (2 ms) and not from the withdrawn k1 (1 ms): (2 - 1.5) / 2."""
    play = withdrawn_kernel()
    with pytest.raises(errors.NoCorrectCandidateError):
        play.open("o", "t", "optimization", "judged")
    play.open("c2", "t", "correctness", "judged")
    play.judge("c2", "k2", "correct", 2.0, source="3" * 64)
    play.score("c2")
    play.open("o", "t", "optimization", "judged")
    play.judge("o", "k3", "correct", 1.5, source="4" * 64)
    play.judge("o", "k4", "correct", 0.1)
    scored = play.score("o")
    assert (scored.first, scored.best, scored.score) == ("k2", "k3", pytest.approx(0.25))
    assert rederive(play.events).first_difference is None


def test_the_withdrawn_source_earns_nothing_in_a_new_task_until_it_is_reinstated() -> None:
    """In another task the judge finds it correct again: the stage fails all the same. Reinstated, it counts."""
    play = withdrawn_kernel()
    for task, score in (("t2", -0.1), ("t3", 1.0)):
        play.task(task, "gelu")
        play.open(f"c-{task}", task, "correctness", "judged")
        play.judge(f"c-{task}", f"k-{task}", "correct", 1.0)
        assert play.score(f"c-{task}").score == score
        if task == "t2":
            reverse(play, "candidate:" + "2" * 64, back=True)
            assert play.state.stages["c"].invalid is False
            assert play.state.stages["c-t2"].score == -0.1
    assert rederive(play.events).first_difference is None


def test_a_candidate_is_withdrawn_while_its_stage_is_open() -> None:
    """Nothing rests on it yet, so nothing is restated; the stage that is then closed does not count it."""
    play = Play()
    play.task("t", "softmax")
    play.open("c", "t", "correctness", "judged")
    play.judge("c", "k1", "correct", 1.0)
    reverse(play, "candidate:" + "2" * 64)
    assert isinstance(play.events[-1], ev.StageInvalidated)
    with pytest.raises(errors.NothingToReverseError):
        govern.invalidate(play.state, "candidate:" + "2" * 64, "r", "person")
    assert play.score("c").score == -0.1
    play.take(decide.finish_task(play.state, "t", summary=""))
    assert play.state.tasks["t"].solved is False


def test_candidates_of_an_invalidated_stage_are_no_evidence_for_another() -> None:
    """k2 was made in the withdrawn optimization stage; played again, that stage is scored from k3 alone."""
    play = Play()
    play.task("t", "softmax")
    for stage, kind, kernel, ms in (("c", "correctness", "k1", 1.0), ("o", "optimization", "k2", 0.1)):
        play.open(stage, "t", kind, "judged")  # type: ignore[arg-type]
        play.judge(stage, kernel, "correct", ms, source=kernel)
        play.score(stage)
    reverse(play, "stage:o")
    play.open("o2", "t", "optimization", "judged")
    play.judge("o2", "k3", "correct", 0.8, source="k3")
    scored = play.score("o2")
    assert (scored.best, scored.score) == ("k3", pytest.approx(0.2))


def test_a_stage_that_rests_on_a_withdrawn_candidate_is_reinstated_with_it_alone() -> None:
    """The refusal names the candidate to reinstate."""
    play = withdrawn_kernel()
    with pytest.raises(errors.NothingToReverseError, match="reinstate candidate:2222"):
        govern.reinstate(play.state, "stage:c", "r", "person")


def counting(play: Play) -> set[str]:
    return {name for name, stage in play.state.stages.items() if stage.status == "scored" and not stage.invalid}


def test_a_stage_counts_again_only_when_no_reversal_of_it_stands() -> None:
    """Its own reversal outlives that of the candidate it rests on, in either order."""
    play = Play()
    play.record("a")
    play.task("t", "softmax")
    play.open("s", "t", "correctness", "judged")
    play.judge("s", "k1", "correct", 1.0, source="k1")
    play.score("s")
    candidate = f"candidate:{play.state.tasks['t'].candidates['k1'].source}"
    for first, second in (("stage:s", candidate), (candidate, "stage:s")):
        reverse(play, first)
        reverse(play, second)
        reverse(play, candidate, back=True)
        assert counting(play) == set()
        reverse(play, "stage:s", back=True)
        assert counting(play) == {"s"}


def test_the_reversal_of_a_task_is_reversed_without_that_of_its_stage() -> None:
    """And a stage may be taken out of the reversal of its task by its own name."""
    play = Play()
    play.record("a")
    play.task("t", "softmax")
    for stage in ("s1", "s2"):
        play.open(stage, "t")
        play.tell(stage, correct=True)
        play.score(stage)
    reverse(play, "stage:s1")
    reverse(play, "task:t")
    reverse(play, "task:t", back=True)
    assert counting(play) == {"s2"}
    with pytest.raises(errors.NothingToReverseError, match="reinstate stage:s1 instead"):
        govern.reinstate(play.state, "task:t", "r", "person")
    reverse(play, "task:t")
    reverse(play, "stage:s2", back=True)
    assert counting(play) == {"s2"}
    reverse(play, "stage:s1", back=True)
    assert counting(play) == {"s1", "s2"}


STAGES = ("t1c", "t1o", "t2c", "t2o")
SUBJECTS = (*(f"stage:{s}" for s in STAGES), "task:t1", *(f"candidate:{c * 63}{end}" for c, end in ("11", "1a", "2a")))


class Standing(RuleBasedStateMachine):
    """Reversals in any order beside a plain list of which stand: (subject, the stages that it named then)."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play()
        self.stands: dict[str, set[str]] = {}
        self.play.record("a")
        for task in ("t1", "t2"):
            self.play.task(task, "softmax")
            self.play.open(f"{task}c", task, "correctness", "judged")
            self.play.judge(f"{task}c", "k1", "correct", 1.0, source="1" * 64)
            self.play.score(f"{task}c")
            self.play.open(f"{task}o", task, "optimization", "judged")
            self.play.judge(f"{task}o", "k2", "correct", 0.5, source=task[1] * 63 + "a")
            self.play.score(f"{task}o")

    def named(self, subject: str) -> set[str]:
        """Both kinds of stage rest on the first candidate, an optimization on a second, too."""
        kind, _, name = subject.partition(":")
        if kind == "candidate":
            return set(STAGES) if name == "1" * 64 else {f"t{name[0]}o"}
        return {name} if kind == "stage" else {f"{name}c", f"{name}o"}

    @rule(subject=st.sampled_from(SUBJECTS), back=st.booleans())
    def reverse(self, subject: str, back: bool) -> None:
        """One more reversal, or one of a reversal, refused or not."""
        try:
            reverse(self.play, subject, back=back)
        except errors.NothingToReverseError:
            return
        if not back:
            self.stands.setdefault(subject, set()).update(self.named(subject))
            return
        self.stands.pop(subject, None)
        if subject.startswith("stage:"):
            for task in (other for other in self.stands if other.startswith("task:")):
                self.stands[task] -= self.named(subject)

    @invariant()
    def a_stage_counts_where_nothing_that_names_it_stands(self) -> None:
        """Whatever came first."""
        fallen = set().union(*self.stands.values()) if self.stands else set()
        assert counting(self.play) == set(STAGES) - fallen


TestStanding = Standing.TestCase
TestStanding.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)


@pytest.mark.parametrize(
    ("subject", "error"),
    [
        ("stage:nope", errors.UnknownStageError),
        ("task:nope", errors.UnknownTaskError),
        ("everything", errors.InvalidInputError),
        ("stage:open", errors.NothingToReverseError),
    ],
)
def test_what_can_not_be_reversed_is_refused_by_name(subject: str, error: type[errors.LedgerError]) -> None:
    """An unknown name, no name, and a stage that has no score yet."""
    play = Play()
    play.task("t", "softmax")
    play.open("open", "t")
    with pytest.raises(error):
        govern.invalidate(play.state, subject, "r", "person")


def test_a_stage_is_invalidated_once_and_reinstated_once() -> None:
    """The second time there is nothing left to reverse."""
    play = Play()
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    with pytest.raises(errors.NothingToReverseError):
        govern.reinstate(play.state, "stage:s1", "r", "person")
    reverse(play, "stage:s1")
    with pytest.raises(errors.NothingToReverseError):
        govern.invalidate(play.state, "stage:s1", "r", "person")


@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
@given(histories(UTILITY, moves=MOVES), st.integers(0, 2**16))
def test_after_a_reversal_the_state_is_that_of_a_history_in_which_the_stage_was_never_scored(
    play: Play, pick: int
) -> None:
    """Against the independent calculation, over the facts with that stage's closing left out."""
    scored = [s.id for s in play.state.stages.values() if s.status == "scored"]
    if not scored:
        return
    stage = scored[pick % len(scored)]
    oracle = WithoutStage([e for e in play.events if not (isinstance(e, ev.StageScored) and e.stage == stage)])
    before = numbers(play.state)
    reverse(play, f"stage:{stage}")
    state = play.state
    assert set(state.residents) == oracle.residents
    for name, kept in oracle.known.items():
        item = state.experiences[name]
        assert item.value == pytest.approx(kept.value, abs=1e-9), name
        assert (item.n, item.adoptions, item.operators) == (len(kept.looked_at), len(kept.adopted_in), kept.operators)
        assert frequency(item, state.eligible(item.stages)) == pytest.approx(oracle.frequency(name), abs=1e-9), name
    reverse(play, f"stage:{stage}", back=True)
    assert numbers(play.state) == before


@settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
@given(histories(), st.integers(0, 2**16))
def test_a_log_with_reversals_in_it_still_re_derives_event_by_event(play: Play, pick: int) -> None:
    """Fold and re-derivation agree after a reversal, whatever came before."""
    scored = [s.id for s in play.state.stages.values() if s.status == "scored" and not s.invalid]
    if not scored:
        return
    reverse(play, f"stage:{scored[pick % len(scored)]}")
    derivation = rederive(play.events)
    assert derivation.first_difference is None
    folded = initial()
    for event in play.events:
        evolve(folded, event)
    assert folded == derivation.state == play.state
