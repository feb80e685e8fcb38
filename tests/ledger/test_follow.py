"""The live feed: every event once, in order, whatever happens to the connection in between."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from ledger.follow import records
from tests.ledger.test_process import PROGRAM, Service


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start(port: int = 0) -> Service:
        started.append(Service(tmp_path / "ledger.db", port))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.end(signal.SIGKILL)


def record(client: LedgerClient, *names: str) -> None:
    for name in names:
        client.record_experience(
            "lib", wire.NewExperience(experience=name, title=name, body=name, stages=("correctness",))
        )


def test_events_are_read_from_the_lines_of_a_stream():
    """Comments, ids and event names are passed over; a record over two data lines is one; an unfinished one is none."""
    shown = {
        "library": "lib", "sequence": 1, "type": "t", "schema": 1, "id": "i", "time": "now", "actor": "a", "task": None,
        "stage": None, "payload": {"n": 1}, "previous_hash": "00", "hash": "01",
    }  # fmt: skip
    text = json.dumps(shown)
    split = text.index('"hash"')
    lines = [
        ": ping",
        "",
        "id: 1",
        "event: event",
        f"data: {text[:split]}",
        f"data:{text[split:]}",
        "",
        f"data: {text}",
    ]
    assert [item.sequence for item in records(lines)] == [1]


def test_a_feed_begins_where_the_reader_left_off_and_stays_open(serve: Callable[..., Service]):
    """Last-Event-ID 2 gives 3 and 4 at once, then 5 within a fraction of the polling interval after it is stored."""
    service = serve()
    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
        record(client, "a", "b", "c")
        headers = {"Last-Event-ID": "2"}
        with httpx.stream("GET", f"{service.url}/v1/libraries/lib/feed", headers=headers, timeout=10) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            feed = records(response.iter_lines())
            assert [next(feed).sequence, next(feed).sequence] == [3, 4]
            stored = time.monotonic()
            threading.Timer(0.3, record, (client, "d")).start()
            assert next(feed).payload["experience"] == "d"
            assert time.monotonic() - stored < 0.3 + 0.6
        with pytest.raises(errors.UnknownLibraryError):
            next(client.follow("none"))
        assert httpx.get(f"{service.url}/v1/libraries/lib/feed", headers={"Last-Event-ID": "x"}).status_code == 422


def test_a_follower_outlives_the_service(serve: Callable[..., Service]):
    """The service is killed twice between writes and started again on its port: 31 events, each once, in order."""
    service = serve()
    seen: list[int] = []

    def follow() -> None:
        with LedgerClient.connect(service.url) as reader:
            seen.extend(item.sequence for item in itertools.islice(reader.follow("lib"), 31))

    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
        following = threading.Thread(target=follow)
        following.start()
        for number in range(30):
            record(client, f"e{number}")
            if number in {9, 19}:
                service.end(signal.SIGKILL)
                service = serve(service.port)
        following.join(timeout=30)
    assert seen == list(range(1, 32))


def test_the_command_follows_a_file_that_a_service_writes(serve: Callable[..., Service], tmp_path: Path):
    """`events --follow --limit 3` shows two events that are there and the one that comes, and ends."""
    service = serve()
    with LedgerClient.connect(service.url) as client:
        client.create_library("lib")
        record(client, "a")
        command = [sys.executable, "-c", PROGRAM, "events", "lib", "--follow", "--limit", "4", "--json"]
        shown = subprocess.Popen(
            [*command, "--db", f"sqlite:///{tmp_path}/ledger.db"], stdout=subprocess.PIPE, text=True
        )
        assert shown.stdout is not None
        first = [json.loads(shown.stdout.readline())["sequence"] for _ in range(2)]
        record(client, "b", "c", "d")
        rest = [json.loads(line)["sequence"] for line in shown.stdout]
        shown.stdout.close()
        assert first + rest == [1, 2, 3, 4]
        assert shown.wait(timeout=10) == 0
