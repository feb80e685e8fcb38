"""Diff, costs, upkeep and hold-out evidence, by hand-worked numbers."""

from __future__ import annotations

import msgspec
import pytest

from ledger.audit.statistics import LEAST_STAGES, rank_correlation, uplift
from ledger.domain import costs, diff, holdout
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State, evolve, initial
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)


def state_at(play: Play, sequence: int) -> State:
    state = initial()
    for event in play.events[:sequence]:
        evolve(state, event)
    return state


def test_a_diff_names_what_moved_and_the_events_that_did_it() -> None:
    """Between the recording and the end `a` rose to 0.5, got a rule and became resident; `b` was left alone."""
    play = Play(EASY)
    play.record("a", "b")
    start = len(play.events)
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 40)
    numbered = list(enumerate(play.events, 1))
    changes = diff.diff(state_at(play, start), play.state, numbered[start:])
    assert [c.experience for c in changes] == ["a"]
    (a,) = changes
    assert (a.value, a.resident, a.retired) == ((0.0, 0.5), (False, True), (False, False))
    assert a.rule == (None, "1" * 64)
    kinds = [type(dict(numbered)[s]).__name__ for s in a.events]
    assert kinds == ["ValueUpdated", "RuleDistilled", "RuleAdmitted"]


def test_a_diff_of_a_point_with_itself_is_empty() -> None:
    """Nothing changed, nothing is named."""
    play = Play()
    play.record("a")
    assert diff.diff(play.state, play.state, []) == []


def test_an_experience_that_did_not_exist_has_no_before() -> None:
    """Its value was none, not 0."""
    play = Play()
    start = len(play.events)
    play.record("a")
    (a,) = diff.diff(state_at(play, start), play.state, list(enumerate(play.events, 1))[start:])
    assert a.value == (None, 0.0)
    assert a.body[0] is None


def spent() -> Play:
    play = Play(EASY)
    play.record("a")
    for stage, operator in (("s1", "softmax"), ("s2", "gelu")):
        play.task(f"t-{stage}", operator)
        play.open(stage, f"t-{stage}")
        play.take(
            [
                ev.CostIncurred(
                    stage=stage, kind="model", seconds=2.0, model="m1", input_tokens=100, output_tokens=10, round=1
                )
            ]
        )
        play.take([ev.CostIncurred(stage=stage, kind="compile", seconds=0.5, round=1)])
    play.take(
        [ev.CostIncurred(stage="s2", kind="model", seconds=1.0, model="m2", input_tokens=7, estimated=True, round=2)]
    )
    return play


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("library", {"library": (5.0, 207, 20)}),
        ("operator", {"softmax": (2.0, 100, 10), "gelu": (3.0, 107, 10)}),
        ("task", {"t-s1": (2.0, 100, 10), "t-s2": (3.0, 107, 10)}),
        ("stage", {"s1": (2.0, 100, 10), "s2": (3.0, 107, 10)}),
        ("round", {"s1#1": (2.0, 100, 10), "s2#1": (2.0, 100, 10), "s2#2": (1.0, 7, 0)}),
        ("model", {"m1": (4.0, 200, 20), "-": (0.0, 0, 0), "m2": (1.0, 7, 0)}),
    ],
)
def test_costs_add_up_in_every_grouping(by: costs.Group, expected: dict[str, tuple[float, int, int]]) -> None:
    """Model seconds, input and output tokens by group; whatever the grouping, the sum is the library's."""
    play = spent()
    found = costs.totals(play.state, play.events, by)
    assert {k: (t.seconds["model"], t.input_tokens, t.output_tokens) for k, t in found.items()} == expected
    assert sum(t.seconds["compile"] for t in found.values()) == 1.0


def test_an_estimated_count_marks_its_group() -> None:
    """Only gelu's second call was counted here."""
    play = spent()
    found = costs.totals(play.state, play.events, "operator")
    assert (found["softmax"].estimated, found["gelu"].estimated) == (False, True)


def test_a_rule_s_upkeep_stands_beside_what_it_brought() -> None:
    """Distilled for 3 s and 60 tokens; carried with 40 tokens through two stages; used in one with feedback 1."""
    play = Play(EASY)
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 40)
    play.take(
        [ev.CostIncurred(stage="s1", kind="upkeep", seconds=3.0, experience="a", input_tokens=50, output_tokens=10)]
    )
    play.played("s2", "gelu", adopted=["a"])
    play.played("s3", "matmul")
    (a,) = costs.upkeep(play.state, play.events).values()
    assert (a.distilled_seconds, a.distilled_tokens) == (3.0, 60)
    assert (a.presented, a.context_tokens, a.used, a.credit) == (2, 80, 1, 1.0)


def test_arms_are_the_scores_with_and_without_a_rule() -> None:
    """With a hold-out rate near 1 every judged stage withholds the one resident; a reported one never does."""
    play = Play(msgspec.structs.replace(EASY, holdout_rate=0.999999))
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 40)
    play.played("s2", "gelu", adopted=["a"])
    for n in range(3):
        play.task(f"t{n}", "gelu")
        play.open(f"j{n}", f"t{n}", "correctness", "judged")
        play.judge(f"j{n}", "c", "correct" if n else "wrong")
        play.score(f"j{n}")
    arms = holdout.arms(play.state)["a"]
    assert (arms.presented, arms.withheld) == ([], [-0.1, 1.0, 1.0])
    assert holdout.arms_of(play.state, "a") == arms


def test_a_stage_that_began_while_nothing_was_held_out_is_in_neither_arm() -> None:
    """Such a stage always had the rule, whatever its score: it would bias the comparison."""
    play = Play(EASY)
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 40)
    trial = msgspec.structs.replace(EASY, holdout_rate=1e-9)
    for n in range(4):
        if n == 2:
            play.take([ev.PolicyChanged(policy=trial, policy_name="trial", reason="to measure")])
        play.task(f"t{n}", "gelu")
        play.open(f"j{n}", f"t{n}", "correctness", "judged")
        play.judge(f"j{n}", "c", "correct" if n else "wrong")
        play.score(f"j{n}")
    arms = holdout.arms(play.state)["a"]
    assert (arms.presented, arms.withheld, arms.bounds) == ([1.0, 1.0], [], (-0.1, 1.0))


def test_too_few_stages_are_said_to_be_too_few() -> None:
    """No interval is made up."""
    told = uplift(holdout.Arms("a", presented=[1.0] * 20, withheld=[0.0] * (LEAST_STAGES - 1)))
    assert (told.difference, told.low, told.high) == (None, None, None)
    assert told.verdict.startswith("not enough evidence")


def test_a_clear_uplift_has_an_interval_above_zero_and_the_same_each_time() -> None:
    """Means 0.8 and 0.2 differ by 0.6; the draws are seeded. Scores might lie anywhere in [0, 1], so it is not narrow."""
    arms = holdout.Arms("a", presented=[0.7, 0.8, 0.9] * 5, withheld=[0.1, 0.2, 0.3] * 5)
    told = uplift(arms)
    assert told.difference == pytest.approx(0.6)
    assert told.low is not None
    assert told.high is not None
    assert 0.2 < told.low < 0.6 < told.high < 0.8
    assert told.verdict == "it helps"
    assert uplift(arms) == told


def test_no_difference_is_said_as_such() -> None:
    """Equal arms: the interval holds 0."""
    told = uplift(holdout.Arms("a", presented=[0.0, 1.0] * 10, withheld=[0.0, 1.0] * 10))
    assert told.verdict.startswith("no difference shown")


def test_rank_correlation_is_spearman_s() -> None:
    """Same order 1, reversed -1, constant or alone: none."""
    assert rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 21.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) is None
    assert rank_correlation([1.0], [2.0]) is None
