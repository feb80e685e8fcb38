"""A library as a trace: JSON lines that import to the same state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ledger import trace
from ledger.domain import events as ev
from ledger.errors import NotExpressibleError
from ledger.service import Ledger

_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
Record = dict[str, Any]
_PLAIN_TASK = {"record", "task", "operator", "level", "model", "budget"}


def export_trace(ledger: Ledger, library: str) -> Iterator[bytes]:
    """Lines of a trace, each with its newline. A stage that was told at once is one record, another one many.

    A text that was erased stands as `[erased]`. Raises NotExpressibleError at a candidate that was judged and whose
    source, report or signature is gone.
    """
    writer = _Writer(ledger, library)
    held: list[Record] = []
    for record in writer.records():
        for line in _joined(held, record, writer):
            yield _line(line)
    for line in held:
        yield _line(line)


def held_records(ledger: Ledger, library: str) -> Iterator[trace.TraceRecord]:
    """Every record that the library's log comes to, a stage that was told at once in both of its forms."""
    writer = _Writer(ledger, library)
    held: list[Record] = []
    for record in writer.records():
        yield trace.read(_line(record))
        for line in _joined(held, record, writer):
            if line["record"] == "stage":
                yield trace.read(_line(line))


def _line(record: Record) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def _joined(held: list[Record], record: Record, writer: _Writer) -> Iterator[Record]:
    """Records as they are to be written: a reported stage in one, where nothing else happened meanwhile.

    `held` are the steps of a stage that may become one record.
    """
    if _goes_on(held, record):
        held.append(record)
        if record["record"] == "score":
            yield _whole(held, writer)
            held.clear()
        return
    yield from held
    held.clear()
    if _goes_on(held, record):
        held.append(record)
    else:
        yield record


def _goes_on(held: list[Record], record: Record) -> bool:  # noqa: PLR0911 - one return a step
    """Whether the record is the next step of a stage as the `stage` record tells it."""
    kind: str = record["record"]
    last = held[-1] if held else None
    if last is None or last["record"] == "task":
        if kind == "task":
            return last is None and set(record) == _PLAIN_TASK and record["budget"] == 1
        if kind != "open" or record["basis"] != "reported":
            return False
        return last is None or bool((last["task"], last["operator"]) == (record["task"], record["operator"]))
    if record.get("stage") != last["stage"]:
        return False
    step: str = last["record"]
    if kind == "retrieve":
        return step == "open" and set(record) == {"record", "stage", "offered", "query"} and not record["query"]
    if kind == "decide":
        return step in {"retrieve", "decide"} and "candidate" not in record
    if kind == "outcome":
        return step in {"retrieve", "decide"} and bool(record["source"] == "trace")
    return kind == "score" and step == "outcome"


def _whole(held: list[Record], writer: _Writer) -> Record:
    """One `stage` record out of its steps."""
    opened = next(r for r in held if r["record"] == "open")
    outcome = next(r for r in held if r["record"] == "outcome")
    level, model = writer.tasks[opened["task"]]
    return {
        "record": "stage",
        "id": opened["stage"],
        "task": opened["task"],
        "operator": opened["operator"],
        "kind": opened["kind"],
        "retrieved": next(r["offered"] for r in held if r["record"] == "retrieve"),
        "adoptions": [
            {name: r[name] for name in ("experience", "adopted", "reason")} for r in held if r["record"] == "decide"
        ],
        "outcome": {name: outcome[name] for name in ("correct", "first_ms", "best_ms") if name in outcome},
        "level": level,
        "model": model,
    }


class _Writer:
    """Over one library's log, once."""

    def __init__(self, ledger: Ledger, library: str) -> None:
        self._ledger = ledger
        self._library = library
        self._blobs: set[str] = set()
        self._sources: dict[tuple[str, str], str] = {}
        self.tasks: dict[str, tuple[int, str]] = {}
        """Level and model."""

    def records(self) -> Iterator[Record]:
        """In the long form. The first is the library's."""
        rows, _, head = self._ledger.stored(self._library, after=self._ledger.head(self._library) - 1, limit=1)
        origin = {"library": self._library, "sequence": head, "head": rows[-1].hash.hex()}
        for recorded in self._ledger.recorded(self._library, until=head):
            for record in self._of(recorded.sequence, recorded.event):
                if record["record"] == "library":
                    record["origin"] = origin
                yield record

    def _text(self, sha256: str) -> str:
        found = self._ledger.text(sha256)
        return trace.ERASED if found is None else found

    def _of(self, sequence: int, event: ev.Event) -> Iterator[Record]:  # noqa: C901, PLR0912, PLR0915 - one arm an event
        """The records of one event; none for what follows from those before it."""
        match event:
            case ev.LibraryCreated():
                yield _record("library", event)
            case ev.PolicyChanged():
                yield _record("policy", event)
            case ev.ExperienceRecorded():
                made = _record("experience", event, body=self._text(event.body))
                made["id"] = made.pop("experience")
                made["source"]["texts"] = [self._text(sha256) for sha256 in event.source.texts]
                yield made
            case ev.ExperienceAmended():
                yield _record("amend", event, body=self._text(event.body))
            case ev.RuleDistilled():
                yield _record("rule", event, text=self._text(event.text))
            case ev.ExperienceRetired():
                yield _record("retire", event)
            case ev.ExperienceSuperseded():
                yield _record("supersede", event)
            case ev.ConflictRecorded():
                yield _record("conflict", event)
            case ev.ConflictResolved():
                yield _record("settle", event)
            case ev.StageInvalidated() | ev.StageReinstated():
                made = _record("invalidate" if isinstance(event, ev.StageInvalidated) else "reinstate", event)
                del made["stages"]
                yield made
            case ev.TaskStarted():
                self.tasks[event.task] = (event.level, event.model)
                yield _record("task", event)
            case ev.TaskFinished():
                yield {"record": "finish", "task": event.task, "summary": event.summary}
            case ev.StageStarted():
                yield {**_record("open", event), "basis": event.basis}
            case ev.ExperiencesRetrieved():
                made = _record("retrieve", event)
                made.pop("vector", None)
                if not event.pool:
                    del made["pool"]
                yield made
            case ev.AdoptionDecided():
                yield _record("decide", event)
            case ev.CandidateProposed():
                self._sources[event.stage, event.candidate] = event.source
                made = _record("candidate", event, source=self._text(event.source))
                del made["round"]
                yield made
            case ev.CandidateCompiled():
                yield self._report(sequence, event)
            case ev.StageDiagnosed():
                yield from self._named(event.evidence)
                yield _record("diagnose", event)
            case ev.CostIncurred():
                yield _record("cost", event)
            case ev.OutcomeReported():
                yield {**_record("outcome", event), "source": event.source}
            case ev.StageScored():
                yield {"record": "score", "stage": event.stage}
            case ev.StageAbandoned():
                yield _record("abandon", event)
            case _:
                return

    def _report(self, sequence: int, event: ev.CandidateCompiled) -> Record:
        text = self._ledger.text(event.report)
        source = self._ledger.text(self._sources[event.stage, event.candidate])
        if text is None or source is None or not event.signature:
            gone = "report" if text is None else "source" if source is None else "report's signature"
            raise NotExpressibleError(sequence, f"the verdict on candidate {event.candidate!r}, whose {gone} is gone,")
        return {
            "record": "report",
            "stage": event.stage,
            "candidate": event.candidate,
            "report": text,
            "signature": event.signature,
            "judge_key": event.judge,
        }

    def _named(self, evidence: str) -> Iterator[Record]:
        """Texts that a diagnosis names, each once."""
        for sha256 in _SHA256.findall(evidence):
            text = None if sha256 in self._blobs else self._ledger.text(sha256)
            if text is not None:
                self._blobs.add(sha256)
                yield {"record": "blob", "text": text}


def _record(kind: str, event: ev.Event, **texts: str) -> Record:
    """The event's fields, those at their defaults left out, with texts in place of hashes."""
    made = dict(msgspec.to_builtins(event))
    made.update(texts)
    return {"record": kind, **made}
