"""Re-ranking by value, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.events import PoolEntry
from ledger.retrieval.rank import rank


def entry(experience: str, relevance: float, value: float, score: float) -> PoolEntry:
    return PoolEntry(experience=experience, relevance=relevance, value=value, score=score)


def test_value_moves_an_experience_up():
    """Scores 8/8 + 0.5 * 0 = 1; 6/8 + 0.5 * 0.6 = 1.05; 4/8 + 0.5 * -0.1 = 0.45."""
    values = {"a": 0.0, "b": 0.6, "c": -0.1}
    assert rank([("a", 8.0), ("b", 6.0), ("c", 4.0)], values.__getitem__, value_weight=0.5) == [
        entry("b", 6.0, 0.6, 1.05),
        entry("a", 8.0, 0.0, 1.0),
        entry("c", 4.0, -0.1, 0.45),
    ]


def test_relevance_decides_where_scores_are_equal_and_the_id_where_both_are():
    """2/4 + 1 * 0.5 = 4/4 + 1 * 0."""
    values = {"low": 0.5, "b": 0.0, "a": 0.0}
    found = rank([("low", 2.0), ("b", 4.0), ("a", 4.0)], values.__getitem__, value_weight=1.0)
    assert [item.experience for item in found] == ["a", "b", "low"]


def test_the_pool_is_made_by_relevance_alone():
    """The third is worth most and is not in a pool of two; of that pool the first is offered."""
    values = {"a": 0.0, "b": 0.5, "c": 1.0}
    hits = [("c", 1.0), ("a", 3.0), ("b", 2.0)]
    assert [item.experience for item in rank(hits, values.__getitem__, value_weight=1.0, pool_size=2)] == ["b", "a"]
    assert [item.experience for item in rank(hits, values.__getitem__, value_weight=1.0, pool_size=2, top_n=1)] == ["b"]


def test_without_weight_the_order_is_that_of_relevance():
    """Value is shown all the same."""
    found = rank([("a", 1.0), ("b", 2.0)], lambda _: 0.7, value_weight=0.0)
    assert found == [entry("b", 2.0, 0.7, 1.0), entry("a", 1.0, 0.7, 0.5)]


@pytest.mark.parametrize("hits", [[], [("a", 0.0)]])
def test_nothing_relevant_gives_nothing(hits: list[tuple[str, float]]):
    """Whatever its value."""
    assert rank(hits, lambda _: 1.0, value_weight=1.0) == []


@given(
    st.dictionaries(st.text(max_size=3), st.tuples(st.floats(0.01, 50), st.floats(-0.1, 1))),
    st.floats(0, 2),
    st.randoms(use_true_random=False),
)
def test_the_order_of_hits_never_matters(found: dict[str, tuple[float, float]], weight: float, random):
    """The ranking is one of facts, and it is a permutation of the pool in falling order of score."""
    hits = [(item, relevance) for item, (relevance, _) in found.items()]
    ranked = rank(hits, lambda item: found[item][1], value_weight=weight)
    random.shuffle(hits)
    assert rank(hits, lambda item: found[item][1], value_weight=weight) == ranked
    assert sorted(item.experience for item in ranked) == sorted(found)
    assert [item.score for item in ranked] == sorted((item.score for item in ranked), reverse=True)
