"""What the domain refuses of candidates, reports and withheld rules."""

from __future__ import annotations

from ledger import errors
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from tests.ledger.domain.test_decide import given, judged, refuses
from tests.ledger.histories import Play

# --- candidates and verdicts ---------------------------------------------------------------------------------------


def test_the_budget_of_rounds_is_shared_by_both_stages() -> None:
    """Two rounds: one in correctness, one in optimization, and no third."""
    play = given()
    play.task("j", "gelu", budget=2)
    play.open("js", "j", "correctness", "judged")
    play.judge("js", "c1", "correct", 1.0)
    play.score("js")
    play.open("jo", "j", "optimization", "judged")
    play.judge("jo", "c2", "correct", 0.5)
    assert [c.round for c in play.state.tasks["j"].candidates.values()] == [1, 2]
    refuses(play, lambda: play.propose("jo", "c3"), errors.BudgetSpentError, task="j", budget=2)


def test_a_duplicate_candidate() -> None:
    """Within a task; another task may use the id."""
    play = judged()
    refuses(play, lambda: play.propose("js", "c1"), errors.CandidateExistsError, candidate="c1")
    play.task("j2", "gelu")
    play.open("js2", "j2", "correctness", "judged")
    play.propose("js2", "c1")


def test_a_candidate_is_judged_once() -> None:
    """A second report would let the better of two draws count."""
    play = judged()
    message = refuses(play, lambda: decide.hand_in_report(play.state, "js", "c1", []), errors.ReportInvalidError)
    assert "'c1' has a report already" in message


def test_a_report_speaks_for_one_candidate() -> None:
    """The same report for another candidate, in another task, is refused though the source may be the same."""
    play = judged()
    play.task("j2", "gelu")
    play.open("js2", "j2", "correctness", "judged")
    play.propose("js2", "c7")
    fact = ev.CandidateCompiled(stage="js2", candidate="c7", ok=True, seconds=1.0, report="js/c1", judge="judge")
    refuses(
        play,
        lambda: decide.hand_in_report(play.state, "js2", "c7", [fact]),
        errors.ReportUsedError,
        report="js/c1",
        candidate="c1",
    )


def test_a_judged_stage_takes_nobody_s_word() -> None:
    """An outcome by hand counts only where the stage was opened for one."""
    play = judged()
    message = refuses(play, lambda: play.tell("js", correct=True), errors.EvidenceMissingError, stage="js")
    assert "opened to be judged" in message


# --- withheld rules ------------------------------------------------------------------------------------------------


def test_one_resident_is_withheld_from_the_recorded_share_of_stages() -> None:
    """At a rate of 0.5 about half of 200 judged stages lose one rule, each at times; the same seed withholds the same."""

    def withheld() -> list[str | None]:
        play = Play(Policy(min_adoptions=1, min_operators=1, holdout_rate=0.5, holdout_seed=7))
        play.record("a", "b")
        play.played("s0", "op", ["a", "b"])
        play.rule("a", 10)
        play.rule("b", 10)
        found = []
        for i in range(200):
            play.task(f"t{i}", "op")
            play.open(f"x{i}", f"t{i}", "correctness", "judged")
            stage = play.state.stages[f"x{i}"]
            assert set(stage.rules) == {"a", "b"} - {stage.withheld}
            found.append(stage.withheld)
        return found

    found = withheld()
    assert 80 <= sum(name is not None for name in found) <= 120
    assert set(found) == {None, "a", "b"}
    assert found == withheld()


def test_a_withheld_rule_can_not_be_adopted() -> None:
    """The agent never saw it."""
    play = Play(Policy(min_adoptions=1, min_operators=1, holdout_rate=0.999))
    play.record("a")
    play.played("s0", "op", ["a"])
    play.rule("a", 10)
    play.task("t", "op")
    play.open("s", "t", "correctness", "judged")
    assert play.state.stages["s"].withheld == "a"
    assert play.state.stages["s"].rules == ()
    refuses(play, lambda: play.decide("s", {"a": True}), errors.NotOfferedError, experience="a")
