"""The retrieval questions are sound, and what is measured over them is worked out by hand."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agent.coldstart.documents import bundled
from benchmarks import quality
from device import operators
from ledger.retrieval.tokenize import tokens


def test_ndcg_is_that_worked_out_by_hand():
    """Gains 3 and 1 at ranks 2 and 3 are 3 / log2 3 + 1 / log2 4 = 2.39279; the best order has 3 + 1 / log2 3 = 3.63093."""
    grades = {"a": 2, "b": 1}
    assert quality.ndcg(["x", "a", "b"], grades) == pytest.approx(2.3927893 / 3.6309298, rel=1e-6)
    assert quality.ndcg(["a", "b"], grades) == pytest.approx(1.0)
    assert quality.ndcg(["b", "a"], grades) == pytest.approx((1 + 1.8927893) / 3.6309298, rel=1e-6)


def test_ndcg_sees_the_first_ten_only():
    """An answer on rank 10 gains 3 / log2 11 of 3; one on rank 11 nothing."""
    noise = [f"x{n}" for n in range(10)]
    assert quality.ndcg([*noise[:9], "a"], {"a": 2}) == pytest.approx(0.2890648, rel=1e-6)
    assert quality.ndcg([*noise, "a"], {"a": 2}) == 0.0
    assert quality.ndcg([], {"a": 1}) == 0.0


def test_recall_is_the_share_of_answers_found():
    """Of three answers one is on rank 1 and one on rank 11: a third. Grades do not matter."""
    noise = [f"x{n}" for n in range(9)]
    assert quality.recall(["a", *noise, "b"], {"a": 2, "b": 2, "c": 1}) == pytest.approx(1 / 3)
    assert quality.recall(["b", "a", "c"], {"a": 2, "b": 2, "c": 1}) == 1.0


def test_plain_bm25_knows_blanks_and_lower_case_only():
    """`Tail` is found by `tail`; `tail,` is another word."""
    texts = {"a": quality.Text("Tail", "mask"), "b": quality.Text("x", "tail, mask")}
    search = quality.plain_bm25(texts, quality.whitespace)
    assert quality.names_of(search("TAIL")) == ["a"]
    assert quality.names_of(search("tail,")) == ["b"]
    assert quality.names_of(search("unheard")) == []


def test_questions_are_many_and_each_is_one():
    """At least 200, ids and texts unique, some of every kind, at least 25 in Chinese."""
    asked = quality.questions()
    assert len(asked) >= 200
    assert len({item.id for item in asked}) == len(asked)
    assert len({item.question for item in asked}) == len(asked)
    assert min(Counter(item.kind for item in asked).values()) >= 25


def test_every_answer_is_a_text_of_the_corpus():
    """One to three answers a question, graded 1 or 2, at least one of them the answer itself."""
    texts = quality.corpus()
    for item in quality.questions():
        assert set(item.answers) <= set(texts), item.id
        assert 1 <= len(item.answers) <= 3, item.id
        assert max(item.answers.values()) == 2, item.id
        assert min(item.answers.values()) >= 1, item.id


def test_every_section_of_the_documents_is_the_answer_of_a_question():
    """A new section brings its questions along."""
    answered = {name for item in quality.questions() for name, grade in item.answers.items() if grade == 2}
    assert {section.id for document in bundled() for section in document.sections} <= answered


def test_every_error_is_the_answer_of_a_question():
    """And its id is unique, and no path of a machine is left in it."""
    errors = quality.failures()
    answered = {name for item in quality.questions() for name, grade in item.answers.items() if grade == 2}
    assert len({item.id for item in errors}) == len(errors) >= 60
    assert {item.id for item in errors} <= answered
    assert not [item.id for item in errors if re.search(r"/(usr|tmp|home|root|work)/", item.error)]


def test_the_starter_operators_are_in_the_corpus():
    """Each with its summary and traps."""
    texts = quality.corpus()
    for name in operators.names():
        operator = operators.get(name)
        assert texts[f"op-{name}"].body.splitlines() == [operator.summary, *operator.traps]


def test_a_paraphrase_shares_no_word_with_its_answer():
    """Words of two letters and more, without the commonest."""
    texts = quality.corpus()
    for item in quality.questions():
        for name in (n for n, grade in item.answers.items() if grade == 2 and item.kind == "paraphrase"):
            text = texts[name]
            shared = set(tokens(item.question)) & set(tokens(f"{text.title} {text.body}"))
            assert not {word for word in shared if len(word) > 1 and not word.isdigit()}, (item.question, name)


def test_no_question_is_copied_from_its_answer():
    """Five words in a row of the answer are a copy, but for messages that people do paste."""
    texts = quality.corpus()
    for item in quality.questions():
        if item.kind in {"compile", "verdict"} or "expected '}'" in item.question:
            continue
        asked = re.findall(r"\w+", item.question.lower())
        for name in item.answers:
            said = " ".join(re.findall(r"\w+", f"{texts[name].title} {texts[name].body}".lower()))
            runs = [" ".join(asked[start : start + 5]) for start in range(len(asked) - 4)]
            assert not [run for run in runs if f" {run} " in f" {said} "], (item.question, name)


def test_an_exact_name_is_found_first():
    """`_mm256_stream_ps`, `OMP_NUM_THREADS`, an operator's name: the first hit of the lexical index is an answer."""
    search = quality.our_lexical(quality.corpus())
    for item in quality.questions():
        if item.kind == "identifier":
            first, *_ = quality.names_of(search(item.question))
            assert first in item.answers, (item.question, first)


def test_our_lexical_index_beats_plain_bm25():
    """Over all questions, in both measures, by at least a twentieth."""
    asked, texts = quality.questions(), quality.corpus()
    ours, plain = quality.our_lexical(texts), quality.plain_bm25(texts, quality.whitespace)
    for measure in (quality.ndcg, quality.recall):
        means = [
            sum(measure(quality.names_of(search(item.question)), item.answers) for item in asked) / len(asked)
            for search in (ours, plain)
        ]
        assert means[0] > means[1] + 0.05, (measure.__name__, means)
