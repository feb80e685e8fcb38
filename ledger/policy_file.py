"""A policy as people name one: a preset, or the fields in a JSON or TOML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ledger import errors
from ledger.repeats import without_repeats


def policy_argument(given: str) -> str | dict[str, Any]:
    """Return a preset's name as it is, or the fields in the JSON or TOML file of that name. Raises PolicyError."""
    path = Path(given)
    if path.suffix not in {".json", ".toml"} and not path.is_file():
        return given
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            import tomllib  # noqa: PLC0415

            return tomllib.loads(text)
        fields = json.loads(text, object_pairs_hook=without_repeats)
    except FileNotFoundError:
        raise errors.PolicyError(f"there is no policy file {given!r}") from None
    except (OSError, ValueError) as error:
        raise errors.PolicyError(f"the policy file {given!r} can not be read: {error}") from None
    if not isinstance(fields, dict):
        raise errors.PolicyError(f"the policy file {given!r} holds no object of policy fields")
    return fields
