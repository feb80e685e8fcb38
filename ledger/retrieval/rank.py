"""Re-ranking by value. Pure; relevance stays primary, value moves experiences among the relevant ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ledger.domain.events import PoolEntry


def rank(
    hits: Iterable[tuple[str, float]],
    value: Callable[[str], float],
    *,
    value_weight: float,
    pool_size: int | None = None,
    top_n: int | None = None,
) -> list[PoolEntry]:
    """Order the pool by score = relevance / best relevance + value_weight * value; ties by relevance, then id.

    `hits` are (experience, relevance), in any order. The `pool_size` most relevant of them are the pool, the first
    `top_n` of the ranking are returned; None: all. An experience without relevance is never in the pool.
    """
    pool = sorted((hit for hit in hits if hit[1] > 0), key=lambda hit: (-hit[1], hit[0]))[:pool_size]
    if not pool:
        return []
    best = pool[0][1]
    entries = []
    for experience, relevance in pool:
        worth = value(experience)
        entries.append(
            PoolEntry(
                experience=experience,
                relevance=relevance,
                value=worth,
                score=relevance / best + value_weight * worth,
            )
        )
    entries.sort(key=lambda entry: (-entry.score, -entry.relevance, entry.experience))
    return entries[:top_n]
