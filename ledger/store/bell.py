"""Wakes whoever waits for a library to grow. A ring is a hint: who waits looks now and then anyway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


class Bell:
    """Calls that are made after a library has grown. Safe to share between threads."""

    def __init__(self, on_listen: Callable[[], None] | None = None) -> None:
        """`on_listen` is called whenever somebody begins to listen."""
        self._on_listen = on_listen
        self._calls: dict[str, dict[int, Callable[[], None]]] = {}
        self._mutex = threading.Lock()
        self._next = 0

    def listen(self, library: str, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` made, on any thread, after each growth; it must be quick. Returns what ends that."""
        with self._mutex:
            number = self._next = self._next + 1
            self._calls.setdefault(library, {})[number] = call
        if self._on_listen is not None:
            self._on_listen()

        def end() -> None:
            with self._mutex:
                waiting = self._calls.get(library, {})
                waiting.pop(number, None)
                if not waiting:
                    self._calls.pop(library, None)

        return end

    def ring(self, libraries: Iterable[str]) -> None:
        """Tell that these have grown."""
        if not self._calls:
            return
        with self._mutex:
            calls = [call for library in libraries for call in self._calls.get(library, {}).values()]
        for call in calls:
            call()

    def ring_all(self) -> None:
        """Tell that any may have grown."""
        with self._mutex:
            calls = [call for waiting in self._calls.values() for call in waiting.values()]
        for call in calls:
            call()
