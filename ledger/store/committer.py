"""Group commit: appends that wait at the same time share one transaction, and so one fsync.

There is no thread of its own. Whoever waits while nobody commits leads: it takes everything that is queued, commits it,
and answers all. A lone caller thus pays for no hand-over, and many callers cost one commit a round.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from ledger.errors import LedgerError
from ledger.store.log import Answer, Draft, Erasure, Expected, Head, Idempotency, Pending

MOST = 1024
"""Appends a transaction, so that the first of a long queue is not answered with the last."""
_GATHER_SHARE = 0.5
_GATHER_SECONDS = 0.002


class Append:
    """One batch on its way into the log. Others may share its transaction; none shares its failure."""

    __slots__ = (
        *("_committer", "after", "blobs", "done", "drafts", "erase"),
        *("error", "expected", "gates", "idempotency", "library", "outcome"),
    )

    def __init__(
        self,
        committer: Committer,
        library: str,
        drafts: Sequence[Draft],
        expected: Expected,
        idempotency: Idempotency | None,
        blobs: Mapping[str, bytes],
        after: Pending | None = None,
        erase: Erasure | None = None,
    ) -> None:
        self.library = library
        self.drafts = drafts
        self.expected = expected
        self.idempotency = idempotency
        self.blobs = blobs
        self.after = after
        self.erase = erase
        self.outcome: Head | Answer | None = None
        self.error: Exception | None = None
        self.done = False
        self.gates: list[threading.Lock] = []
        """One held lock for each thread that waits; opened by releasing it. An Event costs several times as much."""
        self._committer = committer

    @property
    def appended(self) -> bool:
        """Whether it was decided, and stored for the first time, as far as the transaction under way goes."""
        return self.error is None and isinstance(self.outcome, Head)

    def wait(self) -> Head | Answer:
        """Return once it is durable; raise what it was refused with. Any number of threads may wait."""
        return self._committer.wait(self)


class Committer:
    """A queue of appends in front of `commit`, which sets an outcome or an error on each that it is given."""

    def __init__(self, commit: Callable[[list[Append]], None]) -> None:
        self._commit = commit
        self._mutex = threading.Lock()
        self._queue: list[Append] = []
        self._leading = False
        self._last_size = 1
        self._last_seconds = 0.0
        self._wanted = 0
        self._gathered = threading.Event()
        self._line: list[threading.Lock] = []

    def put(self, item: Append) -> None:
        """Queue an append. Those of one library are decided in the order in which they were queued."""
        with self._mutex:
            self._queue.append(item)
            if self._wanted and len(self._queue) >= self._wanted:
                self._gathered.set()

    def wait(self, item: Append) -> Head | Answer:
        """Lead, or wait for who leads, until this one is answered."""
        while True:
            with self._mutex:
                if item.done:
                    break
                lead = not self._leading
                self._leading = True
                if not lead:
                    gate = threading.Lock()
                    gate.acquire()
                    item.gates.append(gate)
            if lead:
                self._lead()
            else:
                self._stand(item, gate)
        if item.error is not None:
            raise item.error
        if item.outcome is None:
            raise AssertionError(f"an append to {item.library!r} was answered with nothing")
        return item.outcome

    def _stand(self, item: Append, gate: threading.Lock) -> None:
        """Wait for the gate, then open the next one of the line."""
        try:
            gate.acquire()
        except BaseException:
            with self._mutex:
                for gates in (item.gates, self._line):
                    if gate in gates:
                        gates.remove(gate)
                if not self._leading:
                    self._call_next()
            self._wake()
            raise
        self._wake()

    def _lead(self) -> None:
        batch: list[Append] = []
        began = time.perf_counter()
        try:
            self._gather()
            with self._mutex:
                batch = self._queue[:MOST]
                del self._queue[:MOST]
            began = time.perf_counter()
            self._commit(batch)
        except BaseException as error:
            for item in batch:
                item.error = item.error or LedgerError(f"the append was interrupted by {type(error).__name__}")
            raise
        finally:
            with self._mutex:
                self._last_size = len(batch)
                self._last_seconds = time.perf_counter() - began
                self._leading = False
                for item in batch:
                    item.done = True
                    item.after = None
                    self._line += item.gates
                self._call_next()
            self._wake()

    def _call_next(self) -> None:
        """Have one that waits lead next, unless a newcomer is faster."""
        for item in self._queue:
            if item.gates:
                self._line += item.gates
                item.gates = []
                return

    def _wake(self) -> None:
        """Open one gate of the line; whoever comes through opens the next.

        All at once they would crowd round the interpreter's lock, and each would be put to sleep there once more.
        """
        with contextlib.suppress(IndexError):
            self._line.pop().release()

    def _gather(self) -> None:
        """Wait a moment for those whom the last commit answered: their next appends are on the way."""
        if self._last_size < 2:
            return
        with self._mutex:
            if len(self._queue) >= self._last_size:
                return
            self._gathered.clear()
            self._wanted = self._last_size
        self._gathered.wait(min(_GATHER_SECONDS, _GATHER_SHARE * self._last_seconds))
        with self._mutex:
            self._wanted = 0
