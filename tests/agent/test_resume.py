"""A run that is cut off anywhere continues from what the ledger holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.errors import LedgerUnavailableError
from agent.loop import Loop
from agent.models.scripted import ScriptedModel
from agent.port import Context, Proposal
from agent.retry import Backoff
from ledger import errors, wire
from ledger.bootstrap import client_of, configure_logging, memory_ledger
from ledger.client import LedgerClient
from ledger.settings import Settings
from tests.agent.conftest import build_loop
from tests.agent.stand_in import StandIn, answer

SCRIPT = (
    answer("wrong", adopt=("one",)),
    answer("correct 0.8", change="tail = masked", adopt=("two",)),
    answer("correct 0.4", change="threads = rows", adopt=("one",)),
    answer(None),
)
DECISIVE = {
    "task.started",
    "task.finished",
    "stage.started",
    "stage.scored",
    "stage.candidate_proposed",
    "stage.candidate_compiled",
    "stage.candidate_verified",
    "stage.candidate_measured",
    "value.updated",
    "experience.recorded",
    "rule.distilled",
}


class Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


@pytest.fixture(scope="module")
def shared() -> Iterator[LedgerClient]:
    """One ledger for all cases of this file; each case has a library of its own."""
    configure_logging(Settings())
    with client_of(memory_ledger(), actor="tester") as opened:
        yield opened


def prepare(client: LedgerClient, library: str) -> None:
    client.create_library(library, policy={"min_adoptions": 1, "min_operators": 1})
    for name in ("one", "two", "three"):
        client.record_experience(library, wire.NewExperience(experience=name, title=f"about {name}", body="gelu rows"))


def loop_on(client: LedgerClient, library: str) -> Loop:
    rules = {f"about {name}": f"rule {name}" for name in ("one", "two", "three")}
    loop = build_loop(client, ScriptedModel(SCRIPT, rules=rules))
    loop.journal.library = library
    return loop


def trip(loop: Loop, at: int, *, done: bool) -> Counter[str]:
    """Let the process end at its `at`-th step to the ledger: before it was sent, or after it was answered."""
    send = loop.journal.line.call
    calls: Counter[str] = Counter()

    def counted(step: str, call: Callable[[], Any], **rest: Any) -> Any:
        calls["steps"] += 1
        if calls["steps"] == at and not done:
            raise Killed
        try:
            return send(step, call, **rest)
        finally:
            if calls["steps"] == at:
                raise Killed

    loop.journal.line.call = counted  # type: ignore[method-assign]
    return calls


def facts(client: LedgerClient, library: str) -> Counter[str]:
    return Counter(event.type for event in client.events(library) if event.type in DECISIVE)


def whole_run_steps() -> int:
    """How many steps an undisturbed run takes; the parameters below must cover them all."""
    configure_logging(Settings())
    with client_of(memory_ledger(), actor="tester") as client:
        prepare(client, "count")
        loop = loop_on(client, "count")
        calls = trip(loop, -1, done=False)
        loop.develop("gelu")
        return calls["steps"]


STEPS = 48


def test_the_cases_below_cover_every_step() -> None:
    """Were a step added to the loop, the number of cases must grow with it."""
    assert whole_run_steps() == STEPS


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, STEPS + 1))
def test_a_run_killed_at_any_step_ends_as_if_it_had_not_been(shared: LedgerClient, at: int, done: bool) -> None:
    """Whatever step the process dies at, the next run ends with the same facts: nothing scored, proposed or learnt twice."""
    library = f"kill-{at}-{done}"
    prepare(shared, library)
    loop = loop_on(shared, library)
    trip(loop, at, done=done)
    with pytest.raises(Killed):
        loop.develop("gelu")
    result = loop_on(shared, library).develop("gelu")
    assert (result.first_ms, result.best_ms, result.rounds) == (0.8, 0.4, 3)
    assert facts(shared, library) == undisturbed(shared)
    task = shared.task(library, "run.gelu")
    assert task.finished
    assert {stage.kind: stage.score for stage in task.stages} == {
        "correctness": 1.0,
        "optimization": pytest.approx(0.5),
    }
    assert shared.rederive(library).first_difference is None


_undisturbed: dict[str, Counter[str]] = {}


def undisturbed(client: LedgerClient) -> Counter[str]:
    """Facts of a run that nothing happens to."""
    if "facts" not in _undisturbed:
        prepare(client, "whole")
        loop_on(client, "whole").develop("gelu")
        _undisturbed["facts"] = facts(client, "whole")
    return _undisturbed["facts"]


def test_a_judge_that_dies_is_asked_again_with_the_same_inputs(shared: LedgerClient) -> None:
    """The candidate that was proposed before the cut is judged on the seed of its round, and takes no second round."""
    prepare(shared, "judge")

    def die(_: str) -> None:
        raise Killed

    cut = loop_on(shared, "judge")
    cut.workbench = StandIn(die)
    with pytest.raises(Killed):
        cut.develop("gelu")
    assert [c.outcome for c in shared.task("judge", "run.gelu").candidates] == [None]
    bench = StandIn()
    again = loop_on(shared, "judge")
    again.workbench = bench
    again.develop("gelu")
    whole = StandIn()
    prepare(shared, "judge-whole")
    other = loop_on(shared, "judge-whole")
    other.workbench = whole
    other.develop("gelu")
    assert bench.judged == whole.judged
    assert bench.seeds == whole.seeds


def test_the_model_sees_the_same_history_after_a_cut(shared: LedgerClient) -> None:
    """What the model is shown after a restart equals what it would have been shown, evidence and latencies included."""
    seen: dict[str, list[Context]] = {"cut": [], "whole": []}

    class Watching(ScriptedModel):
        where = "whole"

        def propose(self, context: Context) -> Proposal:
            seen[self.where].append(context)
            return super().propose(context)

    prepare(shared, "seen-whole")
    whole = loop_on(shared, "seen-whole")
    whole.model = Watching(SCRIPT)
    whole.develop("gelu")

    prepare(shared, "seen-cut")

    def die_in_the_third(source: str) -> None:
        if source == "correct 0.4":
            raise Killed

    cut = loop_on(shared, "seen-cut")
    cut.model = Watching(SCRIPT)
    cut.workbench = StandIn(die_in_the_third)
    Watching.where = "cut"
    with pytest.raises(Killed):
        cut.develop("gelu")
    again = loop_on(shared, "seen-cut")
    again.model = Watching(SCRIPT)
    again.develop("gelu")

    first, second = seen["whole"][-1], seen["cut"][-1]
    assert first.history == second.history
    assert {offer.id for offer in first.offers} == {offer.id for offer in second.offers}
    assert first.residents == second.residents


def test_an_abandoned_stage_is_followed_by_one_under_the_next_name(shared: LedgerClient) -> None:
    """A stage that someone abandoned is not continued; the next one has a number, and the rounds used stay used."""
    prepare(shared, "abandoned")

    def die(_: str) -> None:
        raise Killed

    loop = loop_on(shared, "abandoned")
    loop.workbench = StandIn(die)
    with pytest.raises(Killed):
        loop.develop("gelu")
    shared.abandon_stage("abandoned", "run.gelu.correctness", "the machine was needed")
    result = loop_on(shared, "abandoned").develop("gelu")
    names = [stage.stage for stage in shared.task("abandoned", "run.gelu").stages]
    assert names == ["run.gelu.correctness", "run.gelu.correctness.2", "run.gelu.optimization"]
    assert result.rounds == 3


def test_a_ledger_that_is_away_is_waited_for(shared: LedgerClient) -> None:
    """Each step is sent again until it comes through; what is asked for meanwhile is to bring the ledger back."""
    prepare(shared, "away")
    loop = loop_on(shared, "away")
    revived: list[int] = []
    loop.journal.line.revive = lambda: revived.append(1)
    state = {"calls": 0}
    send = shared._send

    def flaky(*args: Any, **rest: Any) -> Any:
        state["calls"] += 1
        if state["calls"] % 3 == 0:
            raise errors.UnreachableError("http://ledger", "connection refused")
        return send(*args, **rest)

    shared._send = flaky  # type: ignore[method-assign]
    try:
        result = loop.develop("gelu")
    finally:
        del shared._send  # type: ignore[method-assign]
    assert result.best_ms == 0.4
    assert revived
    assert facts(shared, "away") == undisturbed(shared)


def test_a_ledger_that_stays_away_ends_the_run_with_the_way_out(shared: LedgerClient) -> None:
    """When the patience is used up, the message says that nothing is lost and how to go on."""
    prepare(shared, "gone")
    loop = loop_on(shared, "gone")
    loop.journal.line.patience = Backoff(first=0.1, patience=0.5)

    def refuse(*_: Any, **__: Any) -> Any:
        raise errors.UnreachableError("http://ledger", "connection refused")

    shared._send = refuse  # type: ignore[method-assign]
    try:
        with pytest.raises(LedgerUnavailableError, match="run the same command again"):
            loop.develop("gelu")
    finally:
        del shared._send  # type: ignore[method-assign]
