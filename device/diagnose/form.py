"""The JSON form of a diagnosis; `device.report_form` makes the schema, which it shares with reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from device.diagnose.types import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Mapping


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Put a diagnosis into plain data: what `--json` prints."""
    import msgspec  # noqa: PLC0415  (needed only where a diagnosis is written or read)

    data: dict[str, Any] = msgspec.to_builtins(diagnosis)
    return {"format": data.pop("format"), **data}


def read(data: Mapping[str, Any]) -> Diagnosis:
    """Read a diagnosis from plain data. Raises msgspec.ValidationError where it is none."""
    import msgspec  # noqa: PLC0415  (the same)

    return msgspec.convert(data, Diagnosis)
