"""ATU by hand: stage scores, feedback, alpha, bounds."""

from __future__ import annotations

import pytest

from ledger.domain import events as ev
from ledger.domain.policy import Policy, preset
from ledger.errors import EvidenceMissingError
from tests.ledger.histories import Play


def updates(play: Play, stage: str) -> dict[str, ev.ValueUpdated]:
    return {e.experience: e for e in play.events if isinstance(e, ev.ValueUpdated) and e.stage == stage}


# --- values --------------------------------------------------------------------------------------------------------


def test_the_score_is_split_over_the_adopted_and_the_others_lose() -> None:
    """1 ms to 0.6 ms scores 0.4: two adopted get 0.2 each, the third -0.2; at N = 1 half of that moves the value."""
    play = Play()
    play.record("a", "b", "c")
    scored = play.played("s1", "op", ["a", "b"], ["c"], best=0.6)
    assert scored.score == pytest.approx(0.4)
    assert (scored.offered, scored.adopted) == (("a", "b", "c"), ("a", "b"))
    got = updates(play, "s1")
    assert {n: u.feedback for n, u in got.items()} == pytest.approx({"a": 0.2, "b": 0.2, "c": -0.2})
    assert {u.alpha for u in got.values()} == {0.5}
    # c: 0.5 * 0 + 0.5 * -0.2 = -0.1, the lower bound itself.
    assert {n: u.new for n, u in got.items()} == pytest.approx({"a": 0.1, "b": 0.1, "c": -0.1})


def test_the_weight_of_new_feedback_shrinks_with_the_offers() -> None:
    """Passes at N = 1, 2, 3 with alpha 1/2, 1/3, 1/4: V = 0.5, then 0.5*2/3 + 1/3 = 2/3, then 2/3*3/4 + 1/4 = 3/4."""
    play = Play()
    play.record("a")
    for i, value in enumerate((0.5, 2 / 3, 0.75), 1):
        play.played(f"s{i}", "op", ["a"])
        assert play.value("a") == pytest.approx(value)


def test_the_weight_never_falls_below_its_floor() -> None:
    """At N = 19 alpha is 1/20; from there on it stays 0.05. A failure at N = 21 moves 20/21-style V by 5 %."""
    play = Play()
    play.record("a")
    for i in range(1, 21):
        play.played(f"s{i}", "op", ["a"])
    assert [updates(play, f"s{i}")["a"].alpha for i in (18, 19, 20)] == pytest.approx([1 / 19, 0.05, 0.05])
    before = play.value("a")
    play.played("late", "op", ["a"], correct=False)
    assert play.value("a") == pytest.approx(0.95 * before - 0.05 * 0.1)


def test_the_value_is_held_within_its_bounds_after_each_update() -> None:
    """-0.2 at alpha 1/2 gives -0.1; again at alpha 1/3 gives -0.1333, held at -0.1. The next pass starts from -0.1."""
    play = Play()
    play.record("a")
    play.played("s1", "op", [], ["a"])
    play.played("s2", "op", [], ["a"])
    assert updates(play, "s2")["a"].new == -0.1
    play.played("s3", "op", ["a"])
    # 3/4 * -0.1 + 1/4 * 1
    assert play.value("a") == pytest.approx(0.175)


def test_the_upper_bound_holds_too() -> None:
    """A pass at alpha 1/2 would give 0.5; a policy that ends at 0.3 keeps 0.3."""
    play = Play(Policy(value_bounds=(-0.1, 0.3)))
    play.record("a")
    play.played("s1", "op", ["a"])
    assert play.value("a") == 0.3


def test_a_failed_stage_splits_the_failure() -> None:
    """Two adopted in a failure get -0.05 each; who was not adopted still gets -0.2."""
    play = Play()
    play.record("a", "b", "c")
    play.played("s1", "op", ["a", "b"], ["c"], correct=False)
    assert {n: u.feedback for n, u in updates(play, "s1").items()} == {"a": -0.05, "b": -0.05, "c": -0.2}


def test_nobody_adopted_gives_nothing_away() -> None:
    """A passed stage without an adoption moves the retrieved by -0.2 and nobody else."""
    play = Play()
    play.record("a", "b")
    play.played("s1", "op", [], ["a"])
    assert {n: u.feedback for n, u in updates(play, "s1").items()} == {"a": -0.2}
    assert play.value("b") == 0.0


def test_adopted_once_is_adopted() -> None:
    """A later `no` on the same offer does not undo a `yes`; the other order counts alike; N grows by one."""
    for said in ((True, False), (False, True), (True, True, False)):
        play = Play()
        play.record("a")
        play.task("t", "op")
        play.open("s", "t")
        play.retrieve("s", "a")
        play.retrieve("s", "a")
        for adopted in said:
            play.decide("s", {"a": adopted})
        play.tell("s", correct=True)
        assert play.score("s").adopted == ("a",)
        assert updates(play, "s")["a"].n == 1
        assert play.value("a") == 0.5
        assert play.state.experiences["a"].adoptions == 1


def test_operators_are_a_set() -> None:
    """Three adoptions over two operators: three adoptions, two operators."""
    play = Play()
    play.record("a")
    for i, operator in enumerate(("gelu", "softmax", "gelu")):
        play.played(f"s{i}", operator, ["a"])
    assert play.state.experiences["a"].adoptions == 3
    assert play.state.experiences["a"].operators == {"gelu", "softmax"}


def test_uniform_credit_gives_every_offer_the_whole_score() -> None:
    """Value memory: adopted or not, each retrieved experience gets 1, and N counts as ever."""
    play = Play(preset("value-memory"))
    play.record("a", "b")
    play.played("s1", "op", ["a"], ["b"])
    assert {n: (u.feedback, u.new) for n, u in updates(play, "s1").items()} == {"a": (1.0, 0.5), "b": (1.0, 0.5)}


def test_no_credit_moves_no_value_but_counts() -> None:
    """Static RAG: offers and adoptions are counted, values stay 0."""
    play = Play(preset("static-rag"))
    play.record("a")
    play.played("s1", "op", ["a"])
    assert updates(play, "s1") == {}
    item = play.state.experiences["a"]
    assert (item.value, item.n, item.adoptions) == (0.0, 1, 1)


# --- scores from the judge's facts ---------------------------------------------------------------------------------


def judged(*found: tuple[str, str, float | None, float]) -> Play:
    """A task whose correctness stage was passed by `c1` at 1 ms, noise 0.03, then an open optimization with these."""
    play = Play()
    play.task("t", "op")
    play.open("s1", "t", "correctness", "judged")
    play.judge("s1", "c1", "correct", 1.0, 0.03)
    play.score("s1")
    play.open("s2", "t", "optimization", "judged")
    for candidate, outcome, ms, noise in found:
        play.judge("s2", candidate, outcome, ms, noise)
    return play


def test_a_correct_candidate_passes_the_correctness_stage() -> None:
    """One verified candidate among wrong ones scores 1 and is named."""
    play = Play()
    play.task("t", "op")
    play.open("s", "t", "correctness", "judged")
    play.judge("s", "c1", "compile_error")
    play.judge("s", "c2", "wrong")
    play.judge("s", "c3", "correct", 1.0)
    scored = play.score("s")
    assert (scored.score, scored.best) == (1.0, "c3")


@pytest.mark.parametrize("outcome", ["compile_error", "wrong", "crash", "hang", "resource", "refused"])
def test_a_stage_without_a_correct_candidate_failed(outcome: str) -> None:
    """Whatever the way to fail, the failure score is the policy's."""
    play = Play()
    play.task("t", "op")
    play.open("s", "t", "correctness", "judged")
    play.judge("s", "c1", outcome)
    assert play.score("s").score == -0.1


def test_improvement_is_relative_to_the_first_correct_candidate() -> None:
    """1 ms to 0.6 ms is 0.4, whatever came between, and both candidates are named."""
    play = judged(("c2", "wrong", None, 0.0), ("c3", "correct", 0.6, 0.0), ("c4", "correct", 0.8, 0.0))
    scored = play.score("s2")
    assert scored.score == pytest.approx(0.4)
    assert (scored.first, scored.best, scored.first_ms, scored.best_ms) == ("c1", "c3", 1.0, 0.6)


def test_a_faster_wrong_candidate_is_no_improvement() -> None:
    """Only verified candidates count."""
    play = judged(("c2", "wrong", None, 0.0))
    assert play.score("s2").score == -0.1


def test_an_improvement_within_the_noise_is_none() -> None:
    """Noises 0.03 and 0.04 make 0.05 together: 0.04 better is nothing, 0.06 better scores 0.06."""
    assert judged(("c2", "correct", 0.96, 0.04)).score("s2").score == -0.1
    assert judged(("c2", "correct", 0.94, 0.04)).score("s2").score == pytest.approx(0.06)


def test_a_noisy_measurement_does_not_hide_a_clear_improvement() -> None:
    """0.5 ms with noise 0.6 shows nothing; 0.7 ms with noise 0.01 beside it is an improvement of 0.3."""
    scored = judged(("c2", "correct", 0.5, 0.6), ("c3", "correct", 0.7, 0.01)).score("s2")
    assert scored.score == pytest.approx(0.3)
    assert scored.best == "c3"


def test_slower_is_a_failure_and_never_a_negative_share() -> None:
    """2 ms after 1 ms scores the failure score, not -1."""
    assert judged(("c2", "correct", 2.0, 0.0)).score("s2").score == -0.1


def test_a_verified_candidate_that_was_not_measured_takes_no_part() -> None:
    """`Not measured` is absent: it is neither first nor best."""
    assert judged(("c2", "correct", None, 0.0)).score("s2").score == -0.1


def test_a_stage_without_a_report_can_not_be_scored() -> None:
    """Nothing was judged in it, though the task has a correct candidate from before."""
    with pytest.raises(
        EvidenceMissingError, match="'s2' can not be scored: no candidate has a judge's report"
    ) as caught:
        judged().score("s2")
    assert caught.value.facts == {"stage": "s2"}


def test_a_stage_without_a_reported_outcome_can_not_be_scored() -> None:
    """A stage that is told by hand needs its word."""
    play = Play()
    play.task("t", "op")
    play.open("s", "t")
    with pytest.raises(EvidenceMissingError, match="no outcome has been reported"):
        play.score("s")


@pytest.mark.parametrize(("best", "score"), [(None, -0.1), (1.0, -0.1), (1.5, -0.1), (0.25, 0.75)])
def test_a_reported_optimization_scores_as_a_judged_one(best: float | None, score: float) -> None:
    """No best, an equal or a slower one fails; 1 ms to 0.25 ms is 0.75."""
    play = Play()
    play.task("t", "op")
    play.open("s", "t", "optimization")
    play.tell("s", None, 1.0, best)
    assert play.score("s").score == pytest.approx(score)
