"""Writes: idempotency keys, also over a restart; many writers on one library, in one service and in two."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ledger import errors, wire
from ledger.bootstrap import client_of, embedded_client, open_ledger
from ledger.client import LedgerClient
from tests.ledger.web.conftest import EASY, decided, opened, record, start, told

THREADS = 8
TASK = {"task": "t", "operator": "gelu", "model": "m"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@contextmanager
def service(url: str) -> Iterator[LedgerClient]:
    """One service on the database, and a client of it."""
    with embedded_client(url, actor="tester") as client:
        # FastAPI finishes its routes at first use and mutes a warning meanwhile, which two threads at once undo for each other.
        client._http.get("/v1/openapi.json")
        yield client


# --- idempotency ---------------------------------------------------------------------------------------------------


def test_a_repeat_gets_the_first_answer_byte_for_byte(client: LedgerClient, http: httpx.Client) -> None:
    """Status and body are those of the first time, though the library has moved on; nothing is stored twice."""
    headers = {"Idempotency-Key": "k1"}
    first = http.post("/v1/libraries/lib/tasks", json=TASK, headers=headers)
    assert first.status_code == 201
    record(client, "later")
    sequence = client.library("lib").sequence
    again = http.post("/v1/libraries/lib/tasks", json=TASK, headers=headers)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert client.library("lib").sequence == sequence


@pytest.mark.parametrize("case", ["other body", "other path", "other spelling"])
def test_a_key_stands_for_one_content(client: LedgerClient, http: httpx.Client, case: str) -> None:
    """The same key with other bytes, or for another route, is refused and stores nothing."""
    headers = {"Idempotency-Key": "k1"}
    http.post("/v1/libraries/lib/tasks", json=TASK, headers=headers)
    sequence = client.library("lib").sequence
    answer = {
        "other body": lambda: http.post("/v1/libraries/lib/tasks", json=TASK | {"level": 2}, headers=headers),
        "other path": lambda: http.post("/v1/libraries/lib/tasks/t/finish", json={}, headers=headers),
        "other spelling": lambda: http.post(
            "/v1/libraries/lib/tasks",
            content=b'{"operator": "gelu", "task": "t", "model": "m"}',
            headers=headers | {"content-type": "application/json"},
        ),
    }[case]()
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-conflict")
    assert client.library("lib").sequence == sequence


def test_a_key_belongs_to_its_library(client: LedgerClient, http: httpx.Client) -> None:
    """Another library may use the same key for something else."""
    client.create_library("other")
    for library in ("lib", "other"):
        answer = http.post(f"/v1/libraries/{library}/tasks", json=TASK, headers={"Idempotency-Key": "k1"})
        assert answer.status_code == 201
    assert client.task("other", "t").task == "t"


def test_an_empty_key_is_refused(client: LedgerClient, http: httpx.Client) -> None:
    """It would stand for every request that has none."""
    answer = http.post("/v1/libraries/lib/tasks", json=TASK, headers={"Idempotency-Key": ""})
    assert (answer.status_code, answer.json()["code"]) == (422, "request-invalid")
    answer = http.post("/v1/libraries/lib/tasks", json=TASK, headers={"Idempotency-Key": "k" * 256})
    assert answer.status_code == 422


def test_a_refused_request_does_not_use_up_its_key(client: LedgerClient, http: httpx.Client) -> None:
    """The stage could not be scored; with the decision made, the same request under the same key goes through."""
    record(client, "a")
    start(client, "t")
    opened(client, "t", "s", basis="reported")
    client.retrieve("lib", "s", "DataCopyPad")
    client.report_outcome("lib", "s", wire.ReportedOutcome(correct=True))
    headers = {"Idempotency-Key": "close"}
    assert http.post("/v1/libraries/lib/stages/s/score", headers=headers).status_code == 409
    decided(client, "s", a=True)
    first = http.post("/v1/libraries/lib/stages/s/score", headers=headers)
    assert first.status_code == 200
    again = http.post("/v1/libraries/lib/stages/s/score", headers=headers)
    assert again.content == first.content
    assert http.post("/v1/libraries/lib/stages/s/score").json()["code"] == "stage-closed"
    assert client.experience("lib", "a").retrievals == 1


def test_an_answer_without_content_is_repeated_too(client: LedgerClient, http: httpx.Client) -> None:
    """A rule under a policy that keeps no residents answers 204, both times, and is distilled once."""
    client.create_library("plain", policy="no-consolidation")
    client.record_experience("plain", wire.NewExperience(experience="a", title="t", body="b"))
    for _ in range(2):
        answer = http.post(
            "/v1/libraries/plain/experiences/a/rule",
            json={"text": "rule", "tokens": 1},
            headers={"Idempotency-Key": "k"},
        )
        assert (answer.status_code, answer.content) == (204, b"")
    assert [e.type for e in client.events("plain")].count("rule.distilled") == 1


def test_keys_and_answers_outlive_the_service(url: str) -> None:
    """After a restart the key still answers the same bytes, and still refuses other content."""
    headers = {"Idempotency-Key": "k1"}
    with service(url) as client:
        made = client._http.post("/v1/libraries", json={"library": "lib"}, headers=headers)
        first = client._http.post("/v1/libraries/lib/tasks", json=TASK, headers={"Idempotency-Key": "k2"})
    with service(url) as client:
        assert client._http.post("/v1/libraries", json={"library": "lib"}, headers=headers).content == made.content
        again = client._http.post("/v1/libraries/lib/tasks", json=TASK, headers={"Idempotency-Key": "k2"})
        assert (again.status_code, again.content) == (201, first.content)
        other = client._http.post(
            "/v1/libraries/lib/tasks", json=TASK | {"level": 9}, headers={"Idempotency-Key": "k2"}
        )
        assert other.json()["code"] == "idempotency-conflict"
        assert client.library("lib").sequence == 2


def test_one_key_from_many_threads_stores_once(url: str) -> None:
    """Eight at the same moment, half of them at another service on the same file: one batch, one answer."""
    with service(url) as one, service(url) as two:
        one.create_library("lib")
        gate = threading.Barrier(THREADS)

        def send(i: int) -> bytes:
            gate.wait()
            client = one if i % 2 else two
            answer = client._http.post("/v1/libraries/lib/tasks", json=TASK, headers={"Idempotency-Key": "same"})
            assert answer.status_code == 201
            return answer.content

        with ThreadPoolExecutor(THREADS) as pool:
            answers = set(pool.map(send, range(THREADS)))
        assert len(answers) == 1
        assert one.library("lib").sequence == two.library("lib").sequence == 2


# --- many writers --------------------------------------------------------------------------------------------------


def _play(client: LedgerClient, i: int) -> None:
    """One stage from start to end; each experience of the pool is decided on."""
    start(client, f"t{i}", f"op{i % 4}")
    opened(client, f"t{i}", f"s{i}", basis="reported")
    client.retrieve("lib", f"s{i}", "DataCopyPad tail block")
    undecided = client.stage("lib", f"s{i}").undecided
    if undecided:
        decided(client, f"s{i}", **{name: (i + k) % 3 > 0 for k, name in enumerate(undecided)})
    client.report_outcome("lib", f"s{i}", wire.ReportedOutcome(correct=i % 5 > 0))
    client.score_stage("lib", f"s{i}")


def _check(client: LedgerClient, stages: int) -> None:
    events = list(client.events("lib"))
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    assert [e.type for e in events].count("stage.scored") == stages
    found = client.verify("lib")
    assert (found.ok, found.events) == (True, len(events))
    derived = client.rederive("lib")
    assert derived.first_difference is None
    assert derived.sequence == len(events)


def _all(stages: int, client_of_thread: Callable[[int], LedgerClient]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda i: _play(client_of_thread(i), i), range(stages)))


@pytest.mark.parametrize("services", [1, 2])
def test_many_agents_on_one_library(url: str, services: int) -> None:
    """Eight threads play 24 stages at once, residents coming and going: no gap, nothing lost, every score follows."""
    stages = 24
    with service(url) as one, service(url) as two:
        one.create_library("lib", policy=EASY)
        record(one, "a", "b", "c")
        one.distill_rule("lib", "a", wire.NewRule(text="rule", tokens=10))
        one.distill_rule("lib", "b", wire.NewRule(text="rule", tokens=20))
        _all(stages, lambda i: two if services == 2 and i % 2 else one)
        _check(one, stages)
        assert one.state("lib") == two.state("lib")
        assert sum(e.retrievals for e in one.state("lib").experiences.values()) > 0


def test_one_stage_is_scored_once_however_many_ask(url: str) -> None:
    """Eight threads close the same stage without a key: one gets the score, seven are told that it is closed."""
    with service(url) as client:
        client.create_library("lib")
        start(client, "t")
        opened(client, "t", "s", basis="reported")
        client.report_outcome("lib", "s", wire.ReportedOutcome(correct=True))
        gate = threading.Barrier(THREADS)

        def close(_: int) -> str:
            gate.wait()
            try:
                client.score_stage("lib", "s")
            except errors.StageClosedError:
                return "closed"
            return "scored"

        with ThreadPoolExecutor(THREADS) as pool:
            results = sorted(pool.map(close, range(THREADS)))
        assert results == ["closed"] * (THREADS - 1) + ["scored"]
        _check(client, 1)


def test_a_library_is_created_once_by_two_services(url: str) -> None:
    """The loser of the race is told that it exists."""
    with service(url) as one, service(url) as two:
        gate = threading.Barrier(2)

        def create(client: LedgerClient) -> str:
            gate.wait()
            try:
                client.create_library("lib")
            except errors.LibraryExistsError:
                return "exists"
            return "made"

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(create, (one, two))) == ["exists", "made"]
        assert one.library("lib").sequence == 1


def test_readers_see_every_event_once_while_others_write(url: str) -> None:
    """A reader that follows by sequence from another service meets no gap and no event twice, and ends at the head."""
    with service(url) as writer, service(url) as reader:
        writer.create_library("lib", policy=EASY)
        record(writer, "a", "b")
        done = threading.Event()
        seen: list[int] = []

        def follow() -> None:
            while True:
                last = done.is_set()
                seen.extend(e.sequence for e in reader.events("lib", after=seen[-1] if seen else 0, page=7))
                if last:
                    return

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            for i in range(6):
                _play(writer, i)
        finally:
            done.set()
            thread.join()
        assert seen == list(range(1, writer.library("lib").sequence + 1))


def test_what_another_service_wrote_is_found_by_this_one(url: str) -> None:
    """Experiences recorded, amended and retired there are retrieved, or not, here."""
    with client_of(open_ledger(url)) as one, service(url) as two:
        one.create_library("lib", policy=EASY)
        record(one, "a")
        assert told(one, "s1").adopted == []
        record(two, "b", text="vectorised exponent polynomial")
        start(one, "t2")
        opened(one, "t2", "s2", basis="reported")
        assert [o.experience for o in one.retrieve("lib", "s2", "polynomial exponent")] == ["b"]
        two.amend_experience("lib", "a", wire.AmendExperience(title="A", body="transposed tiles", reason="clearer"))
        assert [o.experience for o in one.retrieve("lib", "s2", "transposed tiles")] == ["a"]
        two.retire_experience("lib", "b", "wrong")
        assert one.retrieve("lib", "s2", "polynomial exponent") == []
