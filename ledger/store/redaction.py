"""Records out of which fields were taken, and what vouches for them.

Such a record keeps its place, its other fields and its hash, and names the fields in `redacted`, before its payload.
Its bytes no longer give its hash; instead a later event of type `experience.redacted`, which the chain covers, holds
their own digest. Everything after it is chained to the hash, not to the text, so the chain and all proofs stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ledger.errors import InvalidInputError

TYPE: Final = "experience.redacted"
GONE: Final = "[redacted]"
_MARK = b',"redacted":['
_KEPT = {"library", "sequence", "type", "schema", "id", "time", "task", "stage"}
"""Of the envelope; the rest of the log refers to them."""
_REFERRED = {
    *("experience", "by", "task", "stage", "stages", "candidate", "parent", "conflict", "first", "second", "loser"),
    *("subject", "kind", "operator", "operators", "report", "judge", "source", "body", "vector", "artefact", "blobs"),
}
"""Names in payloads that the fold refers to, or that name blobs."""
_encoder = msgspec.json.Encoder(order=None)


def is_redacted(record: bytes) -> bool:
    """Whether a record says that fields were taken out of it."""
    return _MARK in record[: record.find(b',"payload":')]


def digest(record: bytes) -> str:
    """SHA-256 of a record's own bytes."""
    return hashlib.sha256(record).hexdigest()


def vouched(record: bytes) -> list[tuple[int, str]]:
    """(sequence, digest) of each record that this event says was redacted."""
    payload = msgspec.json.decode(record)["payload"]
    return [(item["sequence"], item["digest"]) for item in payload.get("records", ())]


def without(record: bytes, fields: Sequence[str]) -> tuple[bytes, list[str]]:
    """Take fields such as `actor` or `payload.title` out of a record; gives the record and the texts that were there.

    Raises InvalidInputError where a field is no text, or is one that other records refer to.
    """
    whole: dict[str, Any] = msgspec.json.decode(record)
    texts = []
    for field in fields:
        at, *path = field.split(".")
        names = [at, *path]
        holder: Any = whole
        for name in names[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        text = holder.get(names[-1]) if isinstance(holder, dict) else None
        protected = at in _KEPT if len(names) == 1 else names[-1] in _REFERRED
        if protected or not isinstance(text, str):
            raise InvalidInputError(
                f"field {field!r} of record {whole.get('sequence')} is no text that can be taken out", field=field
            )
        if text != GONE:
            texts.append(text)
        holder[names[-1]] = GONE
    already = whole.pop("redacted", [])
    payload = whole.pop("payload")
    made = {**whole, "redacted": sorted({*already, *fields}), "payload": payload}
    return _encoder.encode(made), texts


def holds(answer: bytes, texts: Iterable[str]) -> bool:
    """Whether a kept answer, which is JSON, holds one of the texts."""
    if not answer:
        return False
    for text in texts:
        escaped = msgspec.json.encode(text)[1:-1]
        if escaped and (escaped in answer or text.encode() in answer):
            return True
    return False
