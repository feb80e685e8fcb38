"""What would it take: the least change that lets a rule in is enough, and anything less is not."""

from __future__ import annotations

import msgspec
import pytest

from ledger.domain import consolidation
from ledger.domain.policy import Policy
from ledger.domain.state import State
from ledger.domain.whatif import hindrance
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1, budget_tokens=500)


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
    b = state.experiences["b"]
    standing = consolidation.standing_of(state, b)
    tokens = b.tokens
    b.tokens = int(changes.pop("tokens", tokens or 0))
    changed = consolidation.Standing(
        changes.get("value", standing.value),
        changes.get("frequency", standing.frequency),
        standing.adoptions,
        standing.operators,
    )
    ranked = consolidation.rank(state, {"b": changed})
    b.tokens = tokens
    return any(r.experience == "b" and r.resident for r in ranked)


def test_the_least_value_is_what_out_ranks_the_rule_in_the_way(play: Play) -> None:
    """`a` has 0.5 * f(a) / 300; with the same length `b` needs more than 0.5 * f(a) / f(b)."""
    state = play.state
    f = {n: consolidation.standing_of(state, state.experiences[n]).frequency for n in "ab"}
    lack = hindrance(state, state.experiences["b"])
    assert lack.least is not None
    assert lack.least.value == pytest.approx(0.5 * f["a"] / f["b"])
    assert lack.least.frequency is None or lack.least.frequency == pytest.approx(0.5 * f["a"] / 0.25)
    assert resident_with(state, value=lack.least.value + 1e-9)
    assert not resident_with(state, value=lack.least.value - 1e-9)


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
    assert lack.least is None


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
