"""How one operator is developed, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.errors import (
    BugError,
    ModelError,
    ModelSetupError,
    ModelUnavailableError,
    ModelUnreachableError,
    TaskTakenError,
)
from agent.models.scripted import ScriptedModel
from agent.port import Context, Decision, Proposal, Verdict
from ledger import wire
from ledger.client import LedgerClient
from tests.agent.conftest import LIBRARY, MakeLoop
from tests.agent.stand_in import StandIn, answer


def experience(name: str, body: str = "gelu over rows") -> wire.NewExperience:
    return wire.NewExperience(experience=name, title=f"about {name}", body=body)


def types(client: LedgerClient) -> list[str]:
    return [event.type for event in client.events(LIBRARY)]


def stages(client: LedgerClient, task: str = "run.gelu") -> dict[str, wire.Stage]:
    return {stage.kind: stage for stage in client.task(LIBRARY, task).stages}


def test_a_repaired_kernel_is_optimized_and_both_stages_are_scored(client: LedgerClient, make_loop: MakeLoop) -> None:
    """Two failures, a correct draft at 0.8 ms, then 0.4 ms: correctness scores 1, optimization (0.8 - 0.4) / 0.8 = 0.5."""
    script = ["compile_error", "wrong", "correct 0.8", "correct 0.4", None]
    result = make_loop(ScriptedModel(answer(source) for source in script)).develop("gelu")
    assert (result.solved, result.rounds, result.first_ms, result.best_ms) == (True, 4, 0.8, 0.4)
    assert result.speedup == pytest.approx(2.5)
    assert result.acceleration == pytest.approx(2.0)
    found = stages(client)
    assert found["correctness"].score == 1.0
    assert found["optimization"].score == pytest.approx(0.5)
    assert client.task(LIBRARY, "run.gelu").finished


def test_every_outcome_is_recorded_as_what_it_is(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A hang is a hang and a crash a crash; each takes a round, and the next round follows."""
    script = ["compile_error", "hang", "crash", "refused", "resource", "wrong", "correct 0.5"]
    make_loop(ScriptedModel(answer(source) for source in script)).develop("gelu")
    outcomes = [candidate.outcome for candidate in client.task(LIBRARY, "run.gelu").candidates]
    assert outcomes == ["compile_error", "hang", "crash", "refused", "resource", "wrong", "correct"]


def test_the_two_stages_share_one_budget(client: LedgerClient, make_loop: MakeLoop) -> None:
    """Of five rounds the correctness stage uses three, so two are left for optimization."""
    script = ["wrong", "wrong 2", "correct 0.9", "correct 0.8", "correct 0.7", "correct 0.1"]
    result = make_loop(ScriptedModel(answer(source) for source in script), budget=5).develop("gelu")
    task = client.task(LIBRARY, "run.gelu")
    kinds = {stage.stage: stage.kind for stage in task.stages}
    assert [kinds[candidate.stage] for candidate in task.candidates] == ["correctness"] * 3 + ["optimization"] * 2
    assert result.best_ms == 0.7


def test_no_optimization_stage_opens_without_a_correct_candidate(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A budget that ends in failures scores the correctness stage with the failure score and ends the task unsolved."""
    result = make_loop(ScriptedModel(answer(f"wrong {n}") for n in range(9)), budget=3).develop("gelu")
    assert not result.solved
    assert {kind: stage.score for kind, stage in stages(client).items()} == {"correctness": -0.1}
    assert client.task(LIBRARY, "run.gelu").finished


def test_no_optimization_stage_opens_when_the_last_round_made_it_correct(
    client: LedgerClient, make_loop: MakeLoop
) -> None:
    """With no round left there is nothing to score as an optimization."""
    make_loop(ScriptedModel([answer("wrong"), answer("correct 0.5")]), budget=2).develop("gelu")
    assert set(stages(client)) == {"correctness"}


def test_the_candidate_is_in_the_ledger_before_it_is_judged(client: LedgerClient, make_loop: MakeLoop) -> None:
    """When the judge is called, the ledger already holds the source that it is called with."""
    held: list[str] = []

    def before(source: str) -> None:
        candidate = client.task(LIBRARY, "run.gelu").candidates[-1]
        if candidate.outcome is not None:
            assert source == held[0]  # the failed version once more, before its repair is believed
            return
        held.append(client.blob(LIBRARY, candidate.source).decode())
        assert held[-1] == source

    make_loop(ScriptedModel([answer("wrong"), answer("correct 0.5")]), StandIn(before)).develop("gelu")
    assert held == ["wrong", "correct 0.5"]


def test_every_offer_is_decided_before_scoring(client: LedgerClient, make_loop: MakeLoop) -> None:
    """What the model adopted is adopted with its candidate; the rest says honestly what did not happen."""
    for name in ("one", "two"):
        client.record_experience(LIBRARY, experience(name))
    make_loop(ScriptedModel([answer("correct 0.5", adopt=("one",))])).develop("gelu")
    stage = stages(client)["correctness"]
    assert stage.decided == {"one": True, "two": False}
    assert stage.undecided == []
    decisions = [
        e.payload for e in client.events(LIBRARY) if e.type == "stage.adoption_decided" and e.stage == stage.stage
    ]
    by_name = {item["experience"]: item for item in decisions}
    assert by_name["one"]["candidate"] == "run.gelu.r01"
    assert by_name["two"]["reason"].startswith("not adopted: scripted made no change after it; one round was judged")


def test_a_decision_on_something_never_offered_is_left_out(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A model that names an experience out of thin air does not stop the stage, and nothing is recorded of it."""
    result = make_loop(ScriptedModel([answer("correct 0.5", adopt=("invented",))])).develop("gelu")
    assert result.solved
    assert "stage.adoption_decided" not in types(client)


def test_closing_decisions_of_the_model_come_before_the_loops_own(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A model that can say why it left an offer is asked at the end of the stage."""

    class Closing(ScriptedModel):
        def closing_decisions(self, context: Context) -> tuple[Decision, ...]:
            return tuple(Decision(offer.id, adopted=False, reason="my own reason") for offer in context.offers)

    client.record_experience(LIBRARY, experience("one"))
    make_loop(Closing([answer("correct 0.5")])).develop("gelu")
    reasons = {e.payload["reason"] for e in client.events(LIBRARY) if e.type == "stage.adoption_decided"}
    assert reasons == {"my own reason"}


def test_a_model_that_has_no_way_ends_its_task_and_not_the_run(client: LedgerClient, make_loop: MakeLoop) -> None:
    """It can neither propose nor say why it left an offer: the stage is abandoned with the reason, the offer decided."""

    class Lost(ScriptedModel):
        def propose(self, context: Context) -> Proposal:
            raise ModelError("no recipe for gelu")

        def closing_decisions(self, context: Context) -> tuple[Decision, ...]:
            raise ModelError("no recipe for gelu")

    client.record_experience(LIBRARY, experience("one"))
    result = make_loop(Lost()).develop("gelu")
    assert not result.solved
    found = client.task(LIBRARY, "run.gelu")
    assert found.finished
    assert [(stage.status, stage.decided) for stage in found.stages] == [("abandoned", {"one": False})]
    abandoned = next(e.payload for e in client.events(LIBRARY) if e.type == "stage.abandoned")
    assert abandoned["reason"] == "no recipe for gelu"


def test_the_model_may_choose_what_memory_is_searched_for(client: LedgerClient, make_loop: MakeLoop) -> None:
    """The query in one answer is put in the next round; without one the loop builds it from the card and the outcome."""
    make_loop(ScriptedModel([answer("wrong", query="tail handling"), answer("correct 0.5")])).develop("gelu")
    queries = [e.payload["query"] for e in client.events(LIBRARY) if e.type == "stage.experiences_retrieved"]
    assert queries[0].startswith("correctness of gelu (elementwise), cpp")
    assert queries[1] == "tail handling"
    assert "make it faster" in queries[2]


def test_without_memory_nothing_is_retrieved_or_learnt(client: LedgerClient, make_loop: MakeLoop) -> None:
    """The stages are scored all the same; no search, no decision, no new experience."""
    client.record_experience(LIBRARY, experience("one"))
    make_loop(ScriptedModel([answer("wrong"), answer("correct 0.5")]), memory=False).develop("gelu")
    found = types(client)
    assert "stage.scored" in found
    assert "stage.experiences_retrieved" not in found
    assert found.count("experience.recorded") == 1


def test_a_repair_is_recorded_once_with_both_sources(client: LedgerClient, make_loop: MakeLoop) -> None:
    """The same repair in the same family is the same experience; its Change line names the choice."""
    script = [answer("wrong", change="draft"), answer("correct 0.5", change="tail = masked")]
    loop = make_loop(ScriptedModel(script))
    loop.develop("gelu")
    loop.develop("add")
    recorded = client.experiences(LIBRARY)
    assert len(recorded) == 1
    (repair,) = recorded
    assert repair.experience.startswith("repair-wrong-tail-masked-")
    assert repair.source.kind == "repair"
    assert [client.blob(LIBRARY, text).decode() for text in repair.source.texts] == ["wrong", "correct 0.5"]
    assert "Change: tail = masked" in (repair.body or "")
    assert repair.conditions.families == ("elementwise",)


def test_what_each_step_cost_is_recorded(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A round costs a model call, 0.5 s of compiling and, where it ran, 0.25 s of the device."""
    make_loop(ScriptedModel([answer("compile_error"), answer("correct 0.5")])).develop("gelu")
    costs = [
        (e.payload["kind"], e.payload["seconds"]) for e in client.events(LIBRARY) if e.type == "stage.cost_incurred"
    ]
    assert costs.count(("compile", 0.5)) == 2
    assert costs.count(("device", 0.25)) == 1
    assert [kind for kind, _ in costs].count("model") == 3  # two candidates, then "nothing more"


def test_a_kernel_that_was_withdrawn_counts_as_refused(client: LedgerClient, make_loop: MakeLoop) -> None:
    """In a second task the same kernel passes the judge again; the loop goes on to another, and after a cut as well."""
    make_loop(ScriptedModel([answer("correct 0.5")])).develop("gelu")
    withdrawn = client.task(LIBRARY, "run.gelu").candidates[0]
    client.invalidate(LIBRARY, f"candidate:{withdrawn.source}", "it replays an answer")
    assert client.task(LIBRARY, "run.gelu").candidates[0].withdrawn
    loop = make_loop(ScriptedModel([answer("correct 0.5"), answer("correct 0.8")]), run="later", seed=5)
    result = loop.develop("gelu")
    assert (result.solved, result.rounds, result.first_ms) == (True, 2, 0.8)
    attempts = loop.journal.attempts(client.task(LIBRARY, "later.gelu"))
    assert [(item.outcome, item.latency_ms) for item in attempts] == [("refused", None), ("correct", 0.8)]


def test_a_finished_task_is_not_repeated(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A second run of the same name reads the result from the ledger and appends nothing."""
    loop = make_loop(ScriptedModel([answer("correct 0.5"), answer("correct 0.25")]))
    first = loop.develop("gelu")
    head = client.library(LIBRARY).sequence
    second = loop.develop("gelu")
    assert client.library(LIBRARY).sequence == head
    assert second.continued
    assert (second.first_ms, second.best_ms, second.rounds) == (first.first_ms, first.best_ms, first.rounds)


def test_another_model_can_not_continue_a_task(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A task that was begun with one model is refused to another, with the way out."""

    def broken(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_loop(ScriptedModel([answer("wrong")]), StandIn(broken)).develop("gelu")
    with pytest.raises(TaskTakenError, match="--run"):
        make_loop(ScriptedModel([answer("wrong")], name="other")).develop("gelu")


def test_the_judges_inputs_differ_by_round_and_repeat_by_seed(make_loop: MakeLoop, client: LedgerClient) -> None:
    """Each round is judged on other inputs; the same seed, operator and round give the same ones."""
    bench = StandIn()
    make_loop(ScriptedModel([answer("wrong"), answer("correct 0.5")]), bench).develop("gelu")
    again = StandIn()
    client.create_library("other")
    loop = make_loop(ScriptedModel([answer("wrong"), answer("correct 0.5")]), again)
    loop.journal.library = loop.lessons.journal.library = "other"
    loop.develop("gelu")
    assert bench.seeds == again.seeds
    assert len(set(bench.seeds)) == 2


def test_a_stage_that_was_told_wrong_things_is_our_bug(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A refusal that the loop promises never to provoke is not taken for the model's fault."""
    loop = make_loop(ScriptedModel([answer("correct 0.5")]))
    loop.journal.library = "nowhere"
    with pytest.raises(BugError, match="nowhere"):
        loop.develop("gelu")


class Unreliable(ScriptedModel):
    """Raises the given errors first, then answers."""

    def __init__(self, errors: list[Exception], answers: list[Proposal]) -> None:
        super().__init__(answers)
        self.errors = errors
        self.asked: list[str] = []

    def propose(self, context: Context) -> Proposal:
        self.asked.append(context.advice)
        if self.errors:
            raise self.errors.pop(0)
        return super().propose(context)


def test_no_round_is_lost_to_a_transport_error(client: LedgerClient, make_loop: MakeLoop) -> None:
    """Two failed calls, then an answer: one round used, and both failures on record with their cost."""
    errors: list[Exception] = [ModelUnreachableError("no connection") for _ in range(2)]
    result = make_loop(Unreliable(errors, [answer("correct 0.5")])).develop("gelu")
    assert (result.solved, result.rounds) == (True, 1)
    failed = [e.payload for e in client.events(LIBRARY) if e.type == "stage.diagnosed" and e.payload["tool"] == "model"]
    assert [item["hypothesis"] for item in failed] == ["ModelUnreachableError"] * 2


def test_an_endpoint_that_stays_away_leaves_the_stage_open(client: LedgerClient, make_loop: MakeLoop) -> None:
    """When the retries are spent the run ends, and the task goes on where it was when the endpoint is back."""
    errors: list[Exception] = [ModelUnreachableError("no connection") for _ in range(4)]
    model = Unreliable(errors, [answer("correct 0.5")])
    with pytest.raises(ModelUnavailableError, match="continues"):
        make_loop(model, model_retries=3).develop("gelu")
    assert stages(client)["correctness"].status == "open"
    assert make_loop(model).develop("gelu").solved


def test_a_wrong_key_ends_the_run_at_once(client: LedgerClient, make_loop: MakeLoop) -> None:
    """What only a person can clear is not tried again."""
    model = Unreliable([ModelSetupError("401")], [])
    with pytest.raises(ModelSetupError):
        make_loop(model).develop("gelu")
    assert model.asked == [""]


def test_a_repeated_source_is_sent_back_with_advice(client: LedgerClient, make_loop: MakeLoop) -> None:
    """The model is told once that this source was judged; what it answers then is taken."""
    model = Unreliable([], [answer("wrong"), answer("wrong"), answer("correct 0.5")])
    result = make_loop(model).develop("gelu")
    assert [bool(advice) for advice in model.asked][:3] == [False, False, True]
    assert "judged already" in model.asked[2]
    assert result.rounds == 3


def test_a_time_allowance_ends_optimization_and_never_correctness(client: LedgerClient, make_loop: MakeLoop) -> None:
    """With an allowance of no time at all the operator is still made correct, and optimized no further."""
    script = [answer("wrong"), answer("correct 0.5"), answer("correct 0.1")]
    result = make_loop(ScriptedModel(script), seconds=0.0).develop("gelu")
    assert (result.solved, result.rounds) == (True, 2)
    assert set(stages(client)) == {"correctness"}


class Lucky(StandIn):
    """Judges a `wrong` source wrong once, and correct on other inputs."""

    def judge(self, source: str, operator: str, *, seed: int) -> Verdict:
        again = source in self.judged
        verdict = super().judge(source, operator, seed=seed)
        return replace(verdict, outcome="correct") if again else verdict


def test_a_failure_that_was_bad_luck_with_its_inputs_teaches_no_repair(
    client: LedgerClient, make_loop: MakeLoop
) -> None:
    """The failed version passes on the inputs of the version after it, so the change between them repaired nothing."""
    script = ["wrong", "correct 0.5", None]
    make_loop(ScriptedModel(answer(source) for source in script), Lucky()).develop("gelu")
    assert not [e for e in client.experiences(LIBRARY) if e.source.kind == "repair"]
    make_loop(ScriptedModel(answer(source) for source in script), StandIn()).develop("add")
    assert [e for e in client.experiences(LIBRARY) if e.source.kind == "repair"]


def test_a_clock_that_ran_out_is_no_evidence_and_the_next_run_goes_on(
    client: LedgerClient, make_loop: MakeLoop
) -> None:
    """Without time there is no optimization and the task stays open; with time the same task is continued and scored."""
    first = make_loop(ScriptedModel([answer("correct 0.8")]), seconds=0.0).develop("gelu")
    assert (first.solved, first.rounds) == (True, 1)
    task = client.task(LIBRARY, "run.gelu")
    assert not task.finished
    assert [(s.kind, s.score) for s in task.stages if s.status == "scored"] == [("correctness", 1.0)]
    script = [answer("correct 0.8"), answer("correct 0.4"), answer(None)]
    second = make_loop(ScriptedModel(script)).develop("gelu")
    assert (second.rounds, second.best_ms) == (2, 0.4)
    task = client.task(LIBRARY, "run.gelu")
    assert task.finished
    assert [s.kind for s in task.stages if s.status == "scored"] == ["correctness", "optimization"]
