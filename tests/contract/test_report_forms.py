"""One form of report for three houses: what the ledger's and the agent's tests hand about is what the judge writes."""

from __future__ import annotations

import json

import pytest

from device import report_form
from tests.agent.stand_in import report_on
from tests.ledger.judge import Judge


@pytest.mark.parametrize("outcome", ["correct", "wrong", "crash", "compile_error"])
def test_reports_of_the_ledgers_tests_are_of_the_judges_form(outcome: str) -> None:
    given = Judge().report("text", "gelu", outcome, ms=2.0 if outcome == "correct" else None)
    assert report_form.read(json.loads(given.report)).outcome == outcome


@pytest.mark.parametrize("rest", ["correct 1.5", "wrong", "compile_error"])
def test_reports_of_the_agents_tests_are_of_the_judges_form(rest: str) -> None:
    assert report_form.read(report_on(rest, "gelu", 1)).outcome == rest.split(maxsplit=1)[0]
