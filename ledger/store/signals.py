"""PostgreSQL's LISTEN and NOTIFY: word of growth between the processes on one database. A hint only, never the data."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ledger.store.bell import Bell

if TYPE_CHECKING:
    import psycopg

CHANNEL = "sagebook_grown"
_LONGEST = 7900
"""Bytes of a payload; PostgreSQL refuses 8,000. A longer name is told as "any library"."""
_SPACING_SECONDS = 0.01
"""NOTIFY takes a lock of the whole server at its commit, so it is sent apart from the appends, and not for each."""
_RETRY_SECONDS = 0.5


class Teller:
    """Tells other processes which libraries have grown, from a thread and a connection of its own."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._grown: set[str] = set()
        self._mutex = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, libraries: Iterable[str]) -> None:
        """Have it told soon."""
        with self._mutex:
            self._grown.update(libraries)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sagebook-notify", daemon=True)
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Tell what is left, and end."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        import psycopg  # noqa: PLC0415 - an extra; this module is imported without it, too

        while not self._stop.is_set():
            try:
                with psycopg.connect(self._target, autocommit=True) as connection:
                    self._send(connection)
            except psycopg.Error:
                # Those who listen also look by themselves now and then.
                self._stop.wait(_RETRY_SECONDS)

    def _send(self, connection: psycopg.Connection[Any]) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._mutex:
                names, self._grown = self._grown, set()
            if names:
                told = sorted({name if len(name.encode()) < _LONGEST else "" for name in names})
                connection.execute("SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name", (CHANNEL, told))
            if self._stop.wait(_SPACING_SECONDS):
                return


class Listener:
    """Rings the bell when another process told of growth, and after each time that word may have been missed."""

    def __init__(self, target: str, bell: Bell) -> None:
        self._target = target
        self._bell = bell
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._mutex = threading.Lock()

    def start(self) -> None:
        """Start listening, once."""
        with self._mutex:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="sagebook-listen", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        import psycopg  # noqa: PLC0415 - an extra; this module is imported without it, too

        while not self._stop.is_set():
            try:
                with psycopg.connect(self._target, autocommit=True, application_name="sagebook-listen") as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._bell.ring_all()
                    while not self._stop.is_set():
                        for said in connection.notifies(timeout=0.5, stop_after=1):
                            if said.payload:
                                self._bell.ring((said.payload,))
                            else:
                                self._bell.ring_all()
            except psycopg.Error:
                self._stop.wait(_RETRY_SECONDS)
