"""The blobs behind a log: sources, texts and signed reports, which an answer to `why` leads to, are checked too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger import errors
from ledger.domain import events as ev
from ledger.service import Ledger


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a check of the blobs found."""

    checked: int
    erased: int
    """Blobs that a redaction took out; that they are gone is as it should be."""
    bad_sequence: int | None = None
    """The event that names the first blob that does not hold."""
    reason: str | None = None


def named(event: ev.Event) -> Iterator[str]:
    """Blobs that an event names."""
    match event:
        case ev.ExperienceRecorded():
            yield event.body
            yield from event.source.texts
        case ev.ExperienceAmended():
            yield event.body
        case ev.ExperienceEmbedded():
            yield event.text
            yield event.vector
        case ev.ExperiencesRetrieved(vector=str(vector)):
            yield vector
        case ev.CandidateProposed():
            yield event.source
        case ev.CandidateCompiled() | ev.CandidateVerified() | ev.CandidateMeasured():
            yield event.report
        case ev.RuleDistilled():
            yield event.text
        case _:
            pass


def check(ledger: Ledger, library: str) -> Evidence:
    """Hash every blob that the log names anew; one that is missing without a redaction does not hold either."""
    first: dict[str, int] = {}
    erased: set[str] = set()
    for recorded in ledger.recorded(library):
        if isinstance(recorded.event, ev.ExperienceRedacted):
            erased.update(recorded.event.blobs)
        for sha256 in named(recorded.event):
            first.setdefault(sha256, recorded.sequence)
    checked = gone = 0
    for sha256, sequence in first.items():
        try:
            ledger.blob(sha256)
        except errors.BlobMismatchError:
            return Evidence(checked, gone, sequence, f"blob {sha256}, which it names, was changed")
        except errors.UnknownBlobError:
            if sha256 not in erased:
                return Evidence(
                    checked, gone, sequence, f"blob {sha256}, which it names, is gone, and no redaction says so"
                )
            gone += 1
            continue
        checked += 1
    return Evidence(checked, gone)
