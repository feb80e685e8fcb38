"""Calls of the client on the store itself: the live feed, checkpoints, proofs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from ledger import check, follow, wire, wire_proofs

if TYPE_CHECKING:
    import httpx

_Model = TypeVar("_Model", bound=BaseModel)


class _Transport(Protocol):
    """What the calls below need of the client."""

    _http: httpx.Client
    _live: bool

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        params: Mapping[str, Any] | None = None,
        content: Iterable[bytes] | None = None,
        retry: bool = True,
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

    def checkpoint(self: _Transport, library: str) -> wire_proofs.Checkpoint:
        """A signed checkpoint of the library as it is. Raises HistoryRewrittenError."""
        return self._get(wire_proofs.Checkpoint, f"{self._lib(library)}/checkpoint")

    def inclusion_proof(
        self: _Transport, library: str, sequence: int, *, size: int | None = None
    ) -> wire_proofs.InclusionProof:
        """Proof that a record is in the tree of the first `size` records."""
        path = f"{self._lib(library)}/proofs/inclusion"
        return self._get(wire_proofs.InclusionProof, path, sequence=sequence, size=size)

    def consistency_proof(
        self: _Transport, library: str, first: int, second: int | None = None
    ) -> wire_proofs.ConsistencyProof:
        """Proof that the log of `first` records begins that of `second`."""
        path = f"{self._lib(library)}/proofs/consistency"
        return self._get(wire_proofs.ConsistencyProof, path, first=first, second=second)

    def verify(
        self: _Transport, library: str, *, checkpoints: Iterable[str] = (), key: str | None = None
    ) -> wire.Verification:
        """Have every stored record checked, and check here that the log has only grown since the given checkpoints.

        `key` is the verifier text of the key that signed them, which a careful reader has kept; by default it is what
        the ledger says now. Raises CheckpointInvalidError.
        """
        notes = list(checkpoints)
        asked = wire_proofs.VerificationRequest(checkpoints=notes, key=key)
        told = self._post(wire.Verification, f"{self._lib(library)}/verification", asked)
        if told.ok and notes:
            wrong = check.unproved(_Source(self, library), notes, key)
            if wrong is not None:
                return told.model_copy(update={"ok": False, "bad_sequence": wrong[0], "reason": wrong[1]})
        return told

    def prove(
        self: _Transport, library: str, sequence: int | None = None, *, since: str | None = None
    ) -> dict[str, Any]:
        """A bundle for `docs/verify_bundle.py`: a record, an earlier checkpoint, or both, against one made now."""
        return check.bundle(_Source(self, library), sequence, since)

    def import_trace(
        self: _Transport,
        library: str,
        lines: Iterable[bytes],
        *,
        resume: bool = False,
        policy: str | Mapping[str, Any] | None = None,
        create: bool = False,
    ) -> wire.ImportedTrace:
        """Import a trace (JSON lines). Raises TraceInvalidError with the line; the lines before it are stored.

        With `create` or a `policy` a library that is not there is made, under `policy`, else the trace's own, else
        `sage`; one that is there must have it. With `resume`, records that the library holds already are passed over.
        """
        given = policy if policy is None or isinstance(policy, str) else json.dumps(dict(policy))
        params = {"resume": resume or None, "policy": given, "create": create or None}
        response = self._send("POST", f"{self._lib(library)}/import", content=lines, params=params, retry=False)
        return wire.ImportedTrace.model_validate_json(response.content)

    def export_trace(self: _Transport, library: str) -> bytes:
        """The library as a trace that imports to the same state. Raises NotExpressibleError."""
        return self._send("GET", f"{self._lib(library)}/export").content

    def redact(self: _Transport, library: str, given: wire_proofs.Redaction) -> wire_proofs.Redacted:
        """Erase texts for good. Raises UnknownExperienceError, UnknownBlobError, InvalidInputError."""
        return self._post(wire_proofs.Redacted, f"{self._lib(library)}/redactions", given)


class _Source:
    """One library's proofs, as `ledger.check` asks for them."""

    def __init__(self, client: Any, library: str) -> None:
        self._client = client
        self.library = library

    def checkpoint(self) -> wire_proofs.Checkpoint:
        found: wire_proofs.Checkpoint = self._client.checkpoint(self.library)
        return found

    def inclusion(self, sequence: int, size: int) -> wire_proofs.InclusionProof:
        found: wire_proofs.InclusionProof = self._client.inclusion_proof(self.library, sequence, size=size)
        return found

    def consistency(self, first: int, second: int) -> list[bytes]:
        found: wire_proofs.ConsistencyProof = self._client.consistency_proof(self.library, first, second)
        return [bytes.fromhex(item) for item in found.path]
