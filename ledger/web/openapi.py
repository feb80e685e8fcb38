"""The API's description, for `docs/openapi.json`: `python -m ledger.web.openapi > docs/openapi.json`."""

from __future__ import annotations

import json
import sys

from ledger.web.app import routes


def document() -> str:
    """The OpenAPI document as it is kept with the documents."""
    return json.dumps(routes().openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
