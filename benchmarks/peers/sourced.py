"""eventsourcing (pyeventsourcing) by its public `Application.save`, at its default durability. Runs in .venv-bench.

Each line of standard input is a JSON list: ["sqlite", file] or ["postgres", host, port, user, database] opens it;
["append", events, seconds] gives events a second of saves of so many events; ["rebuild", events] fills one aggregate
and gives the seconds of reading it back. Each answer is one JSON value a line; the first line is the version.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from typing import Any


def _make(env: dict[str, str]) -> tuple[Any, Any]:
    application = importlib.import_module("eventsourcing.application")
    domain = importlib.import_module("eventsourcing.domain")

    class Ledger(domain.Aggregate):  # type: ignore[name-defined, misc]
        """Fields of about the size of ours."""

        @domain.event("Created")  # type: ignore[untyped-decorator]
        def __init__(self) -> None:
            self.count = 0
            self.total = 0.0

        @domain.event("Recorded")  # type: ignore[untyped-decorator]
        def record(  # the decorator stores the arguments
            self,
            kind: str,  # noqa: ARG002
            stream: str,  # noqa: ARG002
            actor: str,  # noqa: ARG002
            text: str,  # noqa: ARG002
            amount: float,
        ) -> None:
            """One event."""
            self.count += 1
            self.total += amount

    globals()["Ledger"] = Ledger
    Ledger.__qualname__ = "Ledger"
    for name in ("Created", "Recorded"):
        getattr(Ledger, name).__qualname__ = f"Ledger.{name}"
    return application.Application(env=env), Ledger


class Peer:
    """One opened store."""

    def __init__(self, kind: str, *where: str) -> None:
        env = {"PERSISTENCE_MODULE": f"eventsourcing.{kind}"}
        if kind == "sqlite":
            env |= {"SQLITE_DBNAME": where[0], "SQLITE_LOCK_TIMEOUT": "30"}
        else:
            names = ("HOST", "PORT", "USER", "DBNAME")
            env |= {f"POSTGRES_{name}": value for name, value in zip(names, where, strict=True)}
            env["POSTGRES_PASSWORD"] = "unused"  # noqa: S105 - the server trusts loopback
        self._application, self._kind = _make(env)
        self._filled: Any = None

    def _record(self, aggregate: Any, count: int) -> None:
        for _ in range(count):
            aggregate.record(kind="observed", stream="agent-1", actor="user-1", text="x" * 240, amount=1.5)

    def append(self, events: int, seconds: float) -> float:
        """Events a second."""
        aggregate = self._kind()
        self._application.save(aggregate)
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            self._record(aggregate, events)
            self._application.save(aggregate)
            done += events
        return done / elapsed

    def rebuild(self, events: int) -> float:
        """Seconds."""
        if self._filled is None:
            aggregate = self._kind()
            for _ in range(events // 1000):
                self._record(aggregate, 1000)
                self._application.save(aggregate)
            self._filled = aggregate.id
        start = time.perf_counter()
        found = self._application.repository.get(self._filled)
        seconds = time.perf_counter() - start
        assert found.count == events // 1000 * 1000  # noqa: S101 - a benchmark of the right thing
        return seconds


def main() -> None:
    """Answer until the end of standard input."""
    print(json.dumps(importlib.metadata.version("eventsourcing")), flush=True)
    peer: Peer | None = None
    for line in sys.stdin:
        command, *values = json.loads(line)
        answer: float = 0.0
        if command in {"sqlite", "postgres"}:
            peer = Peer(command, *map(str, values))
        elif peer is not None:
            answer = peer.append(*values) if command == "append" else peer.rebuild(*values)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
