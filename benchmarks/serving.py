"""A served ledger on a database, and callers that record experiences through HTTP."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ledger import wire
from ledger.client import LedgerClient


def _record(client: LedgerClient, until: float) -> int:
    done = 0
    while True:
        new = wire.NewExperience(
            experience=uuid.uuid4().hex, title="threads = rows", body="one thread a row", stages=("correctness",)
        )
        client.record_experience("http", new)
        done += 1
        if time.perf_counter() >= until:
            return done


@contextlib.contextmanager
def over_http(url: str, folder: Path) -> Iterator[Callable[[int, float], float]]:
    """Serve the database; gives (callers, seconds) -> experiences recorded a second."""
    command = [sys.executable, "-m", "benchmarks.serving", "--db", url, "--port", "0"]
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    service = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603 - this module
    try:
        told = next(line for line in service.stderr or () if line.startswith("ledger on "))
        address = told.split()[2].rstrip(",")
        with LedgerClient.connect(address) as client:
            client.create_library("http")

            def rate(callers: int, seconds: float) -> float:
                with ThreadPoolExecutor(callers) as pool, LedgerClient.connect(address) as many:
                    list(pool.map(lambda _: _record(many, 0.0), range(callers)))
                    began = time.perf_counter()
                    done = sum(pool.map(lambda _: _record(many, began + seconds), range(callers)))
                return done / (time.perf_counter() - began)

            yield rate
    finally:
        service.terminate()
        service.wait()
        if service.stderr:
            service.stderr.close()


if __name__ == "__main__":
    import typer

    from ledger.cli import register

    app = typer.Typer()
    register(app)
    app(["serve", *sys.argv[1:]])
