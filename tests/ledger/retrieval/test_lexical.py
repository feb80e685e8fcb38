"""The lexical index is exact at any moment, in whatever way it came to hold what it holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import bm25s
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ledger.errors import ExperienceExistsError, UnknownExperienceError
from ledger.retrieval.lexical import LexicalIndex
from ledger.retrieval.tokenize import tokens

WORDS = ["tile", "tail", "buffer", "DataCopy", "copy", "set_flag", "double", "softmax", "缓冲", "32KB"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
CORPORA = st.dictionaries(st.sampled_from([f"e{n}" for n in range(12)]), st.tuples(TEXTS, TEXTS))
QUERIES = st.lists(st.sampled_from([*WORDS, "unseen"]), min_size=1, max_size=5).map(" ".join)


def built(corpus: dict[str, tuple[str, str]]) -> LexicalIndex:
    index = LexicalIndex()
    for item, (title, body) in corpus.items():
        index.add(item, title, body)
    return index


def test_relevance_is_bm25_worked_out_by_hand():
    """Three texts of 2, 4 and 3 words; `tail` is in two of them, once each.

    idf = ln(1 + (3 - 2 + 0.5) / (2 + 0.5)) = ln 1.6; mean length 3;
    for the text of 2 words: 1 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3)) = 1 / 2.125; for 4 words: 1 / (1 + 1.5 * 1.25) = 1 / 2.875.
    """
    index = built({"a": ("", "tail tile"), "b": ("", "tail double buffer copy"), "c": ("", "softmax shift max")})
    (first, second) = index.search("tail", 10)
    assert first == ("a", pytest.approx(math.log(1.6) / 2.125, rel=1e-12))
    assert second == ("b", pytest.approx(math.log(1.6) / 2.875, rel=1e-12))


@given(CORPORA, QUERIES)
def test_relevance_is_that_of_the_library(corpus: dict[str, tuple[str, str]], query: str):
    """bm25s, built from scratch over the same tokens, gives the same scores (it computes in single precision)."""
    bags = {item: tokens(title) * 3 + tokens(body) for item, (title, body) in corpus.items()}
    found = dict(built(corpus).search(query, 100))
    known = [token for token in sorted(set(tokens(query))) if any(token in bag for bag in bags.values())]
    if not known:
        assert found == {}
        return
    reference = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    reference.index(list(bags.values()), show_progress=False)
    scores = dict(zip(bags, reference.get_scores(known).tolist(), strict=True))
    assert found == pytest.approx({item: score for item, score in scores.items() if score > 0}, rel=1e-5)


def test_a_word_counts_once_however_often_the_query_has_it():
    """Pasted code repeats a type five times; that does not make it what the question is about."""
    index = built({"a": ("", "tail tile"), "b": ("", "softmax shift")})
    assert index.search("tail tail tail tile", 5) == index.search("tile tail", 5)


def test_an_added_text_is_found_by_the_next_search():
    """And a removed one is not, and a replaced one by its new words only."""
    index = built({"a": ("Tail blocks", "mask the tail")})
    assert index.search("double buffering", 5) == []
    index.add("b", "Double buffering", "overlap copy and compute")
    assert [item for item, _ in index.search("double buffering", 5)] == ["b"]
    index.replace("b", "Vector width", "use eight lanes")
    assert index.search("double buffering", 5) == []
    assert [item for item, _ in index.search("lanes", 5)] == ["b"]
    index.remove("b")
    assert index.search("lanes", 5) == []
    assert (len(index), "a" in index, "b" in index) == (1, True, False)


def test_a_word_of_the_title_counts_more():
    """Texts of the same length and words, one with the word in its title."""
    index = built({"body": ("alpha", "tail one two"), "title": ("tail", "alpha one two")})
    assert [item for item, _ in index.search("tail", 5)] == ["title", "body"]


def test_equal_relevance_is_ordered_by_id():
    """Two hundred texts alike: the first ids come first, however they were added."""
    names = [f"e{n:03}" for n in range(200)]
    index = built(dict.fromkeys(reversed(names), ("tail", "mask")))
    assert [item for item, _ in index.search("tail", 30)] == names[:30]
    assert [item for item, _ in index.search("tail", 500)] == names


@pytest.mark.parametrize("allow", [lambda item: int(item) % 50 == 0, {"0", "50", "100", "150", "200", "250"}])
def test_only_what_is_allowed_is_found(allow: Callable[[str], bool] | set[str]):
    """However far down it stands: shorter texts come first, and few are allowed."""
    index = built({str(n): ("", "tail " + "filler " * n) for n in range(300)})
    assert [item for item, _ in index.search("tail", 4, allow)] == ["0", "50", "100", "150"]
    assert len(index.search("tail", 100, allow)) == 6
    assert index.search("tail", 4, set()) == []


def test_nothing_is_found_where_nothing_is_shared():
    """Empty index, empty query, only common words, unknown words, no places."""
    index = built({"a": ("Tail", "the tail"), "empty": ("", "")})
    for query in ("", "the of and", "unseen", "!?"):
        assert index.search(query, 5) == []
    assert index.search("tail", 0) == []
    assert LexicalIndex().search("tail", 5) == []


def test_ids_are_used_once_and_must_exist():
    """Errors name the id."""
    index = built({"a": ("Tail", "")})
    with pytest.raises(ExperienceExistsError, match="'a'"):
        index.add("a", "Other", "")
    for action in (lambda: index.remove("b"), lambda: index.replace("b", "", "")):
        with pytest.raises(UnknownExperienceError, match="'b'"):
            action()
    assert [item for item, _ in index.search("tail", 5)] == ["a"]


def test_chinese_texts_are_found():
    """By a word of two characters inside a sentence without blanks."""
    index = built({"a": ("双缓冲", "用双缓冲重叠搬运与计算"), "b": ("尾块处理", "对尾块使用掩码")})
    assert [item for item, _ in index.search("尾块", 5)] == ["b"]
    assert [item for item, _ in index.search("缓冲", 5)] == ["a"]


@given(CORPORA, st.randoms(use_true_random=False), QUERIES)
def test_the_order_of_insertion_never_matters(corpus: dict[str, tuple[str, str]], random, query: str):
    """Same ids, same order, same scores to the last bit."""
    shuffled = list(corpus.items())
    random.shuffle(shuffled)
    assert built(dict(shuffled)).search(query, 20) == built(corpus).search(query, 20)


def test_many_changes_leave_no_trace():
    """A thousand replacements of ten texts: the index holds ten, and answers as if built anew."""
    index = built({f"e{n}": ("tile", "tail " * n) for n in range(10)})
    for turn in range(1000):
        index.replace(f"e{turn % 10}", "tile", "buffer " * (turn % 7) + "tail")
    fresh = built({f"e{n}": ("tile", "buffer " * ((990 + n) % 7) + "tail") for n in range(10)})
    assert index.search("tail buffer", 10) == fresh.search("tail buffer", 10)
    assert len(index) == 10


class Changes(RuleBasedStateMachine):
    """Any sequence of changes leaves an index that equals one built from scratch, to the last bit."""

    def __init__(self) -> None:
        super().__init__()
        self.index = LexicalIndex()
        self.texts: dict[str, tuple[str, str]] = {}

    @rule(item=st.sampled_from([f"e{n}" for n in range(8)]), title=TEXTS, body=TEXTS)
    def put(self, item: str, title: str, body: str) -> None:
        (self.index.replace if item in self.texts else self.index.add)(item, title, body)
        self.texts[item] = (title, body)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.texts)))
        self.index.remove(item)
        del self.texts[item]

    @invariant()
    def equals_one_built_from_scratch(self) -> None:
        fresh = built(self.texts)
        for query in ("tail", "copy buffer tile", "缓冲 32 KB set flag"):
            assert self.index.search(query, 5) == fresh.search(query, 5)
        assert len(self.index) == len(self.texts)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=40, stateful_step_count=30)
