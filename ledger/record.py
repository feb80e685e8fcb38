"""One stored record as the wire shows it."""

from __future__ import annotations

from ledger import wire
from ledger.store import codec
from ledger.store.log import Stored


def event_record(library: str, stored: Stored, previous: bytes) -> wire.EventRecord:
    """One record as the wire shows it."""
    place = codec.decode(stored.record)
    return wire.EventRecord(
        library=library,
        sequence=stored.sequence,
        type=place.type,
        schema_=place.schema,
        id=place.id,
        time=place.time,
        actor=place.actor,
        task=place.task,
        stage=place.stage,
        payload=codec.payload(stored.record),
        previous_hash=previous.hex(),
        hash=stored.hash.hex(),
    )
