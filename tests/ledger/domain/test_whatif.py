"""What would it take: the least change that lets a rule in is enough, and anything less is not."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain import consolidation
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State
from ledger.domain.whatif import hindrance
from tests.ledger.histories import GOVERNED, Play, histories, policies

EASY = Policy(min_adoptions=1, min_operators=1, budget_tokens=500)


def admitted(state: State, name: str, *, passing: bool = False, **changes: float) -> bool:
    """Whether a consolidation would admit an experience with these numbers; `passing`: with what the gate counts."""
    item = state.experiences[name]
    standing = consolidation.standing_of(state, item)
    told = item.tokens, item.rule
    if "tokens" in changes:
        item.tokens, item.rule = int(changes.pop("tokens")), "1" * 64
    changed = consolidation.Standing(
        changes.get("value", standing.value),
        changes.get("frequency", standing.frequency),
        max(standing.adoptions, state.policy.min_adoptions) if passing else standing.adoptions,
        max(standing.operators, state.policy.min_operators) if passing else standing.operators,
    )
    try:
        return any(
            e.experience == name
            for e in consolidation.consolidate(state, "stage", "", consolidation.Overlay(changed={name: changed}))
            if isinstance(e, ev.RuleAdmitted)
        )
    finally:
        item.tokens, item.rule = told


@pytest.fixture
def play() -> Play:
    """`a` 0.5 and `b` 0.25, frequency 1/2 each; budget 500: `a` takes 300, `b` with 300 does not fit."""
    play = Play(EASY)
    play.record("a", "b")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["b"], best=0.5)
    play.rule("a", 300)
    play.rule("b", 300)
    assert list(play.state.residents) == ["a"]
    return play


def resident_with(state: State, **changes: float) -> bool:
    """Whether `b` would fit with other numbers, by the ranking itself."""
    return admitted(state, "b", **changes)


def test_the_least_value_is_what_out_ranks_the_rule_in_the_way(play: Play) -> None:
    """`a` has 0.5 * f(a) / 300; with the same length `b` needs more than 0.5 * f(a) / f(b)."""
    state = play.state
    f = {n: consolidation.standing_of(state, state.experiences[n]).frequency for n in "ab"}
    lack = hindrance(state, state.experiences["b"])
    assert lack.least is not None
    assert lack.least.value == pytest.approx(0.5 * f["a"] / f["b"])
    assert lack.least.frequency is None or lack.least.frequency == pytest.approx(0.5 * f["a"] / 0.25)
    assert resident_with(state, value=math.nextafter(lack.least.value, 1.0))
    assert not resident_with(state, value=lack.least.value)


def test_the_longest_rule_that_fits_is_found(play: Play) -> None:
    """200 tokens are left beside `a`: a rule of 200 fits and one of 201 does not, unless it out-ranks `a` first."""
    lack = hindrance(play.state, play.state.experiences["b"])
    assert lack.least is not None
    assert lack.least.tokens == 200
    assert resident_with(play.state, tokens=200)
    assert not resident_with(play.state, tokens=201)


def test_the_rules_above_are_named_with_their_margin(play: Play) -> None:
    """`a` alone stands above `b`."""
    lack = hindrance(play.state, play.state.experiences["b"])
    assert [(o.experience, o.tokens) for o in lack.above] == [("a", 300)]
    assert lack.above[0].margin > 0


def test_a_gate_that_fails_says_by_how_much() -> None:
    """Adopted once on one operator with a negative value: two adoptions and two operators are missing."""
    play = Play()
    play.record("a")
    play.played("s1", "softmax", adopted=["a"], correct=False)
    lack = hindrance(play.state, play.state.experiences["a"])
    assert lack.value_short == pytest.approx(0.05)
    assert (lack.adoptions_missing, lack.operators_missing, lack.rule_missing) == (2, 2, True)
    assert lack.least is not None
    assert (lack.least.value, lack.least.frequency, lack.least.tokens) == (None, None, None)


def test_a_rule_longer_than_the_budget_needs_a_shorter_text(play: Play) -> None:
    """No value lets 600 tokens into 500."""
    play.rule("b", 600)
    lack = hindrance(play.state, play.state.experiences["b"])
    assert lack.least is not None
    assert (lack.least.value, lack.least.frequency) == (None, None)
    assert lack.least.tokens == 200


def test_nothing_hinders_a_resident_and_only_retirement_hinders_the_retired(play: Play) -> None:
    """A retired experience is not told to raise its value."""
    lack = hindrance(play.state, play.state.experiences["a"])
    assert (lack.above, lack.least, lack.rule_missing) == ((), None, False)
    play.retire("b")
    lack = hindrance(play.state, play.state.experiences["b"])
    assert (lack.retired, lack.rule_missing, lack.least, lack.above) == (True, False, None, ())


def test_a_policy_without_residents_is_the_only_hindrance() -> None:
    """No gate is named where no gate is asked."""
    play = Play(msgspec.structs.replace(EASY, consolidation="none"))
    play.record("a")
    lack = hindrance(play.state, play.state.experiences["a"])
    assert (lack.no_residents, lack.value_short, lack.adoptions_missing) == (True, None, 0)


def test_a_conflict_with_a_rule_above_names_the_rule_and_not_the_tokens() -> None:
    """`a` out-ranks `b`, both fit: only the conflict keeps `b` out, and a value above that of `a` would do."""
    play = Play(EASY)
    play.record("a", "b")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["b"], best=0.5)
    play.rule("a", 100)
    play.rule("b", 100)
    play.conflict("c1", "a", "b")
    lack = hindrance(play.state, play.state.experiences["b"])
    assert [(c.conflict, c.rival, c.settled) for c in lack.conflicts] == [("c1", "a", False)]
    assert (lack.above, lack.value_short, lack.fits) == ((), None, False)
    assert lack.least is not None
    assert lack.least.value == pytest.approx(0.5)
    play.resolve("c1", "b")
    lack = hindrance(play.state, play.state.experiences["b"])
    assert [(c.conflict, c.rival, c.settled) for c in lack.conflicts] == [("c1", "a", True)]
    assert lack.least is not None
    assert (lack.least.value, lack.least.frequency, lack.least.tokens) == (None, None, None)
    evicted = next(e for e in reversed(play.events) if isinstance(e, ev.RuleEvicted))
    assert (evicted.experience, "stands above" in evicted.reason) == ("b", True)


def test_who_loses_a_conflict_is_evicted_for_that_and_not_for_a_rank_below() -> None:
    """`a` ranks above `b` and loses: nothing stood above it."""
    play = Play(EASY)
    play.record("a", "b")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["b"], best=0.5)
    play.rule("a", 100)
    play.rule("b", 100)
    play.conflict("c1", "a", "b")
    play.resolve("c1", "a")
    evicted = next(e for e in reversed(play.events) if isinstance(e, ev.RuleEvicted))
    assert (evicted.experience, evicted.reason) == ("a", "it lost the conflict c1 with b: they contradict")


def test_the_loser_of_a_settled_conflict_takes_no_budget() -> None:
    """`b` lost to `a` and would stand above `c`: its 300 tokens are free, so `c` fits as it is."""
    play = Play(msgspec.structs.replace(EASY, min_adoptions=2))
    play.record("a", "b", "c")
    for number, name in enumerate("aabb"):
        play.played(f"s{number}", "softmax", adopted=[name])
    play.played("s9", "gelu", adopted=["c"], best=0.5)
    for name, tokens in (("a", 100), ("b", 300), ("c", 300)):
        play.rule(name, tokens)
    play.conflict("c1", "a", "b")
    play.resolve("c1", "b")
    lack = hindrance(play.state, play.state.experiences["c"])
    assert (lack.above, lack.fits, lack.adoptions_missing, lack.least) == ((), True, 1, None)
    assert admitted(play.state, "c", passing=True)


def test_where_the_gate_alone_is_missing_no_change_of_numbers_is_asked() -> None:
    """One adoption more is enough: with it the rule fits the budget as it is."""
    play = Play(msgspec.structs.replace(EASY, min_adoptions=2))
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 100)
    lack = hindrance(play.state, play.state.experiences["a"])
    assert (lack.adoptions_missing, lack.fits, lack.rank, lack.least) == (1, True, 1, None)


@settings(max_examples=150, deadline=None)
@given(
    histories(policies().map(lambda p: msgspec.structs.replace(p, consolidation="utility")), moves=GOVERNED),
    st.integers(20, 400),
)
def test_the_least_change_is_enough_and_less_is_not(play: Play, budget: int) -> None:
    """Over random libraries with conflicts: each change that is told admits the rule, the next smaller one does not."""
    state = play.state
    state.policy = msgspec.structs.replace(state.policy, budget_tokens=budget)
    consolidated = consolidation.consolidate(state, "policy", "")
    play.take(consolidated)
    for name, item in state.experiences.items():
        lack = hindrance(state, item)
        if item.resident or item.retired:
            assert lack.least is None
            continue
        if lack.fits:
            assert admitted(state, name, passing=True)
            continue
        assert not item.tokens or not admitted(state, name, passing=True)
        assert lack.least is not None
        value, frequency, tokens = lack.least.value, lack.least.frequency, lack.least.tokens
        if value is not None:
            assert admitted(state, name, passing=True, value=max(math.nextafter(value, 2.0), 1e-200))
            assert not admitted(state, name, passing=True, value=value)
        elif item.tokens:
            assert not admitted(state, name, passing=True, value=state.policy.value_bounds[1])
        if frequency is not None:
            assert admitted(state, name, passing=True, frequency=max(math.nextafter(frequency, 2.0), 1e-200))
            assert not admitted(state, name, passing=True, frequency=frequency)
        elif item.tokens:
            assert not admitted(state, name, passing=True, frequency=1.0)
        longest = (item.tokens or budget) + 1
        if tokens is not None:
            assert admitted(state, name, passing=True, tokens=tokens)
            assert tokens + 1 == longest or not admitted(state, name, passing=True, tokens=tokens + 1)
        else:
            assert not admitted(state, name, passing=True, tokens=1)
