"""Whose reports a service takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger import errors
from ledger.bootstrap import known_judges, open_ledger
from ledger.client import LedgerClient
from ledger.service import Ledger
from tests.ledger.judge import Judge
from tests.ledger.web.conftest import opened, propose, start

SOURCE = "int sagebook_kernel();"


def test_report_of_a_judge_that_is_not_known_is_refused(client: LedgerClient, ledger: Ledger, judge: Judge) -> None:
    """A right signature under a key of the agent's own making proves nothing."""
    ledger.judges = known_judges(judge.public)
    start(client, "t")
    opened(client, "t", "s")
    propose(client, "s", "c", SOURCE)
    before = client.library("lib").sequence
    forger = Judge()
    with pytest.raises(errors.JudgeUnknownError, match="SAGEBOOK_JUDGES") as caught:
        client.report("lib", "s", "c", forger.report(SOURCE, "gelu", ms=0.001))
    assert caught.value.facts["judge"] == forger.public
    assert client.library("lib").sequence == before
    assert client.report("lib", "s", "c", judge.report(SOURCE, "gelu", ms=2.0)).outcome == "correct"


def test_keys_come_from_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, two = Judge().public, Judge().public
    assert known_judges(f" {one}, {two},") == {one, two}
    monkeypatch.setenv("SAGEBOOK_JUDGES", one)
    made = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    assert made.judges == {one}
    made.close()


@pytest.mark.parametrize("key", ["not base64", "c2hvcnQ="])
def test_a_setting_that_is_no_key_is_named(key: str) -> None:
    with pytest.raises(errors.InvalidInputError, match="SAGEBOOK_JUDGES") as caught:
        known_judges(key)
    assert caught.value.facts["key"] == key
