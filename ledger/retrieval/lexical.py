"""BM25 over experiences, exact at any moment: what is added is found by the very next search.

The formula is bm25s's (method `lucene`). bm25s's own index finishes every score when it is built, so one new text
would mean building all of it again, or scoring old and new texts by different statistics. Here its formula is evaluated
when a query comes, over postings that grow and shrink, with the number of texts, the document frequencies and the mean
length of that moment. So neither the order of insertion nor what was there once and then removed leaves a trace in any
score.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from bm25s.scoring import _select_idf_scorer, _select_tfc_scorer
from numpy.typing import NDArray

from ledger.errors import ExperienceExistsError, UnknownExperienceError
from ledger.retrieval.tokenize import tokens

K1: Final = 1.5
B: Final = 0.75
TITLE_WEIGHT: Final = 3
"""A word of the title counts as often as this many in the body."""

_idf: Final[Callable[[int, int], float]] = _select_idf_scorer("lucene")
_tfc: Final[Callable[..., NDArray[np.float64]]] = _select_tfc_scorer("lucene")


class _Postings:
    """Texts that hold one token: slots in rising order, and how often each holds it."""

    __slots__ = ("counts", "scores", "slots", "state")

    def __init__(self) -> None:
        self.slots = array("q")
        self.counts = array("d")
        self.state = -1
        """The state of the index that `scores` were computed for."""
        self.scores: NDArray[np.float64] = np.empty(0)


class LexicalIndex:
    """Safe to share between threads. Ids are any strings."""

    def __init__(self, *, title_weight: int = TITLE_WEIGHT) -> None:
        self._title_weight = title_weight
        self._lock = threading.Lock()
        self._postings: dict[str, _Postings] = {}
        self._slot_of: dict[str, int] = {}
        # By slot. A slot is never used twice, so that postings stay sorted by appending.
        self._ids: list[str] = []
        self._tokens: list[tuple[str, ...]] = []
        self._lengths = array("d")
        self._total = 0
        self._state = 0
        """Grows with each change: any of them moves the scores of all texts."""

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, item: object) -> bool:
        return item in self._slot_of

    def add(self, item: str, title: str, body: str) -> None:
        """Put a text in. Raises ExperienceExistsError."""
        counts = self._count(title, body)
        with self._lock:
            if item in self._slot_of:
                raise ExperienceExistsError(item)
            self._put(item, counts)

    def replace(self, item: str, title: str, body: str) -> None:
        """Put another text in the place of one. Raises UnknownExperienceError."""
        counts = self._count(title, body)
        with self._lock:
            self._take(item)
            self._put(item, counts)

    def remove(self, item: str) -> None:
        """Take a text out. Raises UnknownExperienceError."""
        with self._lock:
            self._take(item)

    def search(
        self, query: str, k: int, allow: Callable[[str], bool] | Container[str] | None = None
    ) -> list[tuple[str, float]]:
        """Find the `k` most relevant texts among those allowed: (id, relevance), best first, ties by id.

        Only texts that share a token with the query, so relevance > 0. A token counts once however often the query has
        it: five times `int64_t` in a pasted error does not make it the matter. `allow` is asked for the best ones until
        `k` are found; it must not use the index.
        """
        asked = set(tokens(query))
        with self._lock:
            slots, scores = self._relevance(asked)
            ids = self._ids
            allowed = _predicate(allow)
            found: list[tuple[str, float]] = []
            for slot, score in _best_first(slots, scores, ids, max(4 * k, 64)):
                if len(found) >= k:
                    break
                if allowed(ids[slot]):
                    found.append((ids[slot], score))
            return found

    def _count(self, title: str, body: str) -> Counter[str]:
        counts = Counter(tokens(body))
        for token, count in Counter(tokens(title)).items():
            counts[token] += count * self._title_weight
        return counts

    def _put(self, item: str, counts: Counter[str]) -> None:
        slot = len(self._ids)
        for token, count in counts.items():
            postings = self._postings.get(token)
            if postings is None:
                postings = self._postings[token] = _Postings()
            postings.slots.append(slot)
            postings.counts.append(count)
        length = counts.total()
        self._state += 1
        self._slot_of[item] = slot
        self._ids.append(item)
        self._tokens.append(tuple(counts))
        self._lengths.append(length)
        self._total += length

    def _take(self, item: str) -> None:
        slot = self._slot_of.pop(item, None)
        if slot is None:
            raise UnknownExperienceError(item)
        self._state += 1
        for token in self._tokens[slot]:
            postings = self._postings[token]
            index = bisect_left(postings.slots, slot)
            del postings.slots[index], postings.counts[index]
            if not postings.slots:
                del self._postings[token]
        self._total -= int(self._lengths[slot])
        self._tokens[slot] = ()
        if len(self._ids) > 2 * len(self._slot_of) + 64:
            self._close_gaps()

    def _close_gaps(self) -> None:
        """Renumber the slots, so that what was removed takes no room."""
        kept = sorted(self._slot_of.values())
        new = {slot: index for index, slot in enumerate(kept)}
        for postings in self._postings.values():
            postings.slots = array("q", (new[slot] for slot in postings.slots))
        self._ids = [self._ids[slot] for slot in kept]
        self._tokens = [self._tokens[slot] for slot in kept]
        self._lengths = array("d", (self._lengths[slot] for slot in kept))
        self._slot_of = {item: slot for slot, item in enumerate(self._ids)}

    def _relevance(self, asked: AbstractSet[str]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Slots that share a token with the query, and their BM25 scores."""
        scores = np.zeros(len(self._ids))
        # In a fixed order: a sum of floats depends on it.
        for token in sorted(asked):
            postings = self._postings.get(token)
            if postings is None:
                continue
            slots = np.frombuffer(postings.slots, dtype=np.int64)
            if postings.state != self._state:
                self._score(postings, slots)
            scores[slots] += postings.scores
        slots = np.flatnonzero(scores)
        return slots, scores[slots]

    def _score(self, postings: _Postings, slots: NDArray[np.int64]) -> None:
        size = len(self._slot_of)
        lengths = np.frombuffer(self._lengths)[slots]
        weights = _tfc(np.frombuffer(postings.counts), lengths, self._total / size, K1, B)
        postings.scores = weights * _idf(len(slots), size)
        postings.state = self._state


def _predicate(allow: Callable[[str], bool] | Container[str] | None) -> Callable[[str], bool]:
    if allow is None:
        return lambda _: True
    if callable(allow):
        return allow
    return allow.__contains__


def _best_first(
    slots: NDArray[np.intp], scores: NDArray[np.float64], ids: list[str], size: int
) -> Iterator[tuple[int, float]]:
    """Slots by falling score, then id; sorted piece by piece, as mostly the first few are asked for."""
    bound = math.inf
    while True:
        left = np.flatnonzero(scores < bound)
        if not left.size:
            return
        lowest = -math.inf
        if left.size > size:
            lowest = np.partition(scores[left], left.size - size)[left.size - size]
            left = left[scores[left] >= lowest]  # all of equal score, so that the id decides between them
        piece: Iterable[tuple[int, float]] = zip(slots[left].tolist(), scores[left].tolist(), strict=True)
        yield from sorted(piece, key=lambda pair: (-pair[1], ids[pair[0]]))
        bound, size = float(lowest), size * 4
