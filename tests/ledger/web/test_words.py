"""Words that fit nothing: whatever a caller says, the refusal is the ledger's own and names it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ledger import errors, wire
from ledger.client import LedgerClient

BAD_NAMES = ["", " ", "a/b", ".", "..", "50%", "a\nb", "a\x00b", "x" * 10_000, "a?b", "a#b", "\ud800"]

NAMED: dict[str, Callable[[LedgerClient, str], Any]] = {
    "library": lambda c, name: c.library(name),
    "state": lambda c, name: c.state(name),
    "create": lambda c, name: c.create_library(name),
    "events": lambda c, name: list(c.events(name)),
    "export": lambda c, name: c.export_trace(name),
    "import": lambda c, name: c.import_trace(name, [], create=True),
    "experience": lambda c, name: c.experience("lib", name),
    "why": lambda c, name: c.why("lib", name),
    "why not": lambda c, name: c.why_not("lib", name),
    "retire": lambda c, name: c.retire_experience("lib", name, "r"),
    "supersede": lambda c, name: c.supersede("lib", name, by="b", reason="r"),
    "superseded by": lambda c, name: c.supersede("lib", "a", by=name, reason="r"),
    "task": lambda c, name: c.task("lib", name),
    "finish": lambda c, name: c.finish_task("lib", name),
    "stage": lambda c, name: c.stage("lib", name),
    "retrieve": lambda c, name: c.retrieve("lib", name, "q"),
    "score": lambda c, name: c.score_stage("lib", name),
    "conflict": lambda c, name: c.resolve_conflict("lib", name, loser=None, reason="r"),
    "loser": lambda c, name: c.resolve_conflict("lib", "x", loser=name, reason="r"),
    "blob": lambda c, name: c.blob("lib", name),
}


@pytest.mark.parametrize("call", NAMED)
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda n: ascii(n[:8]))
def test_a_name_that_nothing_can_have_is_refused_by_that_name(client: LedgerClient, call: str, name: str) -> None:
    """Neither pydantic's error nor a route that is not there; the message is one that a person can read."""
    with pytest.raises(errors.InvalidInputError) as refused:
        NAMED[call](client, name)
    assert type(refused.value) in {errors.NameInvalidError, errors.RequestInvalidError}
    assert len(refused.value.message) < 1_000
    assert name[:20] in refused.value.message or ascii(name[:20])[1:-1] in refused.value.message


def test_a_chinese_name_is_a_name(client: LedgerClient) -> None:
    """It goes through a path and comes back."""
    client.create_library("团队")
    client.record_experience("团队", wire.NewExperience(experience="尾块 对齐", title="尾块", body="b"))
    assert client.experience("团队", "尾块 对齐").experience == "尾块 对齐"


BLANK: dict[str, Callable[[LedgerClient, str], Any]] = {
    "retire": lambda c, text: c.retire_experience("lib", "a", text),
    "invalidate": lambda c, text: c.invalidate("lib", "stage:s", text),
    "abandon": lambda c, text: c.abandon_stage("lib", "s", text),
    "policy": lambda c, text: c.change_policy("lib", "paper", text),
    "query": lambda c, text: c.retrieve("lib", "s", text),
}


@pytest.mark.parametrize("call", BLANK)
@pytest.mark.parametrize("text", ["", "  ", "\n"], ids=ascii)
def test_a_blank_reason_says_nothing(client: LedgerClient, call: str, text: str) -> None:
    """Refused before anything is looked up, with the field and what to do."""
    with pytest.raises(errors.RequestInvalidError, match=r"(reason|query): .*blank; say something"):
        BLANK[call](client, text)


@pytest.mark.parametrize(
    ("route", "body", "says"),
    [
        ("experiences", {"experience": "e", "title": "  ", "body": "b"}, "body.title: .*blank"),
        ("experiences", {"experience": "e", "body": "b"}, "body.title: Field required"),
        ("experiences/a/rule", {"text": " "}, "body.text: .*blank"),
        ("tasks", {"task": "t", "operator": "", "model": "m"}, "body.operator: .*blank"),
        (
            "tasks",
            {"task": "t", "operator": "o", "model": "m", "budget": 0},
            "body.budget: .*greater than 0; it was '0'",
        ),
    ],
)
def test_the_detail_names_the_field_and_what_was_sent(
    client: LedgerClient, http: httpx.Client, route: str, body: dict[str, Any], says: str
) -> None:
    """A problem document can be read without its list of errors."""
    client.record_experience("lib", wire.NewExperience(experience="a", title="t", body="b"))
    answer = http.post(f"/v1/libraries/lib/{route}", json=body)
    assert answer.status_code == 422
    assert re.match(says, answer.json()["detail"]), answer.json()["detail"]


def test_a_cost_names_what_is_there(client: LedgerClient) -> None:
    """An upkeep for an experience that the library does not hold is refused, with close names."""
    client.record_experience("lib", wire.NewExperience(experience="tail", title="t", body="b"))
    client.start_task("lib", wire.NewTask(task="t", operator="o", model="m"))
    client.open_stage("lib", "t", wire.NewStage(stage="s", kind="correctness"))
    with pytest.raises(errors.UnknownExperienceError, match="tail"):
        client.cost("lib", "s", wire.Cost(kind="upkeep", seconds=1.0, experience="tial"))


def test_costs_stay_numbers(client: LedgerClient, http: httpx.Client) -> None:
    """Of seconds that no sum can hold the first is refused, and what was spent can still be asked for."""
    client.start_task("lib", wire.NewTask(task="t", operator="o", model="m"))
    client.open_stage("lib", "t", wire.NewStage(stage="s", kind="correctness"))
    answer = http.post("/v1/libraries/lib/stages/s/costs", json={"kind": "model", "seconds": 1e308})
    assert answer.status_code == 422
    assert "seconds" in answer.json()["detail"]
    client.cost("lib", "s", wire.Cost(kind="model", seconds=1e9))
    client.cost("lib", "s", wire.Cost(kind="model", seconds=1e9))
    assert client.costs("lib", by="library").groups[0].model_seconds == 2e9


@pytest.mark.parametrize("subject", ["candidate:abc", "candidate:" + "0" * 64])
def test_an_unknown_hash_says_that_it_is_one(client: LedgerClient, subject: str) -> None:
    """Not that a stage lacks a candidate."""
    with pytest.raises(errors.UnknownHashError, match="source or the artefact"):
        client.invalidate("lib", subject, "a cheat")
