"""The connection to PostgreSQL is cut around the commit: the caller can not know, asks again, and it happened once."""

from __future__ import annotations

import contextlib
import random
import re
import select
import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest

from ledger.errors import StoreUnavailableError
from ledger.store import chain
from ledger.store.log import Answer, AnySequence, Draft, Head, Idempotency, NewLibrary
from ledger.store.sql import open_log


class Wire:
    """A loopback proxy to the server that can cut a connection when a commit passes, before it or after."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.cut: str | None = None
        """`before`: the commit never arrives; `after`: it does, and its answer never comes back. Once."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server, contextlib.suppress(OSError):
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is client and self.cut and b"COMMIT" in data:
                        when, self.cut = self.cut, None
                        if when == "after":
                            server.sendall(data)
                            server.recv(65536)
                        return
                    (server if ready is client else client).sendall(data)


@pytest.fixture
def proxied(postgres_url: str) -> Iterator[tuple[Wire, str]]:
    found = re.search(r"127\.0\.0\.1:(\d+)", postgres_url)
    if found is None:
        pytest.skip("the server given is not on loopback")
    wire = Wire(int(found[1]))
    yield wire, postgres_url.replace(f":{found[1]}/", f":{wire.port}/")
    wire.close()


def test_a_retry_after_a_cut_commit_makes_one_event(proxied: tuple[Wire, str]):
    """60 keys, two thirds cut, before or after the commit: each is refused, sent again, and is in the log once."""
    wire, url = proxied
    rng = random.Random(20261201)
    log = open_log(url)
    answers: list[Head | Answer] = []
    cuts = {"before": 0, "after": 0, None: 0}
    for number in range(60):
        draft = Draft(
            "test.happened", 1, f"{number}", "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"%d" % number)
        )
        key = Idempotency(f"key-{number}", b"digest", b"%d" % number)
        when = rng.choice(["before", "after", None])
        cuts[when] += 1
        wire.cut = when
        expected = AnySequence() if number else NewLibrary()
        if when is not None:
            with pytest.raises(StoreUnavailableError, match="same idempotency key"):
                log.append("lib", [draft], expected=expected, idempotency=key)
        answers.append(log.append("lib", [draft], expected=expected, idempotency=key))
        # What was committed before the cut is answered as it was then.
        assert isinstance(answers[-1], Answer if when == "after" else Head)
    assert min(cuts.values()) > 10
    assert [row.record.rsplit(b":", 1)[1] for row in log.read("lib")] == [b"%d}" % n for n in range(60)]
    assert chain.audit(log, "lib").events == 60
    log.close()
