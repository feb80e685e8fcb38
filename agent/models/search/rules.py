"""Cuts an experience down to a rule, by taking its own sentences: when, what to do, why; and its `Change:` lines."""

from __future__ import annotations

import re

from agent import tokens

_SENTENCES = 2
"""A rule is always in context: it takes the two sentences that say most."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])")
_CHANGE = re.compile(r"^\s*`?(Change:\s*[a-z_]+\s*=\s*[\w.+-]+)`?\s*$", re.IGNORECASE | re.MULTILINE)
_DROPPED = re.compile(r"^(?:Applies:|Evidence:|Change:|#|\||    |>)")
_WHEN = ("when ", "where ", "if ", "for ", "once ", "as soon")
_WHY = (
    "because",
    "so that",
    "since ",
    "cycles",
    "cache",
    "bandwidth",
    "latency",
    "overflow",
    "digits",
    "costs",
    "memory",
)
_DO = re.compile(
    r"\b(?:use |take |keep |subtract|split|copy|write|compute|add |walk|pack|turn|give"
    r"|share|replace|hold|let |open |handle|read )"
)


def distill(title: str, body: str, evidence: str, limit_tokens: int) -> str:
    """A rule of at most `limit_tokens` tokens. The title leads; the evidence is not repeated in it."""
    del evidence  # the ledger keeps it beside the rule
    count = tokens.counter().count
    changes = list(dict.fromkeys(match.strip() for match in _CHANGE.findall(body)))
    head = title.strip().rstrip(".")
    lead = f"{head}."
    tail = "\n".join(changes)

    def text(sentences: list[str]) -> str:
        return "\n".join(part for part in (" ".join([lead, *sentences]), tail) if part)

    chosen: list[tuple[int, str]] = []
    candidates = sorted(enumerate(_sentences(body)), key=lambda pair: (-_weight(pair[1]), pair[0]))
    for place, sentence in candidates:
        trial = [s for _, s in sorted([*chosen, (place, sentence)])]
        if count(text(trial)) <= limit_tokens and len(chosen) < _SENTENCES:
            chosen.append((place, sentence))
    rule = text([sentence for _, sentence in sorted(chosen)])
    while count(rule) > limit_tokens and " " in lead:
        lead = lead.rsplit(" ", 1)[0]
        rule = text([])
    if count(rule) > limit_tokens and len(changes) > 1:
        rule = changes[0]
    return rule


def _sentences(body: str) -> list[str]:
    fenced = False
    paragraphs: list[str] = [""]
    for line in body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced or _DROPPED.match(line) or not line.strip():
            paragraphs.append("")
            continue
        stripped = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", line).strip()
        if re.match(r"\s*(?:[-*]|\d+\.)\s", line):
            paragraphs.append("")
        paragraphs[-1] = f"{paragraphs[-1]} {stripped}".strip()
    found = [s.strip() for p in paragraphs if p for s in _SENTENCE.split(p)]
    return [s for s in found if s.endswith((".", "!")) and 4 <= len(s.split()) <= 45]


def _weight(sentence: str) -> int:
    """How much a sentence says of when to do something, what, and why."""
    low = sentence.lower().replace("*", "").replace("`", "")
    when = low.startswith(_WHEN) or any(f" {word}" in low for word in _WHEN[:3])
    repair = low.startswith(("repair:", "when: ", "why: "))
    told = 2 * when + 2 * bool(_DO.search(low)) + any(word in low for word in _WHY)
    return told + 4 * repair - 4 * low.startswith(("confirm:", "symptom:", "what differs"))
