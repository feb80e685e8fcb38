"""Every refusal of the domain: by class, with its facts, and with nothing decided."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import errors
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.policy import Policy, preset
from tests.ledger.histories import Play

EASY = Policy(min_adoptions=1, min_operators=1)


def given() -> Play:
    """Cold `cold`, `fast` (optimization alone) and `old` (retired), resident `hot`; task `t` with the open reported stage `s`."""
    play = Play(EASY)
    play.record("hot", "cold", "old")
    play.record("fast", stages=["optimization"])
    play.played("s0", "op", ["hot"])
    play.rule("hot", 10)
    play.retire("old")
    play.task("t", "op", budget=2)
    play.open("s", "t")
    return play


def judged() -> Play:
    """As above, and task `j` with the open judged correctness stage `js`, in which `c1` was wrong."""
    play = given()
    play.task("j", "gelu", budget=2)
    play.open("js", "j", "correctness", "judged")
    play.judge("js", "c1", "wrong")
    return play


def refuses(play: Play, command: Callable[[], object], error: type[errors.LedgerError], /, **facts: object) -> str:
    """The command raises exactly that, with those facts, and the library is as it was."""
    before = len(play.events), play.state.sequence
    with pytest.raises(errors.LedgerError) as caught:
        command()
    assert type(caught.value) is error
    assert {name: caught.value.facts.get(name) for name in facts} == facts
    assert (len(play.events), play.state.sequence) == before
    return caught.value.message


# --- experiences ---------------------------------------------------------------------------------------------------


def test_a_duplicate_experience() -> None:
    """An id is given once, also when its experience is retired."""
    play = given()
    refuses(play, lambda: play.record("cold"), errors.ExperienceExistsError, experience="cold")
    refuses(play, lambda: play.record("old"), errors.ExperienceExistsError, experience="old")


def test_an_experience_for_no_stage() -> None:
    """It could never be offered."""
    play = given()
    refuses(play, lambda: play.record("n", stages=[]), errors.InvalidInputError, experience="n")


@pytest.mark.parametrize("name", ["static-rag", "refinement"])
def test_a_library_that_is_closed_takes_experiences_until_its_first_task(name: str) -> None:
    """The fixed baselines are filled first and then left as they are."""
    play = Play(preset(name))
    play.record("a")
    play.task("t", "op")
    refuses(play, lambda: play.record("b"), errors.ExperiencesFixedError, experience="b")


def test_an_unknown_experience_is_told_close_names() -> None:
    """A misspelt id is told what it may have been; a strange one that it must be recorded."""
    play = given()
    message = refuses(play, lambda: play.rule("colt", 1), errors.UnknownExperienceError, experience="colt")
    assert message == "there is no experience 'colt'; close names: cold"
    assert "record it before" in refuses(play, lambda: play.rule("xyzw", 1), errors.UnknownExperienceError, close=())


def test_a_retired_experience_is_not_changed() -> None:
    """No rule, no amendment, no second retirement, no offer."""
    play = given()
    amended = ev.ExperienceAmended(experience="old", title="t", body="0" * 64, reason="r")
    for command in (
        lambda: play.rule("old", 1),
        lambda: play.retire("old"),
        lambda: play.retrieve("s", "old"),
        lambda: decide.amend_experience(play.state, amended),
    ):
        refuses(play, command, errors.ExperienceRetiredError, experience="old")


@pytest.mark.parametrize("tokens", [0, -1])
def test_a_rule_without_tokens(tokens: int) -> None:
    """Priority divides by them."""
    play = given()
    assert "'cold'" in refuses(play, lambda: play.rule("cold", tokens), errors.RuleInvalidError)


# --- tasks and stages ----------------------------------------------------------------------------------------------


def test_a_duplicate_task_or_stage() -> None:
    """Ids of tasks and stages are given once in a library."""
    play = given()
    refuses(play, lambda: play.task("t", "other"), errors.TaskExistsError, task="t")
    play.task("t2", "op")
    refuses(play, lambda: play.open("s", "t2"), errors.StageExistsError, stage="s")


def test_what_is_not_there() -> None:
    """Task, stage and candidate are each refused by their own name."""
    play = judged()
    nowhere = ev.StageStarted(stage="x", task="nowhere", kind="correctness", operator="op")
    refuses(play, lambda: decide.open_stage(play.state, nowhere), errors.UnknownTaskError, task="nowhere")
    for command in (
        lambda: play.retrieve("nowhere", "cold"),
        lambda: play.decide("nowhere", {"cold": True}),
        lambda: play.score("nowhere"),
        lambda: play.tell("nowhere", correct=True),
        lambda: play.propose("nowhere", "c"),
        lambda: decide.abandon_stage(play.state, "nowhere", "r"),
        lambda: decide.incur_cost(play.state, ev.CostIncurred(stage="nowhere", kind="model", seconds=1.0)),
    ):
        refuses(play, command, errors.UnknownStageError, stage="nowhere")
    refuses(
        play, lambda: decide.hand_in_report(play.state, "js", "c9", []), errors.UnknownCandidateError, candidate="c9"
    )
    refuses(play, lambda: play.propose("js", "c2", parent="c9"), errors.UnknownCandidateError, candidate="c9")


def test_one_stage_at_a_time_in_a_task() -> None:
    """A second stage, or the end of the task, waits for the open one."""
    play = given()
    refuses(play, lambda: play.open("s2", "t"), errors.StageOpenError, task="t", stage="s")
    refuses(
        play,
        lambda: decide.finish_task(play.state, "t", summary=""),
        errors.StageOpenError,
        task="t",
        stage="s",
    )


def test_a_finished_task_takes_nothing() -> None:
    """Neither a stage nor a second end."""
    play = given()
    play.take(decide.abandon_stage(play.state, "s", "cancelled"))
    play.take(decide.finish_task(play.state, "t", summary=""))
    refuses(play, lambda: play.open("s2", "t"), errors.TaskFinishedError, task="t")
    refuses(play, lambda: decide.finish_task(play.state, "t", summary=""), errors.TaskFinishedError, task="t")


@pytest.mark.parametrize("correct", [True, False, None])
def test_whether_a_task_is_solved_is_read_from_its_facts(correct: bool | None) -> None:
    """Nobody tells the ledger; without any outcome there is no solution."""
    play = given()
    if correct is not None:
        play.tell("s", correct=correct)
    play.take(decide.abandon_stage(play.state, "s", "cancelled"))
    (end,) = decide.finish_task(play.state, "t", summary="")
    assert isinstance(end, ev.TaskFinished)
    assert end.solved is (correct is True)


@pytest.mark.parametrize("end", ["scored", "abandoned"])
def test_a_closed_stage_takes_nothing(end: str) -> None:
    """Scored or abandoned, every later fact about it is refused; a cost that comes late is not."""
    play = given()
    if end == "scored":
        play.tell("s", correct=True)
        play.score("s")
    else:
        play.take(decide.abandon_stage(play.state, "s", "cancelled"))
    for command in (
        lambda: play.retrieve("s", "cold"),
        lambda: play.decide("s", {"hot": True}),
        lambda: play.score("s"),
        lambda: play.tell("s", correct=True),
        lambda: play.propose("s", "c"),
        lambda: decide.hand_in_report(play.state, "s", "c", []),
        lambda: decide.abandon_stage(play.state, "s", "r"),
        lambda: decide.add_to_stage(
            play.state, "s", ev.StageDiagnosed(stage="s", tool="t", hypothesis="h", evidence="e", next_step="n")
        ),
    ):
        refuses(play, command, errors.StageClosedError, stage="s", stage_status=end)
    play.take(decide.incur_cost(play.state, ev.CostIncurred(stage="s", kind="model", seconds=1.0)))


def test_optimization_waits_for_a_correct_candidate() -> None:
    """Nothing to improve on yet: neither a wrong candidate, nor one that was verified and not measured."""
    play = judged()
    play.judge("js", "c2", "correct", None)
    play.score("js")
    refuses(play, lambda: play.open("o", "j", "optimization", "judged"), errors.NoCorrectCandidateError, task="j")


def test_a_kind_is_scored_once_in_a_task() -> None:
    """Else a second optimization would be given the gain of the first again. One that was abandoned may be tried anew."""
    play = judged()
    play.judge("js", "c2", "correct", 1.0)
    play.take(decide.abandon_stage(play.state, "js", "crash"))
    play.open("js2", "j", "correctness", "judged")
    play.take(decide.abandon_stage(play.state, "js2", "crash"))
    play = judged()
    play.judge("js", "c2", "correct", 1.0)
    play.score("js")
    refuses(
        play,
        lambda: play.open("again", "j", "correctness", "judged"),
        errors.KindScoredError,
        task="j",
        kind="correctness",
        stage="js",
    )
    play.open("o", "j", "optimization", "judged")


def test_a_judged_stage_is_on_its_task_s_operator() -> None:
    """Another operator's name would be cross-operator evidence that nobody gave."""
    play = given()
    play.task("j", "gelu")
    other = ev.StageStarted(stage="x", task="j", kind="correctness", operator="softmax")
    message = refuses(play, lambda: decide.open_stage(play.state, other), errors.InvalidInputError, stage="x", task="j")
    assert "'softmax'" in message
    assert "'gelu'" in message


# --- offers and decisions ------------------------------------------------------------------------------------------


def test_a_resident_is_never_retrieved() -> None:
    """Its rule is presented already."""
    play = given()
    refuses(play, lambda: play.retrieve("s", "cold", "hot"), errors.ResidentRetrievedError, experience="hot", stage="s")


def test_an_experience_is_retrieved_for_its_kinds_alone() -> None:
    """Offered where it does not apply, its frequency could pass 1."""
    play = given()
    message = refuses(
        play, lambda: play.retrieve("s", "fast"), errors.NotApplicableError, experience="fast", kind="correctness"
    )
    assert "applies to optimization alone" in message


def test_only_what_was_offered_is_decided_on() -> None:
    """Neither retrieved nor presented: refused, and the good decisions beside it are not taken either."""
    play = given()
    play.retrieve("s", "cold")
    refuses(
        play,
        lambda: play.decide("s", {"cold": True, "fast": True}),
        errors.NotOfferedError,
        experience="fast",
        stage="s",
    )
    refuses(play, lambda: play.decide("s", {"ghost": True}), errors.UnknownExperienceError, experience="ghost")
    assert play.state.stages["s"].decisions == {}


def test_an_offer_of_another_stage_is_none_of_this_one() -> None:
    """Retrieved in `s`, decided on in the other open stage: refused there."""
    play = given()
    play.task("t2", "op")
    play.open("s2", "t2")
    play.retrieve("s", "cold")
    refuses(play, lambda: play.decide("s2", {"cold": True}), errors.NotOfferedError, experience="cold", stage="s2")


def test_a_rule_that_became_resident_later_was_not_presented() -> None:
    """R is what was resident when the stage began."""
    play = given()
    play.task("t2", "op")
    play.open("s2", "t2")
    play.retrieve("s2", "cold")
    play.decide("s2", {"cold": True})
    play.tell("s2", correct=True)
    play.score("s2")
    play.rule("cold", 10)
    assert "cold" in play.state.residents
    refuses(play, lambda: play.decide("s", {"cold": True}), errors.NotOfferedError, experience="cold")


@pytest.mark.parametrize("reason", ["", "  ", "\n\t"])
def test_a_decision_has_a_reason(reason: str) -> None:
    """Blank is none."""
    play = given()
    said = ev.AdoptionDecided(stage="s", experience="hot", adopted=True, reason=reason)
    message = refuses(
        play, lambda: decide.decide_adoptions(play.state, "s", [said]), errors.InvalidInputError, experience="hot"
    )
    assert "has no reason" in message


def test_a_decision_names_a_candidate_of_its_stage() -> None:
    """A candidate that the stage does not have can not show where the experience went."""
    play = judged()
    said = ev.AdoptionDecided(stage="s", experience="hot", adopted=True, reason="r", candidate="c1")
    refuses(
        play, lambda: decide.decide_adoptions(play.state, "s", [said]), errors.UnknownCandidateError, candidate="c1"
    )


def test_a_close_with_decisions_missing_names_them() -> None:
    """In the order of the offer, and without the one that was decided."""
    play = given()
    play.record("b", "a")
    play.retrieve("s", "cold", "b", "a")
    play.decide("s", {"b": False})
    play.tell("s", correct=True)
    message = refuses(play, lambda: play.score("s"), errors.DecisionsMissingError, stage="s", missing=("cold", "a"))
    assert "cold, a" in message


def test_a_presented_rule_that_was_not_used_needs_no_decision() -> None:
    """Only retrieved experiences ask for one."""
    play = given()
    play.tell("s", correct=True)
    assert play.score("s").offered == ()
