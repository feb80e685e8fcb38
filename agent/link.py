"""The line to the ledger: keys that make a repeat harmless, waiting for a ledger that is away, refusals told apart.

Every write can be repeated. Ids are derived from run, operator, stage and round, so a repeat meets what it stored
before; over HTTP each write also carries an idempotency key derived from the same names and its content. A ledger that
does not answer is waited for; one that refuses something that the loop promises never to do is our bug.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from agent.errors import BugError, LedgerUnavailableError
from agent.retry import Backoff
from ledger import errors
from ledger.client import LedgerClient

_T = TypeVar("_T")
_RACES = 20
_FAULTS = 3
_STEP: ContextVar[str] = ContextVar("ledger_step", default="")


def connect(url: str, *, actor: str, timeout: float = 60.0) -> LedgerClient:
    """A client whose writes carry keys derived from the step and the content, so that no repeat counts twice."""
    http = httpx.Client(base_url=url, timeout=timeout, event_hooks={"request": [_derive_key]})
    return LedgerClient(http, actor=actor)


def _derive_key(request: httpx.Request) -> None:
    step = _STEP.get()
    if step and request.method == "POST":
        named = f"{step}\n{request.method} {request.url.path}\n".encode() + request.read()
        request.headers["Idempotency-Key"] = hashlib.sha256(named).hexdigest()


@dataclass
class Line:
    """Sends one step after the other to a ledger."""

    patience: Backoff = field(default_factory=Backoff)
    """How long an unreachable ledger is waited for, beyond the client's own few seconds."""
    revive: Callable[[], None] | None = None
    """Called before each wait: a run that owns the ledger's process starts it again here if it died."""
    notice: Callable[[str], None] | None = None
    """Told when the ledger is being waited for."""
    sleep: Callable[[float], None] = time.sleep

    def call(self, step: str, send: Callable[[], _T], *, expect: tuple[type[errors.LedgerError], ...] = ()) -> _T:
        """Send one step. `expect` are the refusals that the caller reads itself.

        Raises LedgerUnavailableError when the patience is used up, BugError for a refusal that was not expected.
        """
        waits = self.patience.waits()
        races = faults = 0
        token = _STEP.set(step)
        try:
            while True:
                try:
                    return send()
                except expect:
                    raise
                except errors.UnreachableError as error:
                    self._wait(next(waits, None), error)
                except errors.SequenceConflictError as error:
                    races += 1
                    if races > _RACES:
                        raise LedgerUnavailableError(f"{error} ({races} times in step {step!r})") from error
                except (
                    errors.RefusedError,
                    errors.InvalidInputError,
                    errors.ConflictError,
                    errors.NotFoundError,
                ) as error:
                    raise BugError(f"the ledger refused {step!r}: {error}") from error
                except errors.LedgerError as error:
                    faults += 1
                    if faults > _FAULTS:
                        raise LedgerUnavailableError(
                            f"the ledger failed {faults} times at {step!r}: {error}"
                        ) from error
                    self._wait(self.patience.first * 2**faults, error)
        finally:
            _STEP.reset(token)

    def _wait(self, seconds: float | None, error: errors.LedgerError) -> None:
        if seconds is None:
            raise LedgerUnavailableError(
                f"{error}. It was waited for {self.patience.patience:.0f} s. Nothing is lost: run the same command "
                "again and it continues from what the ledger holds"
            ) from error
        if self.notice is not None:
            self.notice(f"waiting for the ledger: {error}")
        if self.revive is not None:
            self.revive()
        self.sleep(seconds)
