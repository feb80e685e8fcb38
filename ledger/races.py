"""How often a command that lost a race is decided again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

SECONDS = 20.0
"""Well below the minute that a client waits. Counted tries would be used up the sooner the busier the others are."""
_PAUSE = 0.01


def tries(seconds: float = SECONDS) -> Iterator[None]:
    """Give one try after another until the time is up, with short pauses of random length from the third on.

    Of several services on one library the one that wrote last is the quickest to decide again; the pauses let another
    service's commands meet the log at moments of their own.
    """
    until = time.monotonic() + seconds
    yield
    yield
    while time.monotonic() < until:
        time.sleep(random.uniform(0, _PAUSE))
        yield
