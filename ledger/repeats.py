"""JSON read so that nothing of an object is lost."""

from __future__ import annotations

from typing import Any


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary of a JSON object's pairs. Raises ValueError where a key stands twice: one would be lost."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return made
