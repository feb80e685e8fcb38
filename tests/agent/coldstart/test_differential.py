"""Patterns read from a generated kernel and an expert's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.calls import Calls
from agent.coldstart.differential import Differential, pattern_id
from agent.errors import ModelUnreachableError
from agent.journal import Journal
from agent.models.scripted import ScriptedModel
from agent.port import Attempt, OperatorCard, Pattern, Usage
from agent.progress import Silent
from agent.retry import Backoff, Retries
from ledger.client import LedgerClient
from tests.agent.conftest import LIBRARY
from tests.agent.stand_in import CARDS, StandIn

PATTERN = Pattern(
    "masked-tail", "Mask the tail", "Why and when.\n\nChange: tail = masked", ("optimization",), ("reduction",)
)
GENERATED = Attempt(2, "correctness", "run.softmax.r02", "correct 0.8", "x", "h", "correct", "ok", "", 0.8, 1.0, 0.01)


class Reader(ScriptedModel):
    """Finds one pattern in everything."""

    def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
        assert (generated, expert) == ("correct 0.8", "correct 0.2")
        return (PATTERN,), Usage("reader", 100, 20, 1.5)


@pytest.fixture
def stage(client: LedgerClient) -> str:
    """A stage that costs can be booked on."""
    from ledger import wire

    client.start_task(LIBRARY, wire.NewTask(task="run.softmax", operator="softmax", model="reader"))
    client.open_stage(LIBRARY, "run.softmax", wire.NewStage(stage="s", kind="correctness"))
    return "s"


def mine(
    client: LedgerClient, *, operator: str = "softmax", expert: str = "correct 0.2", model: ScriptedModel | None = None
) -> tuple[int, StandIn]:
    bench = StandIn(experts={operator: expert})
    calls = Calls(model or Reader(), Retries(2), Backoff(first=0.0), sleep=lambda _: None)
    differential = Differential(Journal(client, LIBRARY), bench, Silent())
    return differential.run(CARDS[operator], [GENERATED], calls, "s"), bench


def test_a_pattern_is_recorded_with_both_sources_and_both_latencies(client: LedgerClient, stage: str) -> None:
    """Its evidence: the generated kernel took 0.8 ms, the expert's 0.2 ms, each judged; both sources are blobs."""
    new, bench = mine(client)
    assert new == 1
    assert bench.judged == ["correct 0.2"]
    found = client.experience(LIBRARY, "pattern-masked-tail")
    assert found.source.kind == "differential"
    texts = [client.blob(LIBRARY, text).decode() for text in found.source.texts]
    assert texts[:2] == ["correct 0.8", "correct 0.2"]
    assert '"sagebook.report/1"' in texts[2]
    assert "took 0.8000 ms, the expert's 0.2000 ms" in (found.body or "")
    assert "Change: tail = masked" in (found.body or "")
    assert (found.stages, found.conditions.families) == (("optimization",), ("reduction",))
    costs = {e.payload["kind"] for e in client.events(LIBRARY) if e.type == "stage.cost_incurred"}
    assert costs == {"upkeep", "compile", "device"}


def test_a_pattern_found_again_is_the_same_experience(client: LedgerClient, stage: str) -> None:
    """The second time nothing is recorded, and the expert is not judged for nothing."""
    mine(client)
    new, bench = mine(client)
    assert new == 0
    assert bench.judged == []
    assert len(client.experiences(LIBRARY)) == 1


def test_nothing_is_learnt_from_an_expert_that_does_not_pass(client: LedgerClient, stage: str) -> None:
    """A pattern must be grounded in code that works."""
    model = Reader()
    model.compare = lambda *_: ((PATTERN,), Usage("reader"))  # type: ignore[method-assign]
    new, _ = mine(client, expert="wrong", model=model)
    assert new == 0
    assert client.experiences(LIBRARY) == []


@pytest.mark.parametrize("operator", ["matmul", "gelu"])
def test_only_simple_operators_with_an_expert_are_mined(client: LedgerClient, stage: str, operator: str) -> None:
    """Level 3 is not; neither is an operator without an expert kernel."""
    bench = StandIn(experts={"matmul": "correct 0.2"})
    calls = Calls(Reader(), Retries(0), Backoff())
    assert Differential(Journal(client, LIBRARY), bench, Silent()).run(CARDS[operator], [GENERATED], calls, "s") == 0
    assert bench.judged == []


def test_a_model_that_is_away_costs_the_patterns_and_not_the_task(client: LedgerClient, stage: str) -> None:
    """The comparison is tried again within the task's retries, then left."""

    class Away(ScriptedModel):
        def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
            raise ModelUnreachableError("no connection")

    assert mine(client, model=Away())[0] == 0


def test_keys_make_ids_that_are_stable_and_apart() -> None:
    """A key that is an id already stays; another spelling of it is told apart by a digest."""
    assert pattern_id(PATTERN) == "pattern-masked-tail"
    other = pattern_id(replace(PATTERN, key="Masked tail"))
    assert other.startswith("pattern-masked-tail-")
    assert other != "pattern-masked-tail"
