"""The handed cases: traces with the expected updates, consolidations and states, agreed to 1e-9."""

import json
from pathlib import Path

import pytest

from ledger.bootstrap import memory_ledger
from ledger.commands import libraries
from ledger.domain import events as ev
from ledger.service import Call
from ledger.trace_read import import_trace
from ledger.wire import NewLibrary

CASES = sorted((Path(__file__).parents[2] / "cases" / "memory").glob("*.trace.jsonl"))


@pytest.fixture(params=CASES, ids=lambda path: path.name.split(".")[0])
def case(request):
    expected = json.loads(
        request.param.with_name(request.param.name.replace(".trace.jsonl", ".expected.json")).read_text()
    )
    ledger = memory_ledger()
    call = Call(actor="test")
    libraries.create(ledger, call, NewLibrary(library="case", policy=expected["policy"]))
    import_trace(ledger, call, "case", request.param.read_bytes().splitlines())
    yield ledger, expected
    ledger.close()


def close(value):
    return pytest.approx(value, abs=1e-9, rel=0)


def test_the_state_at_the_end_is_the_expected_one(case):
    """Value, retrievals, adoptions, operators, frequency, residence, tokens and retirement of every experience."""
    ledger, expected = case
    state = libraries.state_of(ledger, "case", None).model_dump()["experiences"]
    assert set(state) == set(expected["state"])
    for name, want in expected["state"].items():
        got = state[name]
        assert got["value"] == close(want["value"]), name
        assert got["frequency"] == close(want["frequency"]), name
        for key in ("retrievals", "adoptions", "operators", "resident", "tokens", "retired"):
            assert got[key] == want[key], (name, key)


def test_every_stage_updates_as_expected(case):
    """Score, adopted and each update (old, new, alpha, N, feedback), stage by stage."""
    ledger, expected = case
    stages: dict[str, dict] = {}
    for recorded in ledger.recorded("case"):
        event = recorded.event
        if isinstance(event, ev.StageScored):
            stages[event.stage] = {"score": event.score, "adopted": list(event.adopted), "updates": {}}
        elif isinstance(event, ev.ValueUpdated):
            stages[event.stage]["updates"][event.experience] = event
    assert list(stages) == [s["stage"] for s in expected["stages"]]
    for want in expected["stages"]:
        got = stages[want["stage"]]
        assert got["score"] == close(want["score"])
        assert got["adopted"] == want["adopted"]
        assert set(got["updates"]) == {u["experience"] for u in want["updates"]}
        for update in want["updates"]:
            event = got["updates"][update["experience"]]
            assert event.n == update["n"]
            for key in ("old", "new", "alpha", "feedback"):
                assert getattr(event, key) == close(update[key])


def test_every_consolidation_is_the_expected_one(case):
    """Ranked table, admitted, evicted and used tokens, consolidation by consolidation."""
    ledger, expected = case
    found: list[dict] = []
    for recorded in ledger.recorded("case"):
        event = recorded.event
        if isinstance(event, ev.Consolidated):
            name = event.subject if event.trigger == "stage" else event.trigger
            found.append({"name": name, "event": event, "admitted": [], "evicted": []})
        elif isinstance(event, ev.RuleAdmitted):
            found[-1]["admitted"].append(event.experience)
        elif isinstance(event, ev.RuleEvicted):
            found[-1]["evicted"].append(event.experience)
    assert [f["name"] for f in found] == [c["consolidation"] for c in expected["consolidations"]]
    for got, want in zip(found, expected["consolidations"], strict=True):
        assert sorted(got["admitted"]) == sorted(want["admitted"])
        assert sorted(got["evicted"]) == sorted(want["evicted"])
        assert got["event"].used == want["used"]
        rows = [(r.experience, r.tokens, r.resident) for r in got["event"].ranked]
        assert rows == [(r["experience"], r["tokens"], r["resident"]) for r in want["ranked"]]
        for row, wanted in zip(got["event"].ranked, want["ranked"], strict=True):
            assert row.priority == close(wanted["priority"])
