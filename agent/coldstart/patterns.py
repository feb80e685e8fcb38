"""A static reader of C++ kernels: which techniques a source shows, and what one has that another lacks.

Each technique of `techniques` is recognised by its text in the code that the entry point reaches, and quoted
from there.
"""

from __future__ import annotations

import re

from agent.coldstart.techniques import TECHNIQUES, Technique
from agent.port import OperatorCard, Pattern

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(r"\b(?:struct|class)\s+(\w+)|([A-Za-z_]\w*)\s*(?:\(|=[^=]|__attribute__|\{|;)")


def techniques(source: str, family: str = "") -> dict[str, str]:
    """The techniques that a source shows, by key, each with the line that shows it."""
    code = reached(source)
    header = next((line for line in source.splitlines()[:8] if line.startswith("// choices:")), "")
    stated = {pair.strip().replace("=", " = ", 1) for pair in header.removeprefix("// choices:").split(",")}
    found: dict[str, str] = {}
    for technique in TECHNIQUES:
        if family and technique.families and family not in technique.families:
            continue
        if stated.issuperset(technique.changes):
            found[technique.key] = ", ".join(technique.changes)
            continue
        if technique.unless and re.search(technique.unless, f"{code}\n{header}"):
            continue
        if match := re.search(technique.shows, code):
            found[technique.key] = _line_of(code, match)
    return found


def compare(operator: OperatorCard, generated: str, expert: str) -> tuple[Pattern, ...]:
    """The techniques that the expert's source shows and the generated one lacks, as reusable patterns."""
    theirs, ours = techniques(expert, operator.family), techniques(generated, operator.family)
    if "threads-threshold" in theirs:
        theirs.pop("threads-rows", None)
    code = reached(generated)
    return tuple(
        _pattern(operator, technique, theirs[technique.key], code)
        for technique in TECHNIQUES
        if technique.key in theirs and technique.key not in ours
    )


def reached(source: str) -> str:
    """The source without comments and without top-level definitions that the entry point never reaches.

    A shared header brings helpers that a kernel does not use; what they do is no evidence of what the kernel does.
    """
    pieces = _pieces(_COMMENT.sub("", source))
    live = [("sagebook_kernel" in piece) or piece.startswith(("#", "namespace", "using")) for piece in pieces]
    if not any("sagebook_kernel" in piece for piece in pieces):
        return "\n".join(pieces)
    names = [_defined(piece) for piece in pieces]
    words = {word for piece, is_live in zip(pieces, live, strict=True) if is_live for word in _WORD.findall(piece)}
    grown = True
    while grown:
        grown = False
        for at, piece in enumerate(pieces):
            if not live[at] and names[at] & words:
                live[at] = grown = True
                words.update(_WORD.findall(piece))
    return "\n".join(piece for piece, is_live in zip(pieces, live, strict=True) if is_live)


def _pieces(code: str) -> list[str]:
    """Top-level definitions: each ends where the braces opened in it are closed."""
    pieces: list[str] = []
    current: list[str] = []
    depth = 0
    for line in code.splitlines():
        bare = line.strip()
        if not bare:
            continue
        if not current and (bare.startswith(("#", "namespace")) or bare == "}"):
            pieces.append(line)
            continue
        current.append(line)
        depth += line.count("{") - line.count("}")
        if depth <= 0 and bare.endswith((";", "}")):
            pieces.append("\n".join(current))
            current, depth = [], 0
    return [*pieces, "\n".join(current)] if current else pieces


def _defined(piece: str) -> frozenset[str]:
    """Names that a piece may define: those before its first body, call or value."""
    head = piece.split("{", 1)[0] if "(" not in piece.split("{", 1)[0] else piece.split("(", 1)[0] + "("
    return frozenset(name for pair in _NAMED.findall(f"{head} {{") for name in pair if name)


def _pattern(operator: OperatorCard, technique: Technique, expert_line: str, generated: str) -> Pattern:
    match = re.search(technique.instead, generated)
    own = f"has `{_line_of(generated, match)}`" if match else "has nothing in its place"
    changes = "\n".join(f"Change: {change}" for change in technique.changes)
    body = (
        f"{technique.title}.\n\n"
        f"What differs in `{operator.name}` ({operator.family}): the expert's kernel has `{expert_line}`; the "
        f"generated one {own}.\n\n"
        f"Why: {technique.reason}\n\n"
        f"When: {technique.when}\n\n"
        f"{changes}\n"
    )
    return Pattern(technique.key, technique.title, body, technique.stages, technique.families)


def _line_of(code: str, match: re.Match[str], limit: int = 110) -> str:
    """The text of a match, cut to one short line."""
    text = " ".join(match.group(0).split()) or " ".join(code[match.start() : match.start() + limit].split())
    text = text.replace("`", "'")
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
