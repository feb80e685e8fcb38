"""Rules for experiences that passed the gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.calls import Calls
from agent.config import LoopSettings
from agent.distill import Distiller
from agent.journal import Journal
from agent.models.scripted import ScriptedModel
from agent.port import RuleDraft, Usage
from agent.progress import Silent
from agent.retry import Backoff, Retries
from agent.tokens import ByteTokens
from ledger import wire
from ledger.bootstrap import client_of, configure_logging, memory_ledger
from ledger.client import LedgerClient
from ledger.settings import Settings
from tests.agent.stand_in import StandIn

LIBRARY = "rules"


@pytest.fixture
def ready() -> Iterator[LedgerClient]:
    """A library with one experience that passed a gate of one adoption on one operator, and a closed stage."""
    configure_logging(Settings())
    with client_of(memory_ledger(), actor="tester") as client:
        client.create_library(LIBRARY, policy={"min_adoptions": 1, "min_operators": 1})
        client.record_experience(
            LIBRARY, wire.NewExperience(experience="tails", title="Mask the tail", body="gelu tail")
        )
        client.start_task(LIBRARY, wire.NewTask(task="t", operator="gelu", model="m"))
        client.open_stage(LIBRARY, "t", wire.NewStage(stage="s", kind="correctness"))
        client.retrieve(LIBRARY, "s", "gelu tail")
        new = wire.NewCandidate(candidate="c", source="correct 0.5", language="cpp", change="x", hypothesis="h")
        client.propose_candidate(LIBRARY, "s", new)
        client.decide(LIBRARY, "s", [wire.Decision(experience="tails", adopted=True, reason="r", candidate="c")])
        verdict = StandIn().judge("correct 0.5", "gelu", seed=0)
        report = wire.Report(report=verdict.report, signature=verdict.signature, judge_key=verdict.judge_key)
        client.report(LIBRARY, "s", "c", report)
        client.score_stage(LIBRARY, "s")
        yield client


def distill(client: LedgerClient, model: ScriptedModel, *, limit: int = 20, retries: int = 1) -> int:
    settings = LoopSettings(library=LIBRARY, run="r", rule_tokens=limit)
    distiller = Distiller(Journal(client, LIBRARY), ByteTokens(), settings, Silent())
    return distiller.run(Calls(model, Retries(retries), Backoff(first=0.0), sleep=lambda _: None), "s")


def test_a_rule_is_counted_by_a_named_tokenizer_and_becomes_resident(ready: LedgerClient) -> None:
    """`Mask the tail.` has 14 bytes: 4 tokens by the byte count, whose name is recorded beside the number."""
    assert distill(ready, ScriptedModel(rules={"Mask the tail": " Mask the tail.\n"})) == 1
    found = ready.experience(LIBRARY, "tails")
    assert (found.rule, found.tokens, found.resident) == ("Mask the tail.", 4, True)
    distilled = next(e.payload for e in ready.events(LIBRARY) if e.type == "rule.distilled")
    assert (distilled["tokenizer"], distilled["model"]) == ("bytes/4 (approx)", "scripted")
    upkeep = [e.payload["kind"] for e in ready.events(LIBRARY) if e.type == "stage.cost_incurred"]
    assert upkeep == ["upkeep"]


def test_a_rule_that_is_too_long_is_asked_for_again(ready: LedgerClient) -> None:
    """The model is told how long its answer was; the shorter one is taken."""
    asked: list[str] = []

    class Verbose(ScriptedModel):
        def distill(self, title: str, body: str, evidence: str, limit_tokens: int) -> RuleDraft:
            asked.append(evidence)
            return RuleDraft("word " * (40 if len(asked) == 1 else 4), Usage("verbose"))

    assert distill(ready, Verbose()) == 1
    assert asked[0].startswith("value 0.500; retrieved in 1 stages, adopted in 1, for the operators gelu")
    assert "had 50 tokens. Write 1 to 20" in asked[1]


def test_without_a_usable_rule_the_experience_waits(ready: LedgerClient) -> None:
    """A model that refuses leaves it awaiting; the task goes on."""
    assert distill(ready, ScriptedModel()) == 0
    assert [item.experience for item in ready.experiences(LIBRARY, awaiting_distillation=True)] == ["tails"]
