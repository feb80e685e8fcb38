"""agentrecall-db: one SQLite file, FTS5; with vectors also sqlite-vec. Runs in .venv-bench.

Standard input is one JSON object: texts, queries (lists by name), k, hybrid. Standard output is one: version, hybrid as
it really was, add_ms, search_ms (samples by name of the queries), hits (how many a query found on average, by name).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
# The file lies beside this one and this interpreter does not know the project.
hashed = importlib.import_module("hashed")


class Embedder:
    """What agentrecall asks of a model."""

    dim = hashed.DIMENSIONS
    name = model_name = "feature hash"

    def embed(self, texts: list[str]) -> list[list[float]]:
        """One row a text."""
        return [hashed.vector(text) for text in texts]


def timed(call: Callable[[], Any], samples: list[float]) -> Any:
    """Call and keep how many milliseconds it took."""
    begin = time.perf_counter()
    found = call()
    samples.append((time.perf_counter() - begin) * 1e3)
    return found


def main() -> None:
    """Fill a store, ask it, say what it took."""
    asked = json.load(sys.stdin)
    memory_type: Any = importlib.import_module("agentrecall").Memory
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "memory.db")
        kind: dict[str, Any] = {"embedder": Embedder()} if asked["hybrid"] else {"embeddings": False}
        memory = memory_type(path, **kind)
        added: list[float] = []
        for text in asked["texts"]:
            timed(partial(memory.add, text), added)
        searched: dict[str, list[float]] = {}
        hits: dict[str, float] = {}
        for name, queries in asked["queries"].items():
            for query in queries[:5]:
                memory.search(query, k=asked["k"])
            samples = searched[name] = []
            found = [timed(partial(memory.search, query, k=asked["k"]), samples) for query in queries]
            hits[name] = sum(map(len, found)) / len(found)
        answer = {
            "version": importlib.metadata.version("agentrecall-db"),
            "hybrid": bool(memory.semantic_enabled),
            "add_ms": added,
            "search_ms": searched,
            "hits": hits,
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
