"""Calls of the client on the store itself: the live feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from ledger import follow, wire

if TYPE_CHECKING:
    import httpx

_Model = TypeVar("_Model", bound=BaseModel)


class _Transport(Protocol):
    """What the calls below need of the client."""

    _http: httpx.Client
    _live: bool

    def _send(
        self, method: str, path: str, *, body: BaseModel | None = None, params: Mapping[str, Any] | None = None
    ) -> httpx.Response: ...

    def _get(self, kind: type[_Model], path: str, **params: Any) -> _Model: ...

    def _post(self, kind: type[_Model], path: str, body: BaseModel | None) -> _Model: ...

    def _lib(self, library: str) -> str: ...

    def _refuse(self, response: httpx.Response) -> None: ...

    def events(self, library: str, *, after: int = 0) -> Iterator[wire.EventRecord]: ...


class StoreCalls:
    """Mixed into `LedgerClient`."""

    def follow(self: _Transport, library: str, *, after: int = 0) -> Iterator[wire.EventRecord]:
        """Every event after a sequence, once, in order, then those to come, for ever; close the iterator to end it.

        A lost connection is taken up where it broke. Raises UnreachableError when the service stays away.
        """
        if not self._live:
            return follow.polled(lambda last: self.events(library, after=last), after)
        return follow.live(self._http, f"{self._lib(library)}/feed", after, self._refuse)
