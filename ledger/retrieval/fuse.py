"""One ranking of two, by scores or by ranks.

By scores: relevance = (1 - w) * BM25 / best BM25 + w * cosine / best cosine, which keeps how far the best stand apart
(a convex combination; Bruch, Gai, Ingber, ACM TOIS 42 (2023) found it better than ranks). By ranks: relevance = sum
over rankings of 1 / (k + rank), ranks from 1 (Cormack, Clarke, Büttcher, SIGIR 2009).
"""

from __future__ import annotations

from collections.abc import Sequence

Hits = Sequence[tuple[str, float]]


def weighted_scores(lexical: Hits, dense: Hits, dense_weight: float) -> list[tuple[str, float]]:
    """(experience, relevance), best first, ties by id. Scores are above 0; what one ranking misses gets 0 there."""
    scores: dict[str, float] = {}
    for ranking, weight in ((lexical, 1.0 - dense_weight), (dense, dense_weight)):
        best = max((score for _, score in ranking), default=1.0)
        for name, score in ranking:
            scores[name] = scores.get(name, 0.0) + weight * score / best
    return _ordered(scores)


def reciprocal_rank(rankings: Sequence[Hits], k: int) -> list[tuple[str, float]]:
    """(experience, relevance), best first, ties by id."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, (name, _) in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1.0 / (k + place)
    return _ordered(scores)


def _ordered(scores: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
