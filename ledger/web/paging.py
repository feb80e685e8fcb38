"""Opaque cursors: where a list goes on, bound to the list that it was given for."""

from __future__ import annotations

import base64
import binascii

from ledger.errors import CursorInvalidError


def pack(listing: str, position: int) -> str:
    """A cursor for a list, named with everything that filters it."""
    return base64.urlsafe_b64encode(f"{position}:{listing}".encode()).decode().rstrip("=")


def unpack(listing: str, cursor: str | None) -> int:
    """The position in a cursor; 0 without one. Raises CursorInvalidError."""
    if cursor is None:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        position, _, named = text.partition(":")
        found = int(position)
    except (ValueError, binascii.Error):
        raise CursorInvalidError(cursor) from None
    if named != listing or found < 0:
        raise CursorInvalidError(cursor)
    return found
