"""The quickest peer measured and ours over the same texts, queries and vectors, one after the other in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import hashed
from ledger.commands.retrieval import fuse
from ledger.domain.policy import SAGE
from ledger.retrieval.dense import DenseIndex
from ledger.retrieval.lexical import LexicalIndex

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-bench" / "bin" / "python"
K = 10
DEPTH = SAGE.pool_size * SAGE.fusion_depth

Queries = Mapping[str, Sequence[str]]


def milliseconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def vector(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The shared vector of a text."""
    return np.asarray(hashed.vector(text), dtype=np.float32)


def row(name: str, added: Sequence[float], searched: Mapping[str, Sequence[float]]) -> str:
    """One line: p50 of adding, p50 / p99 of each kind of query."""
    cells = (
        f"{statistics.median(samples):>10.3f} /{statistics.quantiles(samples, n=100)[98]:>8.3f}"
        for samples in searched.values()
    )
    return f"{name:<36}{statistics.median(added):>8.3f}" + "".join(cells)


def ours(texts: Sequence[tuple[str, str, str]], queries: Queries) -> list[str]:
    """Our lines: the lexical index alone, and with vectors fused under the default policy."""
    lexical, dense = LexicalIndex(), DenseIndex(hashed.DIMENSIONS)
    words = [milliseconds(partial(lexical.add, *item)) for item in texts]

    def embed(item: tuple[str, str, str]) -> None:
        dense.put(item[0], vector(f"{item[1]}\n\n{item[2]}"))

    both = [first + milliseconds(partial(embed, item)) for first, item in zip(words, texts, strict=True)]

    def hybrid(query: str) -> object:
        return fuse(SAGE, query, lexical.search(query, DEPTH), dense.search(vector(query), DEPTH))[:K]

    def search(query: str) -> object:
        return lexical.search(query, K)

    lines = []
    for name, call, added in (("sagebook lexical", search, words), ("sagebook hybrid", hybrid, both)):
        for kind in queries.values():
            for query in kind[:5]:
                call(query)
        found = {kind: [milliseconds(partial(call, query)) for query in asked] for kind, asked in queries.items()}
        lines.append(row(name, added, found))
    return lines


def theirs(texts: Sequence[tuple[str, str, str]], queries: Queries, *, hybrid: bool) -> str:
    """Their line; a run that fails says why."""
    bodies = [f"{title}\n\n{body}" for _, title, body in texts]
    asked = json.dumps({"texts": bodies, "queries": queries, "k": K, "hybrid": hybrid})
    command = [str(PYTHON), str(HERE / "drive_agentrecall.py")]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)  # noqa: S603 - our script
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"agentrecall-db {'hybrid' if hybrid else 'FTS5'}: skipped, it failed: {last}"
    answer = json.loads(done.stdout)
    if hybrid and not answer["hybrid"]:
        return "agentrecall-db hybrid: skipped, its Python's sqlite3 loads no extensions"
    kind = "hybrid (sqlite-vec)" if hybrid else "FTS5"
    return row(f"agentrecall-db {answer['version']}, {kind}", answer["add_ms"], answer["search_ms"])


def table(texts: Sequence[tuple[str, str, str]], queries: Queries) -> list[str]:
    """All lines; without the peer's environment ours alone, and a line that says so."""
    kinds = "".join(f"{kind + ' p50 / p99':>20}" for kind in queries)
    lines = [f"{len(texts):,} texts, the {K} best, vectors by the same hash; milliseconds", f"{'':36}{'add':>8}{kinds}"]
    lines += ours(texts, queries)
    if PYTHON.exists():
        lines += [theirs(texts, queries, hybrid=hybrid) for hybrid in (False, True)]
    else:
        lines.append("agentrecall-db: skipped, .venv-bench is not there; scripts/bench makes it where it can be had")
    return lines
