"""Experiences that are asked for, and retrievals that leave out what is stale."""

from __future__ import annotations

import httpx

from ledger import wire
from ledger.client import LedgerClient


def test_retrieved_in_an_open_stage_fresh_or_not(client: LedgerClient) -> None:
    """Evidence under 8.5 only: in a task under 9.0 `stale=False` leaves it out before it was ever offered there."""
    client.record_experience("lib", wire.NewExperience(experience="tail", title="Pad the tail", body="DataCopyPad"))
    for number, toolkit in enumerate(("8.5.0", "9.0.0")):
        new = wire.NewTask(task=f"t{number}", operator="o", model="m", environment={"chip": "910B", "toolkit": toolkit})
        client.start_task("lib", new)
        client.open_stage("lib", f"t{number}", wire.NewStage(stage=f"s{number}", kind="correctness", basis="reported"))
        if number == 0:
            client.retrieve("lib", "s0", "DataCopyPad")
            client.decide("lib", "s0", [wire.Decision(experience="tail", adopted=True, reason="r")])
            client.report_outcome("lib", "s0", wire.ReportedOutcome(correct=True))
            client.score_stage("lib", "s0")
    assert client.retrieve("lib", "s1", "DataCopyPad", stale=False) == []
    assert [e.experience for e in client.experiences("lib", stale=True)] == []
    assert [e.experience for e in client.experiences("lib", stale=True, chip="910B", toolkit="9.0.0")] == ["tail"]
    assert [e.experience for e in client.retrieve("lib", "s1", "DataCopyPad")] == ["tail"]
    assert [e.experience for e in client.experiences("lib", stale=True)] == ["tail"]


def test_pages_of_a_filter_follow_its_cursor(client: LedgerClient, http: httpx.Client) -> None:
    """Two of three, then the rest; a cursor of another question is refused, and a field that is none."""
    for name in ("a", "b", "c"):
        client.record_experience("lib", wire.NewExperience(experience=name, title=name, body="b"))
    first = http.get("/v1/libraries/lib/experiences", params={"limit": 2, "retired": False}).json()
    assert [item["experience"] for item in first["items"]] == ["a", "b"]
    asked = {"cursor": first["next_cursor"], "retired": False}
    assert [i["experience"] for i in http.get("/v1/libraries/lib/experiences", params=asked).json()["items"]] == ["c"]
    other = http.get("/v1/libraries/lib/experiences", params={"cursor": first["next_cursor"], "retired": True})
    assert other.status_code == 422
    assert "colour" in http.get("/v1/libraries/lib/experiences", params={"colour": "red"}).json()["detail"]
