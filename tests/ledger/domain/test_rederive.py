"""Re-derivation by hand: the recorded policy event by event, another policy, and residency that differs."""

from __future__ import annotations

import msgspec
import pytest

from ledger.domain import events as ev
from ledger.domain.policy import Policy, preset
from ledger.domain.rederive import rederive
from ledger.domain.state import evolve, frequency, initial
from ledger.store.codec import Unknown
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)
NONE = Policy(min_adoptions=1, min_operators=1, consolidation="none")


def _at(play: Play, kind: type[ev.Event]) -> int:
    return next(i for i, e in enumerate(play.events) if isinstance(e, kind))


def two_stages() -> Play:
    """`a` adopted, `b` not, in a pass and a failure; `a` has a rule."""
    play = Play(EASY)
    play.record("a", "b")
    play.rule("a", 10)
    play.played("s1", "op", ["a"], ["b"])
    play.played("s2", "op", ["a"], ["b"], correct=False)
    return play


def test_the_recorded_policy_gives_the_recorded_outcome() -> None:
    """Every outcome is compared, none differs, and the derived state is the recorded one."""
    play = two_stages()
    found = rederive(play.events)
    # rule: table. s1: score, 2 values, frequency, table, admission. s2: score, 2 values, frequency, table.
    assert found.compared == 1 + 6 + 5
    assert found.first_difference is None
    assert found.state == play.state


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (ev.StageScored, {"score": 0.9}),
        (ev.StageScored, {"adopted": ("a", "b")}),
        (ev.ValueUpdated, {"new": 0.51}),
        (ev.ValueUpdated, {"alpha": 0.4}),
        (ev.FrequencyUpdated, {"changes": ()}),
        (ev.Consolidated, {"budget": 1}),
        (ev.RuleAdmitted, {"rank": 2}),
    ],
)
def test_a_tampered_outcome_names_its_sequence(kind: type[ev.Event], changes: dict[str, object]) -> None:
    """Recorded and derived stand side by side at the first place where they part."""
    play = two_stages()
    at = _at(play, kind)
    true = play.events[at]
    false = msgspec.structs.replace(true, **changes)
    found = rederive([*play.events[:at], false, *play.events[at + 1 :]]).first_difference
    assert found is not None
    assert (found.sequence, found.recorded, found.derived) == (at + 1, false, true)


def test_a_tampered_fact_shows_at_the_first_outcome_that_rested_on_it() -> None:
    """Turning `no` into `yes` changes who was adopted: the score event of that stage is the first to differ."""
    play = two_stages()
    at = next(i for i, e in enumerate(play.events) if isinstance(e, ev.AdoptionDecided) and not e.adopted)
    events = list(play.events)
    events[at] = msgspec.structs.replace(events[at], adopted=True)
    found = rederive(events).first_difference
    assert found is not None
    assert found.sequence == _at(play, ev.StageScored) + 1


def test_outcomes_that_are_missing_at_the_end_are_named_behind_it() -> None:
    """A log that ends within a batch lacks the next outcome at the sequence after its last."""
    play = two_stages()
    at = next(i for i, e in enumerate(play.events) if isinstance(e, ev.StageScored) and e.stage == "s2")
    found = rederive(play.events[: at + 1]).first_difference
    assert found is not None
    assert (found.sequence, found.recorded) == (at + 2, None)
    assert isinstance(found.derived, ev.ValueUpdated)


def test_a_stage_scored_twice_is_a_difference() -> None:
    """The second score follows from nothing."""
    play = Play(NONE)
    play.played("s1", "op")
    twice = [*play.events, play.events[-1]]
    found = rederive(twice).first_difference
    assert found is not None
    assert (found.sequence, found.derived) == (len(twice), None)


def test_a_score_of_a_stage_that_never_was_is_a_difference() -> None:
    """Inserted outcomes are named, not crashed on."""
    play = Play(NONE)
    ghost = ev.StageScored(stage="ghost", kind="correctness", operator="op", score=1.0, offered=(), adopted=())
    found = rederive([*play.events, ghost]).first_difference
    assert found is not None
    assert (found.sequence, found.recorded, found.derived) == (2, ghost, None)


def test_another_policy_recomputes_values_from_the_same_facts() -> None:
    """Value memory: `b`, not adopted, gets 1/2 of a pass, then 2/3 * 0.5 - 0.1/3 of a failure: 0.3, as `a` does."""
    found = rederive(two_stages().events, preset("value-memory"))
    assert found.first_difference is None
    assert {e.id: e.value for e in found.state.experiences.values()} == pytest.approx({"a": 0.3, "b": 0.3})
    assert found.state.policy == preset("value-memory")
    assert not found.state.residents


def test_under_another_policy_the_facts_are_not_guessed_anew() -> None:
    """What was offered, presented and adopted stays: counts of adoptions and operators are those recorded."""
    play = two_stages()
    for name in ("paper", "value-memory", "static-rag", "random-resident"):
        state = rederive(play.events, preset(name)).state
        for item in state.experiences.values():
            recorded = play.state.experiences[item.id]
            assert (item.adoptions, item.operators) == (recorded.adoptions, recorded.operators)
        assert {s.id: s.adopted for s in state.stages.values()} == {"s1": ("a",), "s2": ("a",)}


# --- residency that differs from the one that agents saw -------------------------------------------------------------


def seen_as_resident() -> Play:
    """`a` is resident after `s1`; `s2` uses it, `s3` does not and decides against it, `s4` is shown it without a word."""
    play = Play(EASY)
    play.record("a", "other")
    play.rule("a", 10)
    play.played("s1", "op", ["a"])
    assert "a" in play.state.residents
    play.played("s2", "op", ["a"])
    play.played("s3", "op", [], ["a"])
    play.played("s4", "op", ["other"])
    return play


def test_a_used_rule_counts_as_a_retrieval_where_it_is_cold() -> None:
    """Without residents: `s2` offered `a` (N = 2) and adopted it: V = 2/3 * 1/2 + 1/3 = 2/3. `s3`, `s4` offered nothing of it."""
    state = rederive(seen_as_resident().events, NONE).state
    item = state.experiences["a"]
    assert (item.n, item.adoptions, item.resident) == (2, 2, False)
    assert item.value == pytest.approx(2 / 3)
    # Offered in 2 of the 4 stages that were eligible.
    assert frequency(item, state.eligible(item.stages)) == 0.5


def seen_as_cold() -> Play:
    """Without residents `a` is retrieved in each stage: adopted, adopted, rejected."""
    play = Play(NONE)
    play.record("a", "other")
    play.rule("a", 10)
    play.played("s1", "op", ["a"])
    play.played("s2", "op", ["a"])
    play.played("s3", "op", ["other"], ["a"])
    return play


def test_a_retrieval_of_what_is_resident_counts_only_where_it_was_adopted() -> None:
    """With residents: `a` is hot from `s1` on. `s2` adopts it (N = 2, V = 2/3); the rejection in `s3` is no offer, f falls."""
    recorded = seen_as_cold()
    assert recorded.state.experiences["a"].n == 3
    state = rederive(recorded.events, EASY).state
    item = state.experiences["a"]
    assert item.resident
    assert (item.n, item.adoptions) == (2, 2)
    assert item.value == pytest.approx(2 / 3)
    # 1 at admission, used in s2: 1; unused in s3: 0.9.
    assert item.average == pytest.approx(0.9)


def test_the_share_of_an_adoption_does_not_depend_on_residency() -> None:
    """`s3` splits over the one adopted, hot or cold: `other` gets the whole score under both."""
    for policy in (EASY, NONE):
        state = rederive(seen_as_cold().events, policy).state
        assert state.experiences["other"].value == 0.5


# --- the fold ------------------------------------------------------------------------------------------------------


def test_an_event_of_another_version_moves_the_position_alone() -> None:
    """Unknown to the fold: the sequence grows, nothing else does."""
    state, other = initial(), initial()
    play = two_stages()
    for event in play.events:
        evolve(state, event)
        evolve(other, event)
    evolve(state, Unknown(name="x.happened", schema=1, payload=msgspec.Raw(b'{"experience":"a","new":1}')))
    assert state.sequence == other.sequence + 1
    state.sequence -= 1
    assert state == other


def test_the_state_as_of_a_sequence_is_the_fold_of_the_log_up_to_it() -> None:
    """After the first six events only the experiences, the rule and the task are there."""
    state = initial()
    for event in two_stages().events[:7]:
        evolve(state, event)
    assert state.sequence == 7
    assert set(state.experiences) == {"a", "b"}
    assert state.experiences["a"].tokens == 10
    assert list(state.stages) == ["s1"]
    assert state.scored == {"correctness": 0, "optimization": 0}


# --- reversals -----------------------------------------------------------------------------------------------------


def test_a_stage_that_was_open_at_a_reversal_is_credited_as_if_the_withdrawn_one_had_not_been() -> None:
    """`x` put `a` out; `s` then retrieved it and turned it down. Without `x` it was resident, so that was no offer.

    A later reversal, given back at once, finds nothing to move.
    """
    play = Play(Policy(min_adoptions=1, min_operators=1, beta=1.0))
    play.record("a", "other")
    play.played("s1", "op", ["a"])
    play.rule("a", 10)
    play.played("x", "op", ["other"])
    assert not play.state.residents
    play.task("t", "op")
    play.open("s", "t")
    play.retrieve("s", "a")
    play.reverse("stage:x")
    assert list(play.state.residents) == ["a"]
    play.decide("s", {"a": False})
    play.tell("s", correct=True)
    play.score("s")
    assert (play.value("a"), play.state.experiences["a"].n) == (0.5, 1)
    play.reverse("stage:s1")
    play.reverse("stage:s1", back=True)
    assert (play.value("a"), play.state.experiences["a"].n) == (0.5, 1)
    assert rederive(play.events).first_difference is None
