"""Calls of the client for those who look after a library: reversals, conflicts, policies, re-derivation."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from ledger import errors, wire
from ledger.progress import Tell, watching
from ledger.words import made, step

if TYPE_CHECKING:
    import httpx

_Model = TypeVar("_Model", bound=BaseModel)


class _Transport(Protocol):
    """What the calls below need of the client."""

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response: ...

    def _get(self, kind: type[_Model], path: str, **params: Any) -> _Model: ...

    def _post(self, kind: type[_Model], path: str, body: BaseModel | None) -> _Model: ...

    def _lib(self, library: str) -> str: ...

    def _experience(self, library: str, experience: str) -> str: ...

    def _progress(self, key: str) -> tuple[int, int] | None: ...

    def _watched(
        self,
        kind: type[_Model],
        method: str,
        path: str,
        tell: Tell | None,
        *,
        body: BaseModel | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> _Model: ...


class GovernCalls:
    """Mixed into `LedgerClient`."""

    def invalidate(
        self: _Transport,
        library: str,
        subject: str,
        reason: str,
        *,
        by: Literal["person", "judge"] = "person",
        tell: Tell | None = None,
    ) -> wire.Reversal:
        """Withdraw verdicts: `stage:ID`, `task:ID` or `candidate:SHA256`. Raises NothingToReverseError."""
        body = made(wire.NewReversal, subject=subject, reason=reason, by=by)
        return self._watched(wire.Reversal, "POST", f"{self._lib(library)}/invalidations", tell, body=body)

    def reinstate(
        self: _Transport,
        library: str,
        subject: str,
        reason: str,
        *,
        by: Literal["person", "judge"] = "person",
        tell: Tell | None = None,
    ) -> wire.Reversal:
        """Let withdrawn verdicts count again. `tell` hears how far it is, of how many events."""
        body = made(wire.NewReversal, subject=subject, reason=reason, by=by)
        return self._watched(wire.Reversal, "POST", f"{self._lib(library)}/reinstatements", tell, body=body)

    def supersede(self: _Transport, library: str, experience: str, by: str, reason: str) -> wire.Experience:
        """Put a newer experience in the place of an older one."""
        body = made(wire.Supersession, by=by, reason=reason)
        return self._post(wire.Experience, f"{self._experience(library, experience)}/supersession", body)

    def conflicts(self: _Transport, library: str) -> list[wire.Conflict]:
        """All conflicts, open and settled."""
        return self._get(wire.Conflicts, f"{self._lib(library)}/conflicts").items

    def record_conflict(self: _Transport, library: str, new: wire.NewConflict) -> wire.Conflict:
        """Link two experiences that contradict each other. Raises ConflictExistsError."""
        return self._post(wire.Conflict, f"{self._lib(library)}/conflicts", new)

    def change_policy(self: _Transport, library: str, policy: str | Mapping[str, Any], reason: str) -> wire.Library:
        """Put another policy in force: a preset's name, or fields over the one that holds. Raises PolicyError."""
        given = policy if isinstance(policy, str) else dict(policy)
        return self._post(
            wire.Library, f"{self._lib(library)}/policy", made(wire.NewPolicy, policy=given, reason=reason)
        )

    def resolve_conflict(
        self: _Transport, library: str, conflict: str, *, loser: str | None, reason: str
    ) -> wire.Conflict:
        """Settle a conflict; without a loser there was none."""
        path = f"{self._lib(library)}/conflicts/{step('conflict', conflict)}/resolution"
        return self._post(wire.Conflict, path, made(wire.ConflictEnd, loser=loser, reason=reason))

    def rederive(
        self: _Transport, library: str, *, policy: str | Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> wire.Rederivation:
        """Recompute from the facts, under the recorded policy or another; `tell` hears how far it is, of how many."""
        given = policy if policy is None or isinstance(policy, str) else json.dumps(dict(policy))
        path = f"{self._lib(library)}/rederivation"
        return self._watched(wire.Rederivation, "GET", path, tell, params={"policy": given})

    def _watched(
        self: _Transport,
        kind: type[_Model],
        method: str,
        path: str,
        tell: Tell | None,
        *,
        body: BaseModel | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> _Model:
        key = uuid.uuid4().hex
        with watching(lambda: self._progress(key), tell) if tell else nullcontext():
            response = self._send(method, path, body=body, params=params, headers={"X-Progress": key})
        return kind.model_validate_json(response.content)

    def _progress(self: _Transport, key: str) -> tuple[int, int] | None:
        """How far a call is; None where it can not be said: that is for the call itself to tell."""
        try:
            found = self._get(wire.Progress, f"/v1/progress/{key}")
        except errors.LedgerError:
            return None
        return found.done, found.of
