"""How far long calls have come: told by who works, read by who waits, under a key that the caller chose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ledger.errors import ProgressUnknownError

MOST = 1000
"""Calls at a time that can be watched; those above it run unwatched."""
POLL_SECONDS = 0.2
_TOLD_EVERY = 500
_Item = TypeVar("_Item")

Tell = Callable[[int, int], None]
"""Takes how much is done, and of how much."""


def untold(_done: int, _of: int) -> None:
    """Nobody asked."""


def counted(events: Iterator[_Item], of: int, tell: Tell) -> Iterator[_Item]:
    """The events, while `tell` hears how many have gone by."""
    for done, event in enumerate(events):
        if done % _TOLD_EVERY == 0:
            tell(done, of)
        yield event


class Progress:
    """Calls that are running. Safe under threads."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[int, int]] = {}

    @contextmanager
    def telling(self, key: str | None) -> Iterator[Tell]:
        """Let the call that runs inside be watched under `key`."""
        if key is None or (key not in self._running and len(self._running) >= MOST):
            yield untold
            return

        def tell(done: int, of: int) -> None:
            self._running[key] = (done, of)

        tell(0, 0)
        try:
            yield tell
        finally:
            self._running.pop(key, None)

    def read(self, key: str) -> tuple[int, int]:
        """How much is done, and of how much. Raises ProgressUnknownError where nothing runs under the key."""
        found = self._running.get(key)
        if found is None:
            raise ProgressUnknownError(key)
        return found


@contextmanager
def watching(read: Callable[[], tuple[int, int] | None], tell: Tell) -> Iterator[None]:
    """Hand what `read` finds (None: nothing) to `tell`, five times a second, while the call runs inside."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_SECONDS):
            found = read()
            if found is not None:
                tell(*found)

    thread = threading.Thread(target=watch, name="sagebook-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
