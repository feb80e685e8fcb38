"""Reads how a round ended: which symptoms it shows, and which decisions those make suspect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.models.search.dimensions import Traits
from agent.models.search.space import Choices
from agent.port import Attempt

_EXPECTED = re.compile(r"expected (\S+?),? got (\S+?)(?:[\s;,(]|$)")
_CASE = re.compile(r"(?:at case|^)\s*([\w.-]+(?:/[\w.-]+)?)[,:]")
_RELATIVE = re.compile(r"max relative error ([\w.+-]+)")
_ABSOLUTE = re.compile(r"max absolute error ([\w.+-]+)")
_STRIDED = ("transposed", "swapped", "padded", "sliced", "expanded", "strided")
_UNEVEN = ("tail", "prime", "narrow", "one", "single", "vector", "thin", "odd")


@dataclass(frozen=True, slots=True)
class Symptom:
    """What a failure looks like. `suspects` names the decisions to look at, the likeliest first."""

    name: str
    words: str
    suspects: tuple[str, ...]


_SYMPTOMS: Mapping[str, Symptom] = {
    symptom.name: symptom
    for symptom in (
        Symptom(
            "not_finite",
            "a number that should be finite came out as infinity or not-a-number: something overflowed, or was "
            "divided by zero",
            ("softmax_shift", "variance", "eps", "tail", "layout", "fast_math"),
        ),
        Symptom(
            "lost_nan",
            "not-a-number was in the input and was lost: comparisons never choose it",
            ("nan", "fast_math", "layout"),
        ),
        Symptom("unwritten", "an element of the output was never written", ("tail", "layout")),
        Symptom(
            "strided",
            "the inputs of the failing case are not dense, so a position in memory is not a flat index",
            ("layout", "tail", "eps"),
        ),
        Symptom("wrong_index", "another index than the expected one was returned", ("ties", "nan", "tail", "layout")),
        Symptom(
            "drift",
            "the result is close but outside what rounding explains: digits were lost in a long sum or a difference",
            (
                "variance",
                "cdf",
                "accumulator",
                "tile_k",
                "eps",
                "accumulators",
                "loop_order",
                "fast_math",
                "exp",
                "erf",
                "softmax_shift",
            ),
        ),
        Symptom(
            "far_off",
            "the result is another number altogether",
            ("tail", "eps", "layout", "variance", "softmax_shift", "accumulator"),
        ),
        Symptom("crash", "memory outside the tensors was touched", ("layout", "tail", "stores", "packing")),
        Symptom("build", "the source did not build, or was refused", ("fast_math", "unroll_loops", "stores")),
        Symptom("slow", "the run took too long or too much memory", ("threads", "accumulator", "tile_k")),
    )
}


def symptoms(attempt: Attempt) -> tuple[Symptom, ...]:
    """The symptoms of a failed attempt, the most telling first; empty for a correct one."""
    match attempt.outcome:
        case "correct":
            return ()
        case "compile_error" | "refused":
            return (_SYMPTOMS["build"],)
        case "crash":
            return (_SYMPTOMS["crash"],)
        case "hang" | "resource":
            return (_SYMPTOMS["slow"],)
        case _:
            return _wrong(f"{attempt.summary}\n{attempt.evidence}")


def _wrong(text: str) -> tuple[Symptom, ...]:
    found: list[str] = []
    values = _EXPECTED.search(text)
    expected, got = values.groups() if values else ("", "")
    case = failing_case(text)
    if "never written" in text:
        found.append("unwritten")
    if _is_finite(expected) and not _is_finite(got):
        found.append("not_finite")
    if expected.lower() == "nan" or "nans" in case:
        found.append("lost_nan")
    if any(word in case for word in _STRIDED):
        found.append("strided")
    if "ties" in case:
        found.append("wrong_index")
    if not found:
        found.append("far_off" if _relative_error(expected, got) > 0.01 else "drift")
    elif found[0] == "strided" and _relative_error(expected, got) < 0.01:
        found.append("drift")
    return tuple(_SYMPTOMS[name] for name in found)


def failing_case(text: str) -> str:
    """The name of the failing case, empty where it is not told."""
    found = _CASE.search(text)
    return found.group(1) if found else ""


def _is_finite(number: str) -> bool:
    return bool(number) and number.lower().lstrip("-+") not in {"nan", "inf", "infinity"}


def _relative_error(expected: str, got: str) -> float:
    try:
        wanted, value = float(expected), float(got)
    except ValueError:
        return 1.0
    return abs(value - wanted) / max(abs(wanted), 1e-30)


def suspects(attempt: Attempt, traits: Traits, choices: Choices) -> tuple[str, ...]:
    """Decisions of this kernel that the symptoms point at, the likeliest first, each once."""
    del traits  # what does not apply is not among the choices
    names = [name for symptom in symptoms(attempt) for name in symptom.suspects]
    return tuple(name for name in dict.fromkeys(names) if name in choices)


def words(attempt: Attempt) -> str:
    """What the last round showed, in one sentence."""
    found = symptoms(attempt)
    if not found:
        latency = f"{attempt.latency_ms:.4f} ms" if attempt.latency_ms is not None else "a time that was not measured"
        return f"round {attempt.round} was correct and took {latency}"
    return f"round {attempt.round} ended {attempt.outcome}: " + "; ".join(symptom.words for symptom in found)
