"""Words, identifiers, numbers with units and Chinese as search tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.retrieval.tokenize import exact_names, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Double Buffering", ["double", "buffering"]),
        ("DataCopyPad", ["datacopypad", "data", "copy", "pad"]),
        ("set_flag", ["set_flag", "set", "flag"]),
        ("SetFlag", ["setflag", "set", "flag"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("AscendC::DataCopy<half>(x)", ["ascendc", "ascend", "datacopy", "data", "copy", "half", "x"]),
        ("__syncthreads", ["syncthreads"]),
        ("MAX_UB_SIZE", ["max_ub_size", "max", "ub", "size"]),
        ("float32 int8_t", ["float32", "float", "int8_t", "int"]),
        ("910B", ["910b", "910"]),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text: str, expected: list[str]):
    """Camel case, snake case, acronyms, namespaces, digits at the end."""
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32 KB", ["32kb", "32"]),
        ("32KB", ["32kb", "32"]),
        ("0.6 ms", ["0.6ms", "0.6"]),
        ("5 µs, 5us", ["5us", "5", "5us", "5"]),
        ("256 bytes", ["256b", "256"]),
        ("1.5GB/s", ["1.5gb/s", "1.5"]),
        ("50%", ["50%", "50"]),
        ("1e-3", ["1e-3"]),
        ("32 buffers", ["32", "buffers"]),
        ("3.14", ["3.14"]),
    ],
)
def test_a_number_and_its_unit_are_one_token_and_the_number_another(text: str, expected: list[str]):
    """With and without a blank between; a word that only starts like a unit is a word."""
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("双缓冲", ["双", "缓", "冲", "双缓", "缓冲"]),
        ("用DataCopy搬运", ["用", "datacopy", "data", "copy", "搬", "运", "搬运"]),
        ("缓冲区32KB对齐", ["缓", "冲", "区", "缓冲", "冲区", "32kb", "32", "对", "齐", "对齐"]),
        ("核", ["核"]),
        ("ＤａｔａＣｏｐｙ", ["datacopy", "data", "copy"]),  # noqa: RUF001 - full width is the point
    ],
)
def test_chinese_is_found_by_characters_and_pairs(text: str, expected: list[str]):
    """There are no blanks between its words; full-width letters are letters."""
    assert tokens(text) == expected


def test_the_commonest_words_are_left_out():
    """Also where they are a part of an identifier."""
    assert tokens("the tail of a tile is in UB 的") == ["tail", "tile", "ub"]
    assert tokens("is_aligned") == ["is_aligned", "aligned"]


def test_words_that_questions_are_made_of_are_left_out():
    """They are rare in a corpus of answers, so BM25 would take them for the matter."""
    assert tokens("How do I stop my kernel when it should not hang?") == ["stop", "kernel", "hang"]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("why is my softmax slow", 0.0),
        ("set_flag", 1.0),
        ("_mm512_load_ps crashes", 0.5),
        ("DataCopyPad float32 AscendC::Add schedule(static)", 5 / 6),
        ("softmax 慢", 0.0),
        ("12 ms, 0.5", 0.0),
        ("", 0.0),
    ],
)
def test_names_out_of_code_are_told_from_prose(text: str, share: float):
    """An underscore, a capital or a digit inside, a call or a namespace; numbers are no words."""
    assert exact_names(text) == pytest.approx(share)


@given(st.text())
def test_any_text_has_tokens_that_are_stable(text: str):
    """Never an error, never an empty token, and the same again."""
    found = tokens(text)
    assert all(token and token.strip() == token for token in found)
    assert found == tokens(text)
