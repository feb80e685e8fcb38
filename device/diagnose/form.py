"""The JSON form of a diagnosis, and its schema, which is kept as data beside this module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device.diagnose.types import FORMAT, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = Path(__file__).with_name("schema.json")


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Put a diagnosis into plain data: what `--json` prints."""
    import msgspec  # noqa: PLC0415  (needed only where a diagnosis is written or read)

    data: dict[str, Any] = msgspec.to_builtins(diagnosis)
    return {"format": data.pop("format"), **data}


def read(data: Mapping[str, Any]) -> Diagnosis:
    """Read a diagnosis from plain data. Raises msgspec.ValidationError where it is none."""
    import msgspec  # noqa: PLC0415  (the same)

    return msgspec.convert(data, Diagnosis)


def schema() -> dict[str, Any]:
    """Make the JSON schema (draft 2020-12) of the form out of its types; `schema.json` holds the same."""
    import msgspec  # noqa: PLC0415  (the same)

    made = msgspec.json.schema(Diagnosis)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FORMAT, **made}


def schema_text() -> str:
    """Write the schema as it is kept."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
