"""One service a SQLite file: a lock beside the file, held by the operating system and gone with the process.

A service holds it exclusively for its life. A process that writes once in a while, such as a command, holds it shared
during each of its transactions; among these SQLite itself takes turns. Reading needs no lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from pathlib import Path

from ledger.errors import WriterHeldError

_PATIENCE_SECONDS = 5.0
"""How long a service that starts waits for transactions of others to end."""


class WriterLock:
    """The right to write one SQLite file."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._database = database
        self._file: int | None = None
        self._service = False
        self._transactions = 0
        self._guard = threading.Lock()

    def hold(self, where: str) -> None:
        """Hold it until `release`, as a service that is reached at `where`. Raises WriterHeldError."""
        file = self._opened()
        until = time.monotonic() + _PATIENCE_SECONDS
        while not _try(file, fcntl.LOCK_EX):
            holder = self._holder()
            if holder is not None or time.monotonic() > until:
                raise WriterHeldError(str(self._database), *(holder or (None, "")))
            time.sleep(0.01)
        self._service = True
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "where": where}).encode(), 0)

    def begin(self) -> None:
        """Before a transaction that writes. Raises WriterHeldError while a service holds the file."""
        file = self._opened()
        with self._guard:
            if not (self._service or self._transactions or _try(file, fcntl.LOCK_SH)):
                raise WriterHeldError(str(self._database), *(self._holder() or (None, "")))
            self._transactions += 1

    def end(self) -> None:
        """After it."""
        with self._guard:
            self._transactions -= 1
            if not (self._service or self._transactions or self._file is None):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def release(self) -> None:
        """Let go of it."""
        with self._guard:
            if self._file is None:
                return
            if self._service:
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None
            self._service = False

    def _opened(self) -> int:
        with self._guard:
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            return self._file

    def _holder(self) -> tuple[int, str] | None:
        """Process and address of the service that holds it; None while nobody has written them."""
        try:
            told = json.loads(self.path.read_text(encoding="utf-8"))
            pid, where = int(told["pid"]), str(told["where"])
            # A service that was killed leaves its name behind, but not the lock.
            os.kill(pid, 0)
        except (ValueError, KeyError, TypeError, FileNotFoundError, ProcessLookupError):
            return None
        except PermissionError:  # it lives, and is another user's
            return pid, where
        return pid, where


def _try(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
