"""The typed client of the ledger's HTTP API, used by everything outside the service.

`connect` speaks to a running service; `ledger.bootstrap.embedded_client` gives the same client over an in-process
transport. Errors come back as the classes of `ledger.errors`, with the service's own words.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from ledger import errors, wire
from ledger.client_govern import GovernCalls
from ledger.client_store import StoreCalls
from ledger.policy_file import policy_argument
from ledger.words import made, step

__all__ = ["LedgerClient", "policy_argument"]

_Model = TypeVar("_Model", bound=BaseModel)
_RETRIES = 5
_RETRY_SECONDS = 0.2


def _error_classes() -> dict[str, type[errors.LedgerError]]:
    return {
        item.code: item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, errors.LedgerError)
    }


def _raise_problem(response: httpx.Response) -> None:
    try:
        body: dict[str, Any] = response.json()
    except ValueError:
        body = {}
    code = str(body.get("code", "ledger-error"))
    detail = str(body.get("detail") or f"the ledger answered {response.status_code}: {response.text[:500]}")
    kind = _error_classes().get(code, errors.LedgerError)
    error = kind.__new__(kind)
    facts = {
        k: v for k, v in body.items() if k not in {"type", "title", "status", "detail", "code", "instance", "errors"}
    }
    errors.LedgerError.__init__(error, detail, **facts)
    for name, value in facts.items():
        setattr(error, name, value)
    raise error


class LedgerClient(StoreCalls, GovernCalls):
    """One ledger. Safe to share between threads. Writes carry an idempotency key: a cut one is retried safely."""

    def __init__(self, http: httpx.Client, *, actor: str = "agent", live: bool = True) -> None:
        """`live`: the transport hands out answers as they come, so feeds can be followed."""
        self._http = http
        self._live = live
        self._actor = actor

    @classmethod
    def connect(cls, url: str, *, actor: str = "agent", timeout: float = 60.0) -> LedgerClient:
        """A client of the service at `url`, e.g. `http://127.0.0.1:8321`."""
        return cls(httpx.Client(base_url=url, timeout=timeout), actor=actor)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- transport -------------------------------------------------------------------------------------------------

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        content: bytes | Iterable[bytes] | None = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        retry: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        headers = {"X-Actor": quote(self._actor), **(headers or {})}
        if method != "GET":
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        if body is not None:
            content = body.model_dump_json(by_alias=True).encode()
            headers["Content-Type"] = "application/json"
        given = {k: v for k, v in (params or {}).items() if v is not None}
        attempt = 0
        while True:
            try:
                response = self._http.request(method, path, content=content, headers=headers, params=given)
                break
            except httpx.TransportError as error:
                # The key makes a repeat harmless: what was stored already is answered again, not stored twice.
                attempt += 1
                if attempt > _RETRIES or not retry:
                    raise errors.UnreachableError(
                        str(self._http.base_url), str(error) or type(error).__name__
                    ) from error
                time.sleep(_RETRY_SECONDS * 2 ** (attempt - 1))
        if response.is_error:
            _raise_problem(response)
        return response

    def _get(self, kind: type[_Model], path: str, **params: Any) -> _Model:
        return kind.model_validate_json(self._send("GET", path, params=params).content)

    def _post(self, kind: type[_Model], path: str, body: BaseModel | None, *, key: str | None = None) -> _Model:
        return kind.model_validate_json(self._send("POST", path, body=body, key=key).content)

    @staticmethod
    def _refuse(response: httpx.Response) -> None:
        _raise_problem(response)

    @staticmethod
    def _lib(library: str) -> str:
        return f"/v1/libraries/{step('library', library)}"

    def _stage(self, library: str, stage: str) -> str:
        return f"{self._lib(library)}/stages/{step('stage', stage)}"

    def _experience(self, library: str, experience: str) -> str:
        return f"{self._lib(library)}/experiences/{step('experience', experience)}"

    # --- libraries -------------------------------------------------------------------------------------------------

    def create_library(
        self, library: str, *, policy: str | Mapping[str, Any] = "sage", title: str = ""
    ) -> wire.Library:
        """Open a library. Raises LibraryExistsError, PolicyError."""
        given = policy if isinstance(policy, str) else dict(policy)
        return self._post(
            wire.Library, "/v1/libraries", made(wire.NewLibrary, library=library, policy=given, title=title)
        )

    def libraries(self) -> list[wire.Library]:
        """All libraries, by name."""
        items: list[wire.Library] = []
        cursor: str | None = None
        while True:
            page = self._get(wire.Libraries, "/v1/libraries", cursor=cursor)
            items.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return items

    def library(self, library: str) -> wire.Library:
        """One library. Raises UnknownLibraryError."""
        return self._get(wire.Library, self._lib(library))

    # --- experiences -----------------------------------------------------------------------------------------------

    def record_experience(self, library: str, new: wire.NewExperience) -> wire.Experience:
        """Put an experience into cold memory. Raises ExperienceExistsError."""
        return self._post(wire.Experience, f"{self._lib(library)}/experiences", new)

    def amend_experience(self, library: str, experience: str, change: wire.AmendExperience) -> wire.Experience:
        """Change its text; value and history stay."""
        return self._post(wire.Experience, f"{self._experience(library, experience)}/amendments", change)

    def experience(self, library: str, experience: str) -> wire.Experience:
        """One experience with its text. Raises UnknownExperienceError."""
        return self._get(wire.Experience, self._experience(library, experience))

    def experiences(
        self, library: str, asked: wire.ExperienceFilter | None = None, **named: Any
    ) -> list[wire.Experience]:
        """All experiences, or those asked for: by the filter, or by its fields (`resident=True`, `stale=True` ...)."""
        given = made(wire.ExperienceFilter, **((asked.model_dump() if asked else {}) | named))
        params = {k: v for k, v in given.model_dump(exclude_defaults=True).items() if v is not None}
        items: list[wire.Experience] = []
        cursor: str | None = None
        while True:
            page = self._get(wire.Experiences, f"{self._lib(library)}/experiences", **params, cursor=cursor)
            items.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return items

    def distill_rule(self, library: str, experience: str, rule: wire.NewRule) -> wire.ConsolidationResult | None:
        """Give an experience its rule text; the resident set is rebuilt."""
        response = self._send("POST", f"{self._experience(library, experience)}/rule", body=rule)
        return (
            None
            if response.status_code == httpx.codes.NO_CONTENT
            else wire.ConsolidationResult.model_validate_json(response.content)
        )

    def retire_experience(self, library: str, experience: str, reason: str) -> wire.Experience:
        """Offer it no more."""
        path = f"{self._experience(library, experience)}/retirement"
        return self._post(wire.Experience, path, made(wire.Retirement, reason=reason))

    # --- tasks and stages ------------------------------------------------------------------------------------------

    def start_task(self, library: str, new: wire.NewTask) -> wire.Task:
        """Begin an attempt at one operator. Raises TaskExistsError."""
        return self._post(wire.Task, f"{self._lib(library)}/tasks", new)

    def task(self, library: str, task: str) -> wire.Task:
        """One task with its stages and candidates. Raises UnknownTaskError."""
        return self._get(wire.Task, f"{self._lib(library)}/tasks/{step('task', task)}")

    def tasks(self, library: str) -> list[wire.Task]:
        """All tasks in the order in which they were started."""
        items: list[wire.Task] = []
        cursor: str | None = None
        while True:
            page = self._get(wire.Tasks, f"{self._lib(library)}/tasks", cursor=cursor)
            items.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return items

    def finish_task(self, library: str, task: str, *, summary: str = "") -> wire.Task:
        """End the attempt. Raises StageOpenError while a stage is open."""
        path = f"{self._lib(library)}/tasks/{step('task', task)}/finish"
        return self._post(wire.Task, path, made(wire.FinishTask, summary=summary))

    def open_stage(self, library: str, task: str, new: wire.NewStage) -> wire.OpenedStage:
        """Begin a stage; the answer carries the resident rules."""
        return self._post(wire.OpenedStage, f"{self._lib(library)}/tasks/{step('task', task)}/stages", new)

    def stage(self, library: str, stage: str) -> wire.Stage:
        """One stage as it stands. Raises UnknownStageError."""
        return self._get(wire.Stage, self._stage(library, stage))

    def retrieve(
        self, library: str, stage: str, query: str, *, limit: int | None = None, stale: bool = True
    ) -> list[wire.Offered]:
        """Experiences relevant to the query, re-ranked by value, recorded as offered; `stale=False`: none of those."""
        body = made(wire.Retrieval, query=query, limit=limit, stale=stale)
        return self._post(wire.Retrieved, f"{self._stage(library, stage)}/retrievals", body).offered

    def decide(self, library: str, stage: str, decisions: Iterable[wire.Decision]) -> wire.Stage:
        """Say of offers whether they were adopted, and why. Raises NotOfferedError."""
        return self._post(
            wire.Stage, f"{self._stage(library, stage)}/decisions", made(wire.Decisions, decisions=list(decisions))
        )

    def propose_candidate(self, library: str, stage: str, new: wire.NewCandidate) -> wire.Candidate:
        """Record a kernel that is about to be judged; it takes one round of the budget. Raises BudgetSpentError."""
        return self._post(wire.Candidate, f"{self._stage(library, stage)}/candidates", new)

    def report(self, library: str, stage: str, candidate: str, report: wire.Report) -> wire.Candidate:
        """Hand in the judge's signed report on a candidate. Raises ReportInvalidError."""
        path = f"{self._stage(library, stage)}/candidates/{step('candidate', candidate)}/report"
        return self._post(wire.Candidate, path, report)

    def diagnose(self, library: str, stage: str, diagnosis: wire.Diagnosis) -> wire.Appended:
        """Record what a tool's evidence said and what follows."""
        return self._post(wire.Appended, f"{self._stage(library, stage)}/diagnoses", diagnosis)

    def cost(self, library: str, stage: str, cost: wire.Cost) -> wire.Appended:
        """Record what a step cost."""
        return self._post(wire.Appended, f"{self._stage(library, stage)}/costs", cost)

    def report_outcome(self, library: str, stage: str, outcome: wire.ReportedOutcome) -> wire.Appended:
        """Record a verdict made by hand, for a stage opened with basis `reported`."""
        return self._post(wire.Appended, f"{self._stage(library, stage)}/outcome", outcome)

    def score_stage(self, library: str, stage: str) -> wire.Score:
        """Close the stage; its score comes from the facts. Raises DecisionsMissingError, EvidenceMissingError."""
        return self._post(wire.Score, f"{self._stage(library, stage)}/score", None)

    def abandon_stage(self, library: str, stage: str, reason: str) -> wire.Stage:
        """Close the stage without a score."""
        return self._post(
            wire.Stage, f"{self._stage(library, stage)}/abandonment", made(wire.Abandonment, reason=reason)
        )

    # --- log, blobs, audit -----------------------------------------------------------------------------------------

    def events(self, library: str, *, after: int = 0, page: int = 500) -> Iterator[wire.EventRecord]:
        """The log from `after` (exclusive) to its head, in order."""
        while True:
            answer = self._get(wire.Events, f"{self._lib(library)}/events", after=after, limit=page)
            yield from answer.items
            if not answer.items or answer.items[-1].sequence >= answer.head:
                return
            after = answer.items[-1].sequence

    def state(self, library: str, *, at: int | str | None = None) -> wire.State:
        """Values, frequencies and residents now, or as of a sequence or time."""
        return self._get(wire.State, f"{self._lib(library)}/state", at=at)

    def put_blob(self, library: str, data: bytes) -> str:
        """Store a text or file once; returns its SHA-256."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._send("PUT", f"{self._lib(library)}/blobs/{sha256}", content=data)
        return sha256

    def blob(self, library: str, sha256: str) -> bytes:
        """The content of a blob. Raises UnknownBlobError."""
        return self._send("GET", f"{self._lib(library)}/blobs/{step('blob', sha256)}").content

    def why(self, library: str, experience: str, *, at: int | str | None = None) -> dict[str, Any]:
        """Why a rule is resident or not, now or as of a sequence or time, back to measurements and code."""
        path = f"{self._experience(library, experience)}/why"
        return cast("dict[str, Any]", self._send("GET", path, params={"at": at}).json())

    def why_not(self, library: str, experience: str, *, at: int | str | None = None) -> wire.WhyNot:
        """What keeps a rule out, by how much, and the least change that would let it in."""
        return self._get(wire.WhyNot, f"{self._experience(library, experience)}/why-not", at=at)

    def diff(self, library: str, start: int | str, end: int | str | None = None) -> wire.LibraryDiff:
        """What changed between two points, sequences or times, and which events did it."""
        return self._get(wire.LibraryDiff, f"{self._lib(library)}/diff", start=start, end=end)

    def costs(self, library: str, *, by: str = "library") -> wire.Costs:
        """What the work cost by library, operator, task, stage, round or model, and what rules cost and brought."""
        return self._get(wire.Costs, f"{self._lib(library)}/costs", by=by)

    def evidence(self, library: str) -> wire.HoldoutEvidence:
        """Hold-out evidence of each rule."""
        return self._get(wire.HoldoutEvidence, f"{self._lib(library)}/evidence")
