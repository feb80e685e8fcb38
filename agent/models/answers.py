"""Reading a language model's answer, tolerantly: a source, and a JSON block that may be missing or broken. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent.errors import EmptyAnswerError, GarbageAnswerError
from agent.port import Decision, Diagnosis, Pattern, Proposal, StageKind, Usage

_FENCED = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+#-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_SOURCES = {"cpp", "c++", "cxx", "cc", "c"}
_ENTRY = "sagebook_kernel"
_STAGES: tuple[StageKind, ...] = ("correctness", "optimization")


def proposal(text: str, usage: Usage, transcript: str) -> Proposal:
    """Read a source and what was said of it.

    A source without a JSON block is taken as it is. Raises EmptyAnswerError or GarbageAnswerError, with advice.
    """
    said = _spoken(text, usage, transcript)
    blocks = [(language.lower(), content) for _, language, content in _FENCED.findall(said)]
    source = _source(blocks)
    about = _about(blocks, said)
    if source is None and not about.get("done"):
        raise GarbageAnswerError(
            f"no source in the answer: it begins with {said[:80]!r}",
            advice=f"It held no source. Answer with one ```cpp block that defines `{_ENTRY}`, then the JSON block.",
            usage=usage,
            transcript=transcript,
        )
    return Proposal(
        source=None if about.get("done") and source is None else source,
        change=_text(about.get("change")) or ("" if source is None else "not stated"),
        hypothesis=_text(about.get("hypothesis")),
        decisions=_decisions(about.get("decisions")),
        diagnosis=_diagnosis(about.get("diagnosis")),
        query=_text(about.get("query")) or None,
        usage=usage,
        transcript=transcript,
    )


def patterns(text: str, usage: Usage, transcript: str) -> tuple[Pattern, ...]:
    """Read the patterns of a comparison. Raises EmptyAnswerError or GarbageAnswerError, with advice."""
    said = _spoken(text, usage, transcript)
    candidates = [content for _, _, content in _FENCED.findall(said)] or [said]
    for content in candidates:
        found = _json(content, "[", "]")
        if isinstance(found, list):
            return tuple(item for entry in found if (item := _pattern(entry)) is not None)
    raise GarbageAnswerError(
        f"no array of patterns in the answer: it begins with {said[:80]!r}",
        advice="It held no JSON array. Answer with one ```json block that holds an array, empty if there is nothing.",
        usage=usage,
        transcript=transcript,
    )


def rule(text: str, usage: Usage, transcript: str) -> str:
    """Read a rule: the answer itself, without a fence around it. Raises EmptyAnswerError."""
    said = _spoken(text, usage, transcript)
    whole = _FENCED.fullmatch(said + "\n") or _FENCED.fullmatch(said)
    return (whole.group(3) if whole else said).strip()


def _spoken(text: str, usage: Usage, transcript: str) -> str:
    """Leave out thoughts; raise EmptyAnswerError where nothing is left."""
    said = _THOUGHT.sub("", text)
    if "</think>" in said:
        said = said.rpartition("</think>")[2]
    if not said.strip():
        raise EmptyAnswerError(
            "the answer is empty",
            advice="It was empty. Answer in the form that was asked for.",
            usage=usage,
            transcript=transcript,
        )
    return said.strip()


def _source(blocks: list[tuple[str, str]]) -> str | None:
    """Pick the block with the entry point; of several the last one, which corrects the others."""
    named = [content for language, content in blocks if language in _SOURCES or (not language and _ENTRY in content)]
    whole = [content for content in named if _ENTRY in content]
    found = (whole or named)[-1:]
    return found[0].strip() + "\n" if found and found[0].strip() else None


def _about(blocks: list[tuple[str, str]], said: str) -> Mapping[str, Any]:
    outside = _FENCED.sub("", said)
    for content in [*(content for language, content in reversed(blocks) if language not in _SOURCES), outside]:
        found = _json(content, "{", "}")
        if isinstance(found, dict):
            return found
    return {}


def _json(text: str, opening: str, closing: str) -> Any:
    """Read the outermost JSON value in a text, forgiving trailing commas and raw line ends; None if there is none."""
    start, end = text.find(opening), text.rfind(closing)
    if start < 0 or end < start:
        return None
    found = text[start : end + 1]
    for attempt in (found, re.sub(r",(\s*[}\]])", r"\1", found)):
        try:
            return json.loads(attempt, strict=False)
        except ValueError:
            continue
    return None


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _decisions(value: object) -> tuple[Decision, ...]:
    if isinstance(value, dict):  # {"id": true} or {"id": {"adopted": …, "reason": …}}
        value = [
            {"experience": key, **(item if isinstance(item, dict) else {"adopted": item})}
            for key, item in value.items()
        ]
    if not isinstance(value, list):
        return ()
    found = []
    for item in value:
        if not isinstance(item, dict):
            continue
        name = _text(item.get("experience") or item.get("id")).strip("[]")
        adopted = item.get("adopted")
        if name and isinstance(adopted, bool):
            found.append(Decision(name, adopted, _text(item.get("reason")) or "the model gave no reason"))
    return tuple(found)


def _diagnosis(value: object) -> Diagnosis | None:
    if not isinstance(value, dict):
        return None
    tool, hypothesis, evidence, step = (
        _text(value.get(key)) for key in ("tool", "hypothesis", "evidence", "next_step")
    )
    return Diagnosis(tool or "judge", hypothesis, evidence, step) if hypothesis or evidence or step else None


def _pattern(value: object) -> Pattern | None:
    if not isinstance(value, dict):
        return None
    key, title, body = (_text(value.get(name)) for name in ("key", "title", "body"))
    if not (key and title and body):
        return None
    stages = tuple(stage for stage in _STAGES if stage in (value.get("stages") or ())) or _STAGES
    families = tuple(item for item in value.get("families") or () if isinstance(item, str) and item != "any")
    return Pattern(key, title, body, stages, families)
