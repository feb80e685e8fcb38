"""Text and code to search tokens. Pure: the same text gives the same tokens anywhere."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_SAME_UNITS = "b kb mb gb tb kib mib gib ns us ms s hz khz mhz ghz w x % flops gflops tflops gb/s tb/s".split()  # noqa: SIM905 - reads better
_UNITS = {unit: unit for unit in _SAME_UNITS} | {
    # NFKC turns the micro sign into the Greek letter.
    "μs": "us",
    "byte": "b",
    "bytes": "b",
    "bit": "bit",
    "bits": "bit",
}
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_WORD = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    rf"|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<unit>\ ?(?:{_UNIT})(?![^\W{_HAN}]))?(?![^\W{_HAN}])"
    rf"|(?P<word>[^\W{_HAN}]+)",
    re.IGNORECASE,
)
# `DataCopy` before `Copy`, `HTTP` before `Server`, letters before digits: float | 32.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_NAME = re.compile(r"[^\W_]_[^\W_]|[a-z][A-Z]|[^\W\d_]\d|\d[^\W\d_]")
# The second line is what questions are made of; in a corpus of answers such words are rare, so BM25 would prize them.
_STOP = frozenset(
    (  # noqa: SIM905 - reads as sentences
        "a an the of to in on at is are was be been and or it its this that these those with as by for from "
        "how do does did what when where which why who should can could may must will would "
        "i my me we you your if no not but so then than there here has have had just only also"
    ).split()
) | frozenset("的了是在和与")


def tokens(text: str) -> list[str]:
    """Tokens in order of appearance, with repeats.

    - words in lower case; an identifier also by its parts: `DataCopyPad` -> datacopypad, data, copy, pad;
      `set_flag` -> set_flag, set, flag; `float32` -> float32, float;
      a part of one letter says nothing: `int8_t` -> int8_t, int
    - a number with its unit as one token whatever the space between, and the number alone: `32 KB` -> 32kb, 32
    - Chinese, Japanese and Korean as single characters and pairs of neighbours: `双缓冲` -> 双, 缓, 冲, 双缓, 缓冲
    - without the commonest words and those that questions are made of
    """
    return [token for token in _tokens(unicodedata.normalize("NFKC", text)) if token not in _STOP]


def _tokens(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        if han := match["han"]:
            yield from han
            yield from (han[i : i + 2] for i in range(len(han) - 1))
        elif number := match["number"]:
            if unit := match["unit"]:
                yield number + _UNITS[unit.strip().lower()]
            yield number
        else:
            yield from _identifier(match["word"])


@functools.lru_cache(maxsize=2**16)
def _identifier(word: str) -> tuple[str, ...]:
    whole = word.strip("_").lower()
    if not whole:
        return ()
    parts = [part.lower() for part in _PART.findall(word)]
    if len(parts) == 1:
        return (whole,)
    # The digits of `float32` or `v2` say nothing by themselves, nor does the t of `int64_t`.
    return (whole, *(part for part in parts if len(part) > 1 and not part.isdigit()))


def exact_names(text: str) -> float:
    """Share of the words that are names out of code, which mean themselves alone: 0 for prose, 1 for `set_flag`.

    A name has an underscore, a capital or a digit inside, or stands right before `(` or beside `::`.
    """
    text = unicodedata.normalize("NFKC", text)
    words = [match for match in _WORD.finditer(text) if not match["number"]]
    names = sum(_is_name(text, match) for match in words)
    return names / len(words) if words else 0.0


def _is_name(text: str, match: re.Match[str]) -> bool:
    if not match["word"]:
        return False
    start, end = match.span()
    called = text.startswith(("(", "::"), end) or text.endswith("::", 0, start)
    return called or match[0].startswith("_") or _NAME.search(match[0]) is not None
