"""UGC by hand: gate, priority, ties, budget, eviction, triggers."""

from __future__ import annotations

import pytest

from ledger.domain import consolidation
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)


def last_table(play: Play) -> ev.Consolidated:
    return [e for e in play.events if isinstance(e, ev.Consolidated)][-1]


def moves(play: Play) -> list[tuple[str, str]]:
    return [
        ("in" if isinstance(e, ev.RuleAdmitted) else "out", e.experience)
        for e in play.events
        if isinstance(e, ev.RuleAdmitted | ev.RuleEvicted)
    ]


def lifted(policy: Policy, *names: str, stages: int = 1) -> Play:
    """All of `names` adopted together in `stages` passed stages on distinct operators."""
    play = Play(policy)
    play.record(*names)
    for i in range(stages):
        play.played(f"up{i}", f"op{i}", names)
    return play


def test_the_gate_asks_for_three_adoptions_over_three_operators() -> None:
    """Two adoptions, or three over two operators, do not pass; the third operator does."""
    play = Play()
    play.record("a")
    play.rule("a", 100)
    for i, operator in enumerate(("gelu", "softmax", "gelu")):
        play.played(f"s{i}", operator, ["a"])
        assert not play.state.residents
        assert last_table(play).ranked == ()
    play.played("s3", "matmul", ["a"])
    assert list(play.state.residents) == ["a"]


def test_the_gate_asks_for_a_value_above_zero() -> None:
    """Three failed adoptions on three operators: value below 0, no candidate."""
    play = Play()
    play.record("a")
    play.rule("a", 100)
    for i in range(3):
        play.played(f"s{i}", f"op{i}", ["a"], correct=False)
    assert play.value("a") < 0.0
    assert last_table(play).ranked == ()


def test_priority_is_value_times_frequency_by_tokens() -> None:
    """V = 0.5 (alone in a pass), f = 1 of 1, 200 tokens: 0.0025."""
    play = lifted(EASY, "a")
    play.rule("a", 200)
    (line,) = last_table(play).ranked
    assert (line.value, line.frequency, line.tokens) == (0.5, 1.0, 200)
    assert line.priority == pytest.approx(0.0025)


def test_ties_go_to_fewer_tokens_and_then_to_the_smaller_id() -> None:
    """Equal priority from 2x value at 2x tokens ranks the shorter first; equal in all, `b` before `c`."""
    play = Play(EASY)
    play.record("c", "b", "long")
    play.played("s1", "op", ["b", "c"])  # 1/2 each: V = 0.25
    play.played("s2", "op", ["long"])  # V = 0.5
    for name, tokens in (("long", 200), ("c", 100), ("b", 100)):
        play.rule(name, tokens)
    table = last_table(play).ranked
    assert [r.experience for r in table] == ["b", "c", "long"]
    assert len({r.priority for r in table}) == 1


def test_what_does_not_fit_is_skipped_and_later_ones_are_looked_at() -> None:
    """Budget 100, in order of priority 60, 50, 40: the first and the third are in, 100 used to the last token."""
    play = lifted(Policy(min_adoptions=1, min_operators=1, budget_tokens=100), "a", "b", "c")
    # Values that outweigh the lengths: a 0.75 of a later stage alone, then b.
    play.played("s1", "op", ["a"])
    play.played("s2", "op", ["a", "b"])
    for name, tokens in (("a", 60), ("b", 50), ("c", 40)):
        play.rule(name, tokens)
    table = last_table(play)
    assert [(r.experience, r.resident) for r in table.ranked] == [("a", True), ("b", False), ("c", True)]
    assert (table.used, table.budget) == (100, 100)
    assert set(play.state.residents) == {"a", "c"}


def test_an_evicted_rule_goes_back_to_being_retrievable_with_its_history() -> None:
    """`b`, shorter, takes the budget; `a` is cold again, keeps value and counts, and can be offered."""
    play = lifted(Policy(min_adoptions=1, min_operators=1, budget_tokens=100), "a", "b")
    play.rule("a", 100)
    play.rule("b", 50)
    assert moves(play) == [("in", "a"), ("out", "a"), ("in", "b")]
    out = next(e for e in play.events if isinstance(e, ev.RuleEvicted))
    assert out.reason == "out-ranked: at rank 2 its 100 tokens no longer fit the budget of 100"
    item = play.state.experiences["a"]
    assert (item.resident, item.value, item.n, item.adoptions) == (False, 0.25, 1, 1)
    play.task("t", "op")
    play.open("s", "t")
    play.retrieve("s", "a")


def test_a_resident_below_the_gate_stays_while_its_value_is_above_zero() -> None:
    """The gate is for entering: a resident is a candidate by value alone, and leaves when that is gone."""
    play = lifted(EASY, "a")
    play.rule("a", 100)
    play.played("s1", "op", ["a"], correct=False)
    # 2/3 * 0.5 - 1/3 * 0.1 = 0.3
    assert play.value("a") == pytest.approx(0.3)
    assert "a" in play.state.residents
    for i in range(40):
        play.played(f"f{i}", "op", ["a"], correct=False)
        if "a" not in play.state.residents:
            break
    assert play.value("a") <= 0.0
    assert [e.reason for e in play.events if isinstance(e, ev.RuleEvicted)] == ["its value is no longer above 0"]


def test_a_frequency_of_zero_is_no_candidate() -> None:
    """Beta 1 and a stage unused: f = 0, priority 0, out."""
    play = lifted(Policy(min_adoptions=1, min_operators=1, beta=1.0), "a")
    play.rule("a", 100)
    assert "a" in play.state.residents
    play.played("s1", "op")
    assert not play.state.residents
    assert last_table(play).ranked == ()


def test_retirement_evicts_and_gives_the_room_to_another() -> None:
    """The budget holds one rule: when `a` is retired, `b` enters in the same batch."""
    play = lifted(Policy(min_adoptions=1, min_operators=1, budget_tokens=100), "a", "b")
    play.rule("a", 60)
    play.rule("b", 90)
    assert set(play.state.residents) == {"a"}
    batch = play.retire("a")
    assert [type(e) for e in batch] == [ev.ExperienceRetired, ev.Consolidated, ev.RuleEvicted, ev.RuleAdmitted]
    assert [e.reason for e in batch if isinstance(e, ev.RuleEvicted)] == ["retired"]
    assert set(play.state.residents) == {"b"}


def test_a_rule_that_is_distilled_anew_competes_with_its_new_length() -> None:
    """A resident whose rule grows past the budget leaves at once."""
    play = lifted(Policy(min_adoptions=1, min_operators=1, budget_tokens=100), "a")
    play.rule("a", 100)
    assert "a" in play.state.residents
    play.rule("a", 101)
    assert not play.state.residents
    assert play.state.experiences["a"].tokens == 101


def test_an_experience_without_a_rule_awaits_distillation_until_it_has_one() -> None:
    """Listed by id once the gate is passed; never for one that is retired or under a policy without residents."""
    play = lifted(EASY, "b", "a", "c")
    play.retire("c")
    assert consolidation.awaiting_distillation(play.state) == ("a", "b")
    play.rule("a", 10)
    assert consolidation.awaiting_distillation(play.state) == ("b",)
    assert consolidation.awaiting_distillation(lifted(Policy(consolidation="none"), "a", stages=3).state) == ()


def test_without_consolidation_nothing_is_rebuilt() -> None:
    """The policy keeps no residents, so there is no table and no move."""
    play = lifted(Policy(consolidation="none", min_adoptions=1, min_operators=1), "a")
    play.rule("a", 10)
    assert [e for e in play.events if isinstance(e, ev.Consolidated | ev.RuleAdmitted)] == []


def test_random_residents_are_drawn_by_the_seed_and_not_by_value() -> None:
    """The same seed draws the same set within the budget whatever happened; over seeds, every rule is drawn at times."""
    drawn = set()
    for seed in range(12):
        policy = Policy(consolidation="random", resident_seed=seed, budget_tokens=100)
        sets = []
        for operator in ("op", "other"):
            play = Play(policy)
            play.record("a", "b", "c")
            for name in "abc":
                play.rule(name, 100)
            play.played("s1", operator, ["a"] if "a" not in play.state.residents else [])
            sets.append(tuple(play.state.residents))
        assert sets[0] == sets[1]
        assert len(sets[0]) == 1
        drawn.add(sets[0])
    assert drawn == {("a",), ("b",), ("c",)}


def test_the_table_shows_every_candidate_with_its_decision() -> None:
    """Trigger, subject, and the lines of the ranked table stand in the event; admissions carry rank and priority."""
    play = lifted(EASY, "a", "b")
    play.rule("b", 100)
    batch = play.rule("a", 50)
    _, table, admitted = batch
    assert isinstance(table, ev.Consolidated)
    assert (table.trigger, table.subject, table.used) == ("rule", "a", 150)
    assert [(r.experience, r.tokens, r.resident) for r in table.ranked] == [("a", 50, True), ("b", 100, True)]
    assert isinstance(admitted, ev.RuleAdmitted)
    assert (admitted.experience, admitted.rank, admitted.tokens) == ("a", 1, 50)
    assert admitted.priority == table.ranked[0].priority == pytest.approx(0.25 / 50)
