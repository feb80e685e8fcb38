"""How often an experience is needed: a ratio while it was never resident, a moving average from then on."""

from __future__ import annotations

import pytest

from ledger.domain import decide
from ledger.domain.policy import Policy
from ledger.domain.state import frequency
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)


def freq(play: Play, name: str) -> float:
    item = play.state.experiences[name]
    return frequency(item, play.state.eligible(item.stages))


def test_before_any_eligible_stage_it_is_zero() -> None:
    """No stage has been scored: nothing to divide by."""
    play = Play()
    play.record("a")
    assert freq(play, "a") == 0.0


def test_it_is_the_share_of_eligible_stages_that_offered_it() -> None:
    """Offered in 2 of 3 scored stages; the other was offered in 1 of 3."""
    play = Play()
    play.record("a", "b")
    play.played("s1", "op", ["a"])
    play.played("s2", "op", ["a", "b"])
    play.played("s3", "op")
    assert (freq(play, "a"), freq(play, "b")) == pytest.approx((2 / 3, 1 / 3))


def test_stages_before_it_was_recorded_do_not_count() -> None:
    """Two stages passed before `late` came; it was offered in 1 of the 2 since."""
    play = Play()
    play.record("a")
    play.played("s1", "op", ["a"])
    play.played("s2", "op", ["a"])
    play.record("late")
    play.played("s3", "op", ["late"])
    play.played("s4", "op", ["a"])
    assert freq(play, "late") == 0.5


def test_only_stages_of_its_kinds_are_eligible() -> None:
    """One optimization and two correctness stages: an experience for optimization alone was offered in 1 of 1."""
    play = Play()
    play.record("fast", stages=["optimization"])
    play.record("any")
    play.played("s1", "op", ["any"])
    play.played("s2", "op", ["fast"], best=0.5)
    play.played("s3", "op", ["any"])
    assert freq(play, "fast") == 1.0
    assert freq(play, "any") == pytest.approx(2 / 3)


def test_an_abandoned_stage_is_not_eligible() -> None:
    """It was offered in a stage that was abandoned: neither counts."""
    play = Play()
    play.record("a")
    play.task("t", "op")
    play.open("s1", "t")
    play.retrieve("s1", "a")
    play.take(decide.abandon_stage(play.state, "s1", "crash"))
    play.played("s2", "op")
    assert freq(play, "a") == 0.0
    assert play.state.experiences["a"].n == 0


def resident() -> Play:
    """`a` became resident after 1 of 2 stages offered it: frequency 0.5, value 0.5."""
    play = Play(EASY)
    play.record("a", "b")
    play.played("s1", "op", ["a"])
    play.played("s2", "op")
    play.rule("a", 100)
    assert play.state.experiences["a"].resident
    return play


def test_it_does_not_jump_when_a_rule_becomes_resident() -> None:
    """The average starts where the ratio stood."""
    assert freq(resident(), "a") == 0.5


def test_a_resident_that_is_used_rises_and_one_that_is_not_falls() -> None:
    """Beta 0.1: used 0.9 * 0.5 + 0.1 = 0.55; then unused 0.9 * 0.55 = 0.495."""
    play = resident()
    play.played("s3", "op", ["a"])
    assert freq(play, "a") == pytest.approx(0.55)
    play.played("s4", "op")
    assert freq(play, "a") == pytest.approx(0.495)


def test_seven_stages_unused_leave_48_percent() -> None:
    """0.9 to the power of 7 is 0.478."""
    play = resident()
    for i in range(7):
        play.played(f"u{i}", "op")
    assert freq(play, "a") == pytest.approx(0.5 * 0.9**7)


def test_a_resident_that_was_decided_against_was_not_used() -> None:
    """A `no` on a presented rule is no adoption, is no offer that counts, and moves no value."""
    play = resident()
    before = play.value("a")
    play.played("s3", "op", [], ["a"])
    item = play.state.experiences["a"]
    assert freq(play, "a") == pytest.approx(0.45)
    assert (item.n, item.value) == (1, before)


def evicted() -> Play:
    """`a` (100 tokens, frequency 0.5) was put out by `b`, which fits the budget of 100 alone and has the higher priority."""
    play = Play(Policy(min_adoptions=1, min_operators=1, budget_tokens=100))
    play.record("a", "b")
    play.played("s1", "op", ["a", "b"])
    play.rule("a", 100)
    assert play.state.experiences["a"].resident
    play.rule("b", 50)
    assert not play.state.experiences["a"].resident
    assert play.state.experiences["b"].resident
    return play


def test_after_an_eviction_the_average_goes_on_from_where_it_stood() -> None:
    """It was 1: not retrieved 0.9, then retrieved (not adopted) 0.9 * 0.9 + 0.1 = 0.91."""
    play = evicted()
    assert freq(play, "a") == 1.0
    play.played("s2", "op")
    assert freq(play, "a") == pytest.approx(0.9)
    play.played("s3", "op", [], ["a"])
    assert freq(play, "a") == pytest.approx(0.91)


def test_a_retired_experience_stands_still() -> None:
    """It was offered in 1 of 1; stages after its retirement change nothing."""
    play = Play()
    play.record("a")
    play.played("s1", "op", ["a"])
    play.retire("a")
    play.played("s2", "op")
    play.played("s3", "op")
    assert freq(play, "a") == 1.0


def test_retired_while_a_stage_is_open_it_still_gets_its_credit() -> None:
    """Its frequency stands still, its value and counts move: it was offered before it was retired."""
    play = Play()
    play.record("a")
    play.played("s1", "op")
    play.task("t", "op")
    play.open("s2", "t")
    play.retrieve("s2", "a")
    play.retire("a")
    play.decide("s2", {"a": True})
    play.tell("s2", correct=True)
    play.score("s2")
    item = play.state.experiences["a"]
    assert (item.value, item.n, item.adoptions) == (0.5, 1, 1)
    assert freq(play, "a") == 0.0
