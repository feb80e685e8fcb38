"""Erasing texts for good."""

from __future__ import annotations

import contextlib

from ledger import errors, wire_proofs
from ledger.domain import decide
from ledger.domain import events as ev
from ledger.service import Batch, Call, Ledger
from ledger.store import redaction
from ledger.store.log import Erasure


def redact(ledger: Ledger, call: Call, library: str, given: wire_proofs.Redaction) -> wire_proofs.Redacted | bytes:
    """Erase an experience's texts, blobs or fields; from blobs, records, kept answers, snapshots and indexes."""
    if not (given.experience or given.blobs or given.records):
        raise errors.InvalidInputError("name an experience, a blob or the fields of a record to erase")

    def command(batch: Batch) -> None:
        blobs = dict.fromkeys(given.blobs)
        fields: dict[int, list[str]] = {}
        for item in given.records:
            fields.setdefault(item.sequence, []).extend(item.fields)
        _check_named(ledger, library, given.blobs)
        if given.experience is not None:
            decide.experience_of(batch.state, given.experience)
            _of_experience(ledger, library, given.experience, blobs, fields)
        texts: list[str] = []
        for sha256 in blobs:
            with contextlib.suppress(errors.UnknownBlobError):
                texts.append(ledger.blob(sha256).decode("utf-8", errors="replace"))
        records = {}
        for sequence, names in sorted(fields.items()):
            made, gone = redaction.without(ledger.raw(library, sequence), tuple(dict.fromkeys(names)))
            records[sequence] = made
            texts.extend(gone)
        told = [
            ev.RedactedRecord(
                sequence=sequence, fields=tuple(sorted(set(fields[sequence]))), digest=redaction.digest(record)
            )
            for sequence, record in records.items()
        ]
        batch.emit(
            [
                ev.ExperienceRedacted(
                    reason=given.reason,
                    experience=given.experience or "",
                    blobs=tuple(blobs),
                    records=tuple(told),
                )
            ]
        )
        batch.erase = Erasure(tuple(blobs), records, tuple(text for text in texts if text))

    def answer(batch: Batch) -> wire_proofs.Redacted:
        erased = batch.erase or Erasure()
        return wire_proofs.Redacted(
            sequence=batch.state.sequence, blobs=list(erased.blobs), records=sorted(erased.records)
        )

    return ledger.execute(library, call, command, answer)


def _of_experience(
    ledger: Ledger, library: str, name: str, blobs: dict[str, None], fields: dict[int, list[str]]
) -> None:
    """Everything that was ever said of it in its own words."""
    for recorded in ledger.recorded(library):
        match recorded.event:
            case ev.ExperienceRecorded() | ev.ExperienceAmended() as event if event.experience == name:
                blobs[event.body] = None
                fields.setdefault(recorded.sequence, []).append("payload.title")
            case ev.RuleDistilled() as event if event.experience == name:
                blobs[event.text] = None
            case ev.ExperienceEmbedded() as event if event.experience == name:
                blobs[event.text] = None
                blobs[event.vector] = None
            case _:
                pass


def _check_named(ledger: Ledger, library: str, blobs: list[str]) -> None:
    """Raise UnknownBlobError for a blob that no record of this library names: it is another's to erase."""
    wanted = {sha256.encode(): sha256 for sha256 in blobs}
    if not wanted:
        return
    for record in ledger.raw_records(library):
        for key in [key for key in wanted if key in record]:
            del wanted[key]
        if not wanted:
            return
    raise errors.UnknownBlobError(next(iter(wanted.values())))
