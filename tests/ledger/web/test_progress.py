"""How far a long call has come: told while it runs, forgotten when it ends."""

from __future__ import annotations

import threading

import httpx
import pytest

from ledger import errors, progress, wire
from ledger.client import LedgerClient
from ledger.commands import audit
from ledger.service import Ledger
from tests.ledger.web.conftest import record


def test_running_call_can_be_watched_until_it_ends(http: httpx.Client, ledger: Ledger) -> None:
    with ledger.progress.telling("mine") as tell:
        tell(3, 7)
        assert http.get("/v1/progress/mine").json() == {"done": 3, "of": 7}
        other = http.get("/v1/progress/other")
        assert (other.status_code, other.json()["code"]) == (404, "progress-unknown")
    assert http.get("/v1/progress/mine").status_code == 404


def test_call_that_fails_is_no_longer_running(ledger: Ledger) -> None:
    with pytest.raises(errors.UnknownLibraryError), ledger.progress.telling("mine") as tell:
        audit.rederivation(ledger, "nowhere", None, tell)
    with pytest.raises(errors.ProgressUnknownError, match="'mine'"):
        ledger.progress.read("mine")


def test_only_so_many_are_watched_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MOST", 1)
    with ledger.progress.telling("first") as first, ledger.progress.telling("second") as second:
        first(1, 2)
        second(1, 2)
        assert ledger.progress.read("first") == (1, 2)
        with pytest.raises(errors.ProgressUnknownError):
            ledger.progress.read("second")


def test_rederivation_tells_its_share(client: LedgerClient, ledger: Ledger) -> None:
    record(client, *(f"e{n:03}" for n in range(600)))
    told: list[tuple[int, int]] = []
    answer = audit.rederivation(ledger, "lib", None, lambda done, of: told.append((done, of)))
    assert told == [(0, answer.sequence), (500, answer.sequence)]


def test_client_hands_on_what_the_service_tells(
    client: LedgerClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()
    told: list[tuple[int, int]] = []

    def slow(_ledger: Ledger, library: str, given: object, tell: progress.Tell) -> wire.Rederivation:
        tell(4, 9)
        assert heard.wait(30)
        return whole(ledger, library, given if isinstance(given, str) else None)

    def hear(done: int, of: int) -> None:
        told.append((done, of))
        heard.set()

    whole = audit.rederivation
    monkeypatch.setattr(audit, "rederivation", slow)
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    assert client.rederive("lib", tell=hear).first_difference is None
    assert set(told) <= {(0, 0), (4, 9)}
    assert told


def test_library_takes_writes_while_it_is_rederived(client: LedgerClient, ledger: Ledger) -> None:
    """A re-derivation of a long library takes seconds: nobody waits for it."""
    record(client, "before")

    def write(_done: int, _of: int) -> None:
        done = threading.Thread(target=record, args=(client, "meanwhile"))
        done.start()
        done.join(30)
        assert not done.is_alive()

    answer = audit.rederivation(ledger, "lib", None, write)
    assert sorted(answer.experiences) == ["before"]
    assert client.library("lib").experiences == 2
