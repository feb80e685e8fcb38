"""Between events and records: exact both ways, old ones lifted, unknown ones kept."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.events import NAMES, Event, PolicyChanged, StageScored, TaskStarted, ValueUpdated
from ledger.domain.policy import Policy
from ledger.errors import InvalidInputError, LogCorruptError
from ledger.store import codec
from ledger.store.codec import Codec, Recorded, Unknown
from ledger.store.log import Draft


def value_updated(**changes: Any) -> ValueUpdated:
    event = ValueUpdated(stage="s", experience="e", n=1, alpha=0.5, feedback=1.0, old=0.0, new=0.5, adopted=True)
    return msgspec.structs.replace(event, **changes)


def record_of(event: Event, using: Codec | None = None, sequence: int = 3) -> bytes:
    used = using or Codec()
    name, schema, payload = used.encode(event)
    return used.assemble("lib", sequence, Draft(name, schema, "id-1", "2026-01-02T03:04:05Z", "ann", "t", "s", payload))


def test_an_event_comes_back_with_its_place():
    """All that the record holds, typed."""
    event = value_updated()
    assert codec.decode(record_of(event)) == Recorded(
        "lib", 3, "value.updated", 1, "id-1", "2026-01-02T03:04:05Z", "ann", "t", "s", event
    )


def test_defaults_are_not_written():
    """A field at its default costs no byte, and comes back."""
    event = TaskStarted(task="t", operator="gelu", level=1, model="m", budget=30)
    assert codec.payload(record_of(event)) == {
        "task": "t", "operator": "gelu", "level": 1, "model": "m", "budget": 30,
    }  # fmt: skip
    assert codec.decode(record_of(event)).event == event


def test_records_do_not_depend_on_the_order_of_a_dictionary():
    """The same facts give the same bytes."""
    one = TaskStarted(task="t", operator="o", level=1, model="m", budget=1, environment={"a": "1", "b": "2"})
    two = msgspec.structs.replace(one, environment={"b": "2", "a": "1"})
    assert record_of(one) == record_of(two)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_comes_back_bit_for_bit(number: float):
    """Also -0.0, the smallest denormal and the largest double."""
    back = codec.decode(record_of(value_updated(new=number))).event
    assert isinstance(back, ValueUpdated)
    assert struct.pack("<d", back.new) == struct.pack("<d", number)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back(text: str):
    """Quotes, control characters, other scripts; and none of it is taken for a part of the record's frame."""
    event = value_updated(experience=text)
    name, schema, payload = codec.encode(event)
    draft = Draft(name, schema, text, "time", text, text, None, payload)
    back = codec.decode(codec.assemble(text, 1, draft))
    assert back == Recorded(text, 1, name, schema, text, "time", text, text, None, event)


@pytest.mark.parametrize("hostile", ['","type":"x","id":"', '\\","type":"stage.scored","schema":9,"id":"'])
def test_a_name_that_looks_like_a_record_is_a_name(hostile: str):
    """The library's name stands before the type in the record."""
    name, schema, payload = codec.encode(value_updated())
    back = codec.decode(codec.assemble(hostile, 1, Draft(name, schema, "i", "t", "a", None, None, payload)))
    assert (back.library, back.type, back.event) == (hostile, "value.updated", value_updated())


@pytest.mark.parametrize(
    "event",
    [
        value_updated(new=math.nan),
        value_updated(new=math.inf),
        value_updated(experience="\ud800"),
        value_updated(n="many"),
        StageScored(stage="s", kind="correctness", operator="o", score=1.0, offered=["e"], adopted=()),  # type: ignore[arg-type]
        StageScored(stage="s", kind="correctness", operator="o", score=1.0, offered=(), adopted=(), first_ms=math.nan),
        StageScored(stage="s", kind="guess", operator="o", score=1.0, offered=(), adopted=()),  # type: ignore[arg-type]
    ],
    ids=["nan", "infinity", "surrogate", "text for a number", "list", "nan where None may stand", "no such kind"],
)
def test_an_event_that_would_not_come_back_is_refused(event: Event):
    """What is written can be read; the refusal names the event."""
    with pytest.raises(InvalidInputError, match=r"value\.updated|stage\.scored"):
        codec.encode(event)


def test_an_unknown_name_is_kept_as_it_is():
    """A log written by a newer version can be read; the event is written again byte for byte."""
    payload = msgspec.Raw(b'{"b":1,"a":[2.50]}')
    record = codec.assemble("lib", 1, Draft("future.thing", 3, "i", "t", "a", None, None, payload))
    event = codec.decode(record).event
    assert event == Unknown(name="future.thing", schema=3, payload=payload)
    assert codec.encode(event) == ("future.thing", 3, payload)


def test_a_newer_schema_of_a_known_name_is_unknown():
    """Its meaning may have changed, so it is not guessed at."""
    _, _, payload = codec.encode(value_updated())
    record = codec.assemble("lib", 1, Draft("value.updated", 2, "i", "t", "a", None, None, payload))
    assert codec.decode(record).event == Unknown(name="value.updated", schema=2, payload=payload)


def test_a_field_that_this_version_does_not_know_is_passed_over():
    """Fields may be added with a default without a new schema number."""
    record = record_of(value_updated()).replace(b'"adopted":true', b'"adopted":true,"added_later":[1]')
    assert codec.decode(record).event == value_updated()


class Renamed(Event, frozen=True, kw_only=True):
    """An event in its third form."""

    stage: str
    milliseconds: float
    device: str


LIFTED = Codec(
    {"test.timed": (Renamed, 3)},
    {
        ("test.timed", 1): lambda old: {"stage": old["stage"], "milliseconds": old["seconds"] * 1000},
        ("test.timed", 2): lambda old: old | {"device": "cpu"},
    },
)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (1, b'{"stage":"s","seconds":0.5}'),
        (2, b'{"stage":"s","milliseconds":500.0}'),
        (3, b'{"stage":"s","milliseconds":500.0,"device":"cpu"}'),
    ],
)
def test_older_schemas_are_lifted_hop_by_hop(schema: int, payload: bytes):
    """The event has the form of today, the record keeps its number and its bytes."""
    draft = Draft("test.timed", schema, "i", "t", "a", None, None, msgspec.Raw(payload))
    record = LIFTED.assemble("lib", 1, draft)
    for _ in range(2):  # the second time by the kept decoder
        back = LIFTED.decode(record)
        assert back.event == Renamed(stage="s", milliseconds=500.0, device="cpu")
        assert back.schema == schema
    assert LIFTED.payload(record) == msgspec.json.decode(payload)


def test_every_older_schema_has_a_lift():
    """Each hop from 1 to today's number is there, and none is left over."""
    hops = {(name, schema) for name, (_, today) in NAMES.items() for schema in range(1, today)}
    assert set(codec.LIFTS) == hops


def test_a_policy_comes_back_whole():
    """Every field is written, whatever the defaults of the version that reads it."""
    event = PolicyChanged(policy=Policy(beta=0.25), policy_name="mine", reason="r")
    assert codec.decode(record_of(event)).event == event
    assert set(codec.payload(record_of(event))["policy"]) == {field.name for field in msgspec.structs.fields(Policy)}


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b'{"library":"lib","sequence":3,"type":"value.updated"}']
)
def test_what_is_no_record_is_named_corrupt(damage: bytes):
    """Never another error, and never a default."""
    with pytest.raises(LogCorruptError):
        codec.decode(damage)
    with pytest.raises(LogCorruptError):
        codec.payload(damage)


def test_a_damaged_payload_names_its_place():
    """The frame can still be read."""
    record = record_of(value_updated(), sequence=17).replace(b'"alpha":0.5', b'"alpha":"x"')
    with pytest.raises(LogCorruptError, match=r"'lib', sequence 17: .*alpha"):
        codec.decode(record)
