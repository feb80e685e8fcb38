"""The client's side of the live feed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ledger import errors, wire

if TYPE_CHECKING:
    import httpx

POLL_SECONDS = 0.2
_RETRIES = 8
_RETRY_SECONDS = 0.2
_SILENCE_SECONDS = 45.0
"""The service sends a comment every 15 seconds; after three of them missed the connection counts as lost."""


def records(lines: Iterable[str]) -> Iterator[wire.EventRecord]:
    """Events in the lines of a stream of server-sent events (WHATWG HTML, 9.2.6)."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield wire.EventRecord.model_validate_json("\n".join(data))
            data.clear()


def live(
    http: httpx.Client, path: str, after: int, refuse: Callable[[httpx.Response], None]
) -> Iterator[wire.EventRecord]:
    """Every event after `after`, once, in order, for ever; a lost connection is taken up where it broke.

    Raises UnreachableError when the service stays away, and what `refuse` raises for an answer that is an error.
    """
    import httpx  # noqa: PLC0415 - the command line's help needs no HTTP

    failed = 0
    while True:
        try:
            headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
            timeout = httpx.Timeout(_SILENCE_SECONDS)
            with http.stream("GET", path, headers=headers, timeout=timeout) as response:
                if response.is_error:
                    response.read()
                    refuse(response)
                for record in records(response.iter_lines()):
                    failed = 0
                    if record.sequence != after + 1:
                        raise errors.LogCorruptError(
                            record.library, record.sequence, f"the feed sent it where {after + 1} should be"
                        )
                    after = record.sequence
                    yield record
        except httpx.TransportError as error:
            failed += 1
            if failed > _RETRIES:
                raise errors.UnreachableError(str(http.base_url), str(error) or type(error).__name__) from error
        time.sleep(_RETRY_SECONDS * 2 ** min(failed, 4))


def polled(read: Callable[[int], Iterable[wire.EventRecord]], after: int) -> Iterator[wire.EventRecord]:
    """As `live`, by looking again and again: for a ledger in this process."""
    while True:
        for record in read(after):
            after = record.sequence
            yield record
        time.sleep(POLL_SECONDS)
