"""Lexical search at growing numbers of texts, beside bm25s's own index over the same tokens in the same run.

A text is a title and about 60 words drawn from a Zipf-like vocabulary of 5,000 with identifiers among them; a query has
three or 12 of these words. `search` asks for the 30 best. `add` is one new text and the search that must find it; bm25s
has to build its index again for that. Below, ours and the quickest peer measured, agentrecall-db, over 10,000 texts.

    python -m benchmarks.retrieval [texts ...]
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from functools import partial

import bm25s

from benchmarks.peers.beside import milliseconds, table
from ledger.retrieval.lexical import LexicalIndex
from ledger.retrieval.tokenize import tokens

SIZES = (100, 1_000, 10_000)
BESIDE = 10_000
"""Texts in the comparison with a peer."""
QUERIES = 300
_SYLLABLES = [first + second for first in "bdfgklmnprst" for second in ("a", "el", "in", "o", "ur", "y")]


def vocabulary(rng: random.Random) -> list[str]:
    """5,000 words, every tenth an identifier."""
    words: set[str] = set()
    while len(words) < 5_000:
        parts = [rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4))]
        words.add("".join(map(str.title, parts)) if len(words) % 10 == 0 else "".join(parts))
    found = sorted(words)
    rng.shuffle(found)
    return found


def writer(rng: random.Random) -> Callable[[int], str]:
    """What writes texts of so many words, the common words more often."""
    words = vocabulary(rng)
    weights = [1 / (rank + 10) for rank in range(len(words))]
    return lambda count: " ".join(rng.choices(words, weights, k=count))


def beside_a_peer() -> None:
    """Print the comparison."""
    text = writer(random.Random(BESIDE))
    texts = [(f"e{n:06}", text(5), text(60)) for n in range(BESIDE)]
    queries = {f"{count} words": [text(count) for _ in range(QUERIES)] for count in (3, 12)}
    print(*table(texts, queries), sep="\n")


def percentiles(samples: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    return statistics.median(samples), statistics.quantiles(samples, n=100)[98]


def measure(size: int) -> str:
    """One line of the table."""
    text = writer(random.Random(size))
    texts = [(f"e{n:06}", text(5), text(60)) for n in range(size)]
    index = LexicalIndex()

    def fill() -> None:
        for item in texts:
            index.add(*item)

    build = milliseconds(fill)
    bags = [tokens(title) * 3 + tokens(body) for _, title, body in texts]
    reference = bm25s.BM25(method="lucene")
    rebuild = milliseconds(lambda: reference.index(bags, show_progress=False))

    def search(query: str) -> object:
        return index.search(query, 30)

    def search_reference(query: str) -> object:
        return reference.retrieve([tokens(query)], k=min(30, size), show_progress=False)

    ours: dict[int, list[float]] = {3: [], 12: []}
    theirs: list[float] = []
    for _ in range(QUERIES):
        for count, samples in ours.items():
            samples.append(milliseconds(partial(search, text(count))))
        theirs.append(milliseconds(partial(search_reference, text(12))))

    def add_and_find(number: int) -> None:
        index.add(f"new{number}", f"unheard{number}", text(60))
        found = index.search(f"unheard{number}", 30)
        if found[0][0] != f"new{number}":
            raise AssertionError(found)

    added = [milliseconds(partial(add_and_find, number)) for number in range(100)]
    (short, short_99), (long, long_99) = percentiles(ours[3]), percentiles(ours[12])
    return (
        f"{size:>7,} {build:>9,.0f} {short:>7.3f} /{short_99:>7.3f} {long:>8.3f} /{long_99:>7.3f} "
        f"{long / statistics.median(theirs):>9.2f} {statistics.median(added):>9.3f} {rebuild:>14,.0f}"
    )


def main() -> None:
    """Print one table."""
    sizes = [int(item) for item in sys.argv[1:]] or SIZES
    print("milliseconds; p50 / p99 of", QUERIES, "queries; `ratio` is our p50 over that of bm25s (12 words)")
    print("  texts     build     search, 3 words   search, 12 words     ratio  add+find  bm25s rebuild")
    for size in sizes:
        print(measure(size))
    print()
    beside_a_peer()


if __name__ == "__main__":
    main()
