"""What a caller says, checked before it is sent: names that stand in a path, and the fields of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from ledger import errors, wire

_Model = TypeVar("_Model", bound=BaseModel)
_ID: TypeAdapter[str] = TypeAdapter(wire.Id)
_SHOWN = 120


def step(what: str, name: str) -> str:
    """One step of a path. Raises NameInvalidError where no `what` can have that name."""
    try:
        _ID.validate_python(name)
        return quote(name, safe="")
    except (ValidationError, UnicodeEncodeError):
        raise errors.NameInvalidError(what, _short(name)) from None


def made(kind: type[_Model], **fields: Any) -> _Model:
    """A request out of its fields. Raises RequestInvalidError naming the first field that does not hold."""
    try:
        return kind(**fields)
    except ValidationError as error:
        raise errors.RequestInvalidError(told(error.errors())) from None


def told(found: Sequence[Any]) -> str:
    """What is wrong with a request, from the errors that pydantic lists."""
    first = found[0]
    where = ".".join(str(part) for part in first["loc"]) or "the request"
    given = first.get("input")
    shown = f"; it was {_short(given)!r}" if isinstance(given, str | int | float | bool) else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{where}: {first['msg']}{shown}{more}"


def _short(given: object) -> str:
    text = str(given)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
