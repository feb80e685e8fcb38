"""Conflicts, supersession, conditions and staleness."""

from __future__ import annotations

import msgspec
import pytest

from ledger import errors
from ledger.domain import applicability, decide, govern
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.rederive import rederive
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)


def conflict(play: Play, first: str, second: str, name: str = "c1") -> None:
    new = ev.ConflictRecorded(conflict=name, first=first, second=second, reason="opposite flags")
    play.take(govern.record_conflict(play.state, new))
    play.take(govern.reconsolidate(play.state, "conflict", name))


def resolve(play: Play, loser: str | None, name: str = "c1") -> None:
    play.take(govern.resolve_conflict(play.state, ev.ConflictResolved(conflict=name, loser=loser, reason="measured")))
    play.take(govern.reconsolidate(play.state, "conflict", name))


@pytest.fixture
def two() -> Play:
    """`a` (value 0.5) and `b` (value 0.25), both resident on 100 tokens."""
    play = Play(EASY)
    play.record("a", "b")
    play.played("s1", "softmax", adopted=["a"])
    play.played("s2", "gelu", adopted=["b"], best=0.5)
    play.rule("a", 100)
    play.rule("b", 100)
    assert set(play.state.residents) == {"a", "b"}
    return play


def test_rules_that_contradict_are_never_resident_together(two: Play) -> None:
    """The one of higher priority stays; the table names what kept the other out."""
    conflict(two, "a", "b")
    assert list(two.state.residents) == ["a"]
    table = next(e for e in reversed(two.events) if isinstance(e, ev.Consolidated))
    assert [(r.experience, r.resident, r.against) for r in table.ranked] == [("a", True, None), ("b", False, "a")]
    evicted = next(e for e in reversed(two.events) if isinstance(e, ev.RuleEvicted))
    assert "contradicts a" in evicted.reason
    assert rederive(two.events).first_difference is None


def test_the_loser_of_a_settled_conflict_stays_out_even_above_the_winner(two: Play) -> None:
    """`a` ranks higher and loses: `b` is the resident."""
    conflict(two, "a", "b")
    resolve(two, "a")
    assert list(two.state.residents) == ["b"]
    assert rederive(two.events).first_difference is None


def test_a_conflict_without_a_loser_was_none(two: Play) -> None:
    """Both come back."""
    conflict(two, "a", "b")
    resolve(two, None)
    assert set(two.state.residents) == {"a", "b"}


def test_when_the_winner_retires_the_loser_may_come_back(two: Play) -> None:
    """Nothing contradicts it any more."""
    conflict(two, "a", "b")
    resolve(two, "a")
    two.retire("b")
    assert list(two.state.residents) == ["a"]


def test_a_conflict_is_recorded_once_and_settled_once(two: Play) -> None:
    """Twice, with itself, over an unknown loser, unknown by name: each is refused as what it is."""
    state = two.state
    with pytest.raises(errors.InvalidInputError):
        govern.record_conflict(state, ev.ConflictRecorded(conflict="x", first="a", second="a", reason="r"))
    conflict(two, "a", "b")
    with pytest.raises(errors.ConflictExistsError):
        govern.record_conflict(state, ev.ConflictRecorded(conflict="x", first="b", second="a", reason="r"))
    with pytest.raises(errors.UnknownConflictError):
        govern.resolve_conflict(state, ev.ConflictResolved(conflict="nope", loser=None, reason="r"))
    with pytest.raises(errors.InvalidInputError):
        govern.resolve_conflict(state, ev.ConflictResolved(conflict="c1", loser="z", reason="r"))
    resolve(two, "b")
    with pytest.raises(errors.ConflictSettledError):
        govern.resolve_conflict(state, ev.ConflictResolved(conflict="c1", loser="b", reason="r"))


def test_a_superseded_experience_is_offered_no_more_and_leaves_the_residents(two: Play) -> None:
    """Its value and history stay, its frequency stands still, and it says what took its place."""
    two.take(govern.supersede_experience(two.state, "a", "b", "covers tails too"))
    a = two.state.experiences["a"]
    assert (a.resident, a.retired, a.superseded_by, a.value) == (False, True, "b", 0.5)
    two.task("t", "matmul")
    two.open("s", "t")
    with pytest.raises(errors.ExperienceRetiredError):
        two.retrieve("s", "a")
    assert rederive(two.events).first_difference is None


def stage_under(play: Play, stage: str, chip: str, toolkit: str) -> None:
    task = ev.TaskStarted(
        task=f"t-{stage}", operator=stage, level=1, model="m", budget=9, environment={"chip": chip, "toolkit": toolkit}
    )
    play.take(decide.start_task(play.state, task))
    play.open(stage, task.task)


def test_an_experience_is_questioned_where_its_evidence_never_reached_and_cleared_by_an_adopted_success() -> None:
    """Success under 910B/8.3 covers 910B/8.3; under 8.5 it must be shown again, and a failure does not show it."""
    play = Play()
    play.record("a")
    old, new = ("910B", "8.3"), ("910B", "8.5")
    a = play.state.experiences["a"]

    def run(stage: str, where: tuple[str, str], *, correct: bool) -> None:
        stage_under(play, stage, *where)
        play.retrieve(stage, "a")
        play.decide(stage, {"a": True})
        play.tell(stage, correct=correct)
        play.score(stage)

    run("s1", old, correct=True)
    assert a.environments == {old}
    assert not a.questioned
    run("s2", new, correct=False)
    assert a.needs_revalidation(new)
    assert not a.needs_revalidation(old)
    run("s3", new, correct=True)
    assert not a.needs_revalidation(new)
    marks = [e for e in play.events if isinstance(e, ev.RevalidationRequired | ev.Revalidated)]
    assert [type(e).__name__ for e in marks] == ["RevalidationRequired", "Revalidated"]
    assert rederive(play.events).first_difference is None


def task(**fields: object) -> ev.TaskStarted:
    return msgspec.convert(
        {"task": "t", "operator": "o", "level": 1, "model": "m", "budget": 1, **fields}, ev.TaskStarted
    )


CHIP = {"environment": {"chip": "910B", "toolkit": "8.5.1"}}


@pytest.mark.parametrize(
    ("conditions", "facts", "holds"),
    [
        (ev.Conditions(), {}, True),
        (ev.Conditions(families=("reduction",)), {"family": "reduction"}, True),
        (ev.Conditions(families=("reduction",)), {"family": "matmul"}, False),
        (ev.Conditions(families=("reduction",)), {}, True),
        (ev.Conditions(dtypes=("float16",)), {"dtype": "float32"}, False),
        (ev.Conditions(languages=("cpp",)), {"language": "triton"}, False),
        (ev.Conditions(chips=("910B",)), CHIP, True),
        (ev.Conditions(chips=("310P",)), CHIP, False),
        (ev.Conditions(toolkit=">=8.3,<9"), CHIP, True),
        (ev.Conditions(toolkit="<8.5"), CHIP, False),
        (ev.Conditions(toolkit=">=8.5"), {"environment": {"toolkit": "8.5.RC1"}}, False),
        (ev.Conditions(toolkit=">=8.3"), {"environment": {"toolkit": "weekly build"}}, False),
        (ev.Conditions(toolkit=">=12"), {"environment": {"toolkit": "CUDA 12.8"}}, True),
        (ev.Conditions(toolkit=">=8.0.RC3"), {"environment": {"toolkit": "8.0.RC3.alpha001"}}, False),
        (ev.Conditions(toolkit=">=8.0.RC2"), {"environment": {"toolkit": "8.0.RC3.alpha001"}}, True),
        (ev.Conditions(families=("Reduction",)), {"family": "reduction"}, True),
        (ev.Conditions(chips=("910b ",)), CHIP, True),
        (ev.Conditions(dtypes=("FP16",)), {"dtype": "float16"}, True),
        (ev.Conditions(languages=("AscendC",)), {"language": "ascendc"}, True),
        (ev.Conditions(shapes=(ev.ShapeRange(size="last_axis", least=1024),)), {"shapes": {"last_axis": 1024}}, True),
        (ev.Conditions(shapes=(ev.ShapeRange(size="last_axis", least=1024),)), {"shapes": {"last_axis": 1023}}, False),
        (ev.Conditions(shapes=(ev.ShapeRange(size="last_axis", most=64),)), {"shapes": {"rows": 9999}}, True),
    ],
)
def test_conditions_hold_by_what_a_task_says_of_itself(
    conditions: ev.Conditions, facts: dict[str, object], *, holds: bool
) -> None:
    """What a task does not say excludes nothing; a version that can not be ordered is in no range."""
    play = Play()
    play.take(decide.start_task(play.state, task(**facts)))
    assert applicability.holds(conditions, play.state.tasks["t"]) is holds


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        (ev.Conditions(toolkit="8.3 or so"), "toolkit"),
        (ev.Conditions(shapes=(ev.ShapeRange(size="rows", least=9, most=3),)), "rows"),
        (ev.Conditions(shapes=(ev.ShapeRange(size="rows"),)), "rows"),
        (ev.Conditions(chips=("910B", " ")), "chips"),
        (ev.Conditions(toolkit=">=9,<8"), "no version is in '>=9,<8'"),
        (ev.Conditions(toolkit=">8,<8"), "no version"),
        (ev.Conditions(toolkit="==8.*,>=9"), "no version"),
        (ev.Conditions(dtypes=("flaot32",)), "did you mean 'float32'"),
        (ev.Conditions(shapes=(ev.ShapeRange(size=" ", least=1),)), "shapes"),
        (ev.Conditions(shapes=(ev.ShapeRange(size="rows", least=-1),)), "never below 0"),
        (
            ev.Conditions(shapes=(ev.ShapeRange(size="rows", least=9), ev.ShapeRange(size="rows", most=3))),
            "least 9 is above most 3",
        ),
    ],
)
def test_a_condition_that_can_not_hold_is_refused_by_name(conditions: ev.Conditions, named: str) -> None:
    """Unreadable ranges, bounds the wrong way round, bounds of nothing, empty names."""
    with pytest.raises(errors.ConditionInvalidError, match=named):
        applicability.check(conditions)


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"dtype": "float17"}, "did you mean 'float16'"),
        ({"shapes": {"rows": -1}}, "never below 0"),
        ({"shapes": {" ": 4}}, "has no name"),
    ],
)
def test_a_task_that_no_condition_can_be_held_to_is_refused_by_name(told: dict[str, object], named: str) -> None:
    """Unknown element types and sizes below 0; an alias and an empty axis are taken."""
    play = Play()
    fields = {"task": "t", "operator": "gelu", "level": 1, "model": "m", "budget": 9}
    with pytest.raises(errors.ConditionInvalidError, match=named):
        decide.start_task(play.state, msgspec.convert({**fields, **told}, ev.TaskStarted))
    taken = msgspec.convert({**fields, "dtype": "bf16", "shapes": {"rows": 0}}, ev.TaskStarted)
    assert decide.start_task(play.state, taken) == [taken]


@pytest.mark.parametrize(
    "toolkit",
    ["", ">=8.3,<9", ">8,<8.0.1", "==8.*", "~=8.3", "!=8.3", "<9", "==8.5.RC1", ">=8.3,!=8.3,<8.4", "===weekly"],
)
def test_a_range_that_some_version_is_in_is_taken(toolkit: str) -> None:
    """Bounds that touch, wildcards and exclusions hold for something."""
    applicability.check(ev.Conditions(toolkit=toolkit))


@pytest.mark.parametrize(
    ("known", "where", "covered"),
    [
        (("910B", "9.0"), ("", "9.0"), True),
        (("910B", "9.0"), ("910B", ""), True),
        (("910B", "9.0"), ("", "8.5"), False),
        (("", "9.0"), ("910B", "9.0"), True),
        (("910B", ""), ("310P", ""), False),
        (("910b", "9.0"), ("910B", "9.0"), True),
    ],
)
def test_evidence_is_compared_by_what_both_sides_name(
    known: tuple[str, str], where: tuple[str, str], *, covered: bool
) -> None:
    """A task that names only its toolkit is covered by evidence under that toolkit on any chip, and marks nothing."""
    play = Play()
    play.record("a")
    stage_under(play, "s1", *known)
    play.retrieve("s1", "a")
    play.decide("s1", {"a": True})
    play.tell("s1", correct=True)
    play.score("s1")
    a = play.state.experiences["a"]
    assert a.is_stale(where) is not covered
    stage_under(play, "s2", *where)
    play.retrieve("s2", "a")
    assert a.needs_revalidation(where) is not covered
    assert any(isinstance(e, ev.RevalidationRequired) for e in play.events) is not covered
    assert rederive(play.events).first_difference is None
