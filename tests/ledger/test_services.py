"""Several `sagebook serve` on one PostgreSQL, as processes of their own: one log, whoever writes it and whoever dies."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from tests.ledger.test_process import Service

SERVICES, WRITERS, EACH = 3, 9, 40


@pytest.fixture
def serve(postgres_url: str) -> Iterator[Callable[..., Service]]:
    """Starts services on one empty database; those still running are ended."""
    started: list[Service] = []

    def start(port: int = 0) -> Service:
        started.append(Service(postgres_url, port))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.end(signal.SIGKILL)


def new(name: str) -> wire.NewExperience:
    return wire.NewExperience(experience=name, title=name, body=f"text of {name}", stages=("correctness",))


def test_services_that_die_leave_one_dense_log(serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine writers at three services, each of which is killed once with -9 and started again; one follows at a fourth.

    Every experience is there once, positions have no gap, the chain holds, and the follower saw each event once, in order.
    """
    monkeypatch.setattr("ledger.client._RETRIES", 12)
    rng = random.Random(5)
    services = [serve() for _ in range(SERVICES)]
    watcher = serve()
    acknowledged: list[str] = []
    progress = threading.Condition()
    expected, in_the_middle = 1 + WRITERS * EACH, 0
    seen: list[wire.EventRecord] = []

    def follow() -> None:
        with LedgerClient.connect(watcher.url) as client:
            for event in client.follow("lib"):
                seen.append(event)
                if len(seen) == expected:
                    return

    def write(writer: int) -> None:
        with LedgerClient.connect(services[writer % SERVICES].url, actor=f"w{writer}") as client:
            for number in range(EACH):
                made = client.record_experience("lib", new(f"{writer}-{number}"))
                with progress:
                    acknowledged.append(made.experience)
                    progress.notify_all()

    with LedgerClient.connect(watcher.url) as client:
        client.create_library("lib")
        with ThreadPoolExecutor(WRITERS + 1) as pool:
            following = pool.submit(follow)
            running = [pool.submit(write, writer) for writer in range(WRITERS)]
            for turn, place in enumerate(rng.sample(range(SERVICES), SERVICES), start=1):
                least = turn * WRITERS * EACH // 5
                with progress:
                    assert progress.wait_for(lambda least=least: len(acknowledged) >= least, 60)  # type: ignore[misc]
                    in_the_middle += len(acknowledged) < WRITERS * EACH
                services[place].end(signal.SIGKILL)
                services[place] = serve(services[place].port)
            for future in running:
                future.result()
            following.result(timeout=60)
        assert in_the_middle >= 2
        events = list(client.events("lib"))
        recorded = Counter(e.payload["experience"] for e in events if e.type == "experience.recorded")
        assert recorded == Counter(f"{w}-{n}" for w in range(WRITERS) for n in range(EACH))
        assert sorted(acknowledged) == sorted(recorded)
        assert [e.sequence for e in events] == list(range(1, expected + 1))
        assert [(e.sequence, e.hash) for e in seen] == [(e.sequence, e.hash) for e in events]
        assert client.verify("lib").ok
        assert client.rederive("lib").first_difference is None
    for service in services:
        with LedgerClient.connect(service.url) as client:
            assert client.library("lib").sequence == expected


def test_one_key_at_two_services_stores_once(serve: Callable[..., Service]) -> None:
    """The same request under one key, at both at once, again and again: one event, and both give the same answer."""
    services = [serve(), serve()]
    with LedgerClient.connect(services[0].url) as client:
        client.create_library("lib")
    body = [new(f"e{number}").model_dump_json(by_alias=True).encode() for number in range(20)]
    gate = threading.Barrier(2)

    def send(service: Service) -> list[tuple[int, bytes]]:
        with httpx.Client(base_url=service.url, timeout=30) as http:
            answers = []
            for number, content in enumerate(body):
                gate.wait(30)
                headers = {"Idempotency-Key": f"key-{number}", "Content-Type": "application/json"}
                answer = http.post("/v1/libraries/lib/experiences", content=content, headers=headers)
                answers.append((answer.status_code, answer.content))
            return answers

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(send, services)
    assert first == second
    assert {status for status, _ in first} == {201}
    with LedgerClient.connect(services[1].url) as client:
        assert client.library("lib").sequence == 1 + len(body)
        assert client.verify("lib").ok


def test_a_lost_race_between_services_is_decided_again(serve: Callable[..., Service]) -> None:
    """Two services record one experience under different keys: one does, the other says that it is there already."""
    services = [serve(), serve()]
    with LedgerClient.connect(services[0].url) as client:
        client.create_library("lib")
    gate = threading.Barrier(2)

    def send(service: Service) -> list[str]:
        outcomes = []
        with LedgerClient.connect(service.url) as client:
            for number in range(20):
                gate.wait(30)
                try:
                    client.record_experience("lib", new(f"e{number}"))
                    outcomes.append("made")
                except errors.ExperienceExistsError:
                    outcomes.append("there")
        return outcomes

    with ThreadPoolExecutor(2) as pool:
        pairs = list(zip(*pool.map(send, services), strict=True))
    assert {tuple(sorted(pair)) for pair in pairs} == {("made", "there")}
    with LedgerClient.connect(services[0].url) as client:
        assert client.library("lib").sequence == 21
        assert client.verify("lib").ok
