"""Between events and stored records. Older schema numbers are lifted here, on read; stored bytes never change.

A record is one line of JSON with the keys library, sequence, type, schema, id, time, actor, task, stage, payload in
this order, no blanks, dictionaries sorted by key. Floats are written so that they read back to the same bits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ledger.domain.events import NAMES, Event
from ledger.errors import InvalidInputError, LogCorruptError
from ledger.store.log import Draft

E_co = TypeVar("E_co", covariant=True)

Lift = Callable[[dict[str, Any]], dict[str, Any]]

_PAYLOAD = operator.attrgetter("payload")

LIFTS: dict[tuple[str, int], Lift] = {}
"""(name, schema number) -> what turns such a payload into one of the next schema number."""


class Unknown(Event, frozen=True, kw_only=True):
    """An event of a name or schema number that this version does not know. It changes nothing and is kept as it is."""

    name: str
    schema: int
    payload: msgspec.Raw


class Recorded(msgspec.Struct, Generic[E_co], frozen=True, gc=False):
    """An event with its place in the log, as read back."""

    library: str
    sequence: int
    type: str
    schema: int
    """As stored; `event` has the form of today."""
    id: str
    time: str
    actor: str
    task: str | None
    stage: str | None
    event: E_co = msgspec.field(name="payload")


class _Place(msgspec.Struct):
    library: str
    sequence: int
    type: str


class Codec:
    """Encodes and decodes by a table of names and one of lifts."""

    def __init__(
        self, names: Mapping[str, tuple[type[Event], int]] = NAMES, lifts: Mapping[tuple[str, int], Lift] = LIFTS
    ) -> None:
        self._names = names
        self._lifts = lifts
        self._name_of = {event: (name, schema) for name, (event, schema) in names.items()}
        self._readers: dict[bytes, Callable[[bytes], Recorded[Event]]] = {}
        self._events: dict[bytes, Callable[[bytes], Event]] = {}
        self._many: msgspec.json.Decoder[Any] | None = None
        self._payloads: dict[type[Event], msgspec.json.Decoder[Any]] = {}
        self._encoder = msgspec.json.Encoder(order="deterministic")
        self._raw: msgspec.json.Decoder[Recorded[msgspec.Raw]] = msgspec.json.Decoder(Recorded[msgspec.Raw])
        self._place = msgspec.json.Decoder(_Place)

    def encode(self, event: Event) -> tuple[str, int, msgspec.Raw]:
        """Name, schema number and payload of an event.

        Raises InvalidInputError where the event would not read back as itself: a number that is not finite, a list
        where its type says tuple, a text that is not Unicode.
        """
        if isinstance(event, Unknown):
            return event.name, event.schema, event.payload
        kind = type(event)
        name, schema = self._name_of[kind]
        decoder = self._payloads.get(kind)
        if decoder is None:
            decoder = self._payloads[kind] = msgspec.json.Decoder(kind)
        try:
            payload = self._encoder.encode(event)
            same = decoder.decode(payload) == event
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, TypeError) as error:
            raise InvalidInputError(f"{name} can not be stored: {error}", type=name) from error
        if not same:
            raise InvalidInputError(
                f"{name} can not be stored: it would not read back as it is; numbers must be finite, sequences tuples",
                type=name,
            )
        return name, schema, msgspec.Raw(payload)

    def assemble(self, library: str, sequence: int, draft: Draft) -> bytes:
        """Write the stored record of a draft at its place."""
        return self._encoder.encode(
            Recorded(
                library,
                sequence,
                draft.type,
                draft.schema,
                draft.id,
                draft.time,
                draft.actor,
                draft.task,
                draft.stage,
                draft.payload,
            )
        )

    def decode(self, record: bytes) -> Recorded[Event]:
        """Read the event of a stored record. Raises LogCorruptError where the record is not one."""
        # A quote inside a JSON string is escaped, so these marks are found only between fields.
        start = record.find(b',"type":"')
        end = record.find(b',"id":"', start)
        key = record[start:end]
        reader = self._readers.get(key)
        try:
            if reader is None:
                reader = self._reader(record)
                if start >= 0 and end >= 0:
                    self._readers[key] = reader
            return reader(record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._corrupt(record, error) from error

    def event(self, record: bytes) -> Event:
        """Read the event alone: what a fold over a long log needs. Raises LogCorruptError."""
        start = record.find(b',"type":"')
        end = record.find(b',"id":"', start)
        reader = self._events.get(record[start:end])
        if reader is None:
            return self._first_event(record, record[start:end])
        try:
            return reader(record[record.find(b',"payload":', end) + 11 : -1])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._corrupt(record, error) from error

    def events(self, lines: bytes, count: int) -> list[Event]:
        """Read the events of `count` records, one a line: several times as quick as one by one.

        Raises LogCorruptError.
        """
        if self._many is None:
            self._many = msgspec.json.Decoder(self._any_of_today())
        try:
            found = list(map(_PAYLOAD, self._many.decode_lines(lines)))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            found = []
        # One is of another version, or damaged: each is read by itself, and the damaged one named.
        return found if len(found) == count else [self.event(record) for record in lines.split(b"\n")]

    def _any_of_today(self) -> Any:
        """Make the union of all records that are written today; the decoder tells them apart by the name, in C."""
        kinds: list[Any] = [
            msgspec.defstruct(
                event.__name__,
                [("schema", Literal[schema]), ("payload", event)],
                tag_field="type",
                tag=name,
                gc=False,
            )
            for name, (event, schema) in self._names.items()
        ]
        return functools.reduce(operator.or_, kinds)

    def _first_event(self, record: bytes, key: bytes) -> Event:
        """Read an event of a type and schema number that were not met before, or that only `decode` can read."""
        found = self.decode(record)
        name, schema = self._name_of.get(type(found.event), ("", 0))
        if key == b',"type":"%s","schema":%d' % (name.encode(), schema) and found.schema == schema:
            self._events[key] = msgspec.json.Decoder(type(found.event)).decode
        return found.event

    def payload(self, record: bytes) -> dict[str, Any]:
        """Read the payload as stored, not lifted."""
        try:
            payload: dict[str, Any] = msgspec.json.decode(self._raw.decode(record).event, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._corrupt(record, error) from error
        return payload

    def place(self, record: bytes) -> tuple[str, int, str]:
        """Library, sequence and type that a record claims for itself."""
        try:
            place = self._place.decode(record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._corrupt(record, error) from error
        return place.library, place.sequence, place.type

    def _corrupt(self, record: bytes, error: Exception) -> LogCorruptError:
        try:
            place = self._place.decode(record)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return LogCorruptError("?", 0, f"the record can not be read: {error}")
        return LogCorruptError(place.library, place.sequence, f"the record can not be read: {error}")

    def _reader(self, record: bytes) -> Callable[[bytes], Recorded[Event]]:
        """Find what decodes records of this one's type and schema number."""
        raw = self._raw.decode(record)
        kind, today = self._names.get(raw.type, (Unknown, 0))
        if raw.schema == today:
            return msgspec.json.Decoder(Recorded[kind]).decode  # type: ignore[valid-type]
        if raw.schema > today or raw.schema < 1:
            return self._read_unknown
        hops = [self._lifts[raw.type, schema] for schema in range(raw.schema, today)]

        def read_old(record: bytes) -> Recorded[Event]:
            raw = self._raw.decode(record)
            payload = msgspec.json.decode(raw.event, type=dict[str, Any])
            for lift in hops:
                payload = lift(payload)
            return self._with(raw, msgspec.convert(payload, kind))

        return read_old

    def _read_unknown(self, record: bytes) -> Recorded[Event]:
        raw = self._raw.decode(record)
        return self._with(raw, Unknown(name=raw.type, schema=raw.schema, payload=raw.event.copy()))

    @staticmethod
    def _with(raw: Recorded[msgspec.Raw], event: Event) -> Recorded[Event]:
        return Recorded(
            raw.library, raw.sequence, raw.type, raw.schema, raw.id, raw.time, raw.actor, raw.task, raw.stage, event
        )


_TODAY = Codec()
encode = _TODAY.encode
assemble = _TODAY.assemble
decode = _TODAY.decode
event = _TODAY.event
events = _TODAY.events
payload = _TODAY.payload
place = _TODAY.place
