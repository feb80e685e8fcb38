"""One ranking of two: reciprocal rank fusion, which needs no common scale of BM25 and cosine.

score(d) = sum over rankings of 1 / (k + rank of d), ranks from 1. Source: Cormack, Clarke, Büttcher, SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Sequence


def reciprocal_rank(rankings: Sequence[Sequence[tuple[str, float]]], k: int) -> list[tuple[str, float]]:
    """(experience, fused score), best first, ties by id."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, (name, _) in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1.0 / (k + place)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
