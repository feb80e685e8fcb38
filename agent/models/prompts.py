"""What a language model is asked: the card, the entry point, the history, the offers, the residents, and the form."""

from __future__ import annotations

from agent.port import Attempt, Context, OperatorCard

SYSTEM = """\
You develop one kernel for one operator. Each of your answers is built, verified on visible and hidden shapes against a
float64 reference and, when correct, timed beside torch. You then see what was found and answer again. First make it
correct, then make it faster. Hidden cases have odd sizes, tails, axes of size 1, long rows and legal strides: honour
the shapes and strides that are passed in, and never assume the visible ones.

Answer with exactly two fenced blocks. The first holds the whole source file:

```cpp
#include "sagebook_kernel.h"
...
```

The second says what you did:

```json
{"hypothesis": "what you believe, and why this change should help",
 "change": "what you changed, with concrete choices as `name = value`",
 "diagnosis": {"tool": "what you read: compiler, judge or timing", "hypothesis": "what is wrong or slow",
               "evidence": "the words or numbers that show it", "next_step": "what you do about it"},
 "decisions": [{"experience": "id", "adopted": true, "reason": "what it made you do, or why you left it"}],
 "query": "what to search the experience library for next, or null",
 "done": false}
```

Decide on each experience that you are offered: `adopted` is true only where your source does what it describes. Decide
on a rule only where you followed it. When nothing more is worth trying, answer with the JSON block alone and
`"done": true`.
"""

COMPARE = """\
You read two correct kernels of the same operator, one generated and one written with care by an expert. Name the
reusable patterns that the expert's has and the generated one lacks: things that would help with other operators too.
Answer with one fenced JSON block, an array (empty where there is nothing to learn):

```json
[{"key": "short-stable-name", "title": "one line",
  "body": "Markdown: what differs, the hardware reason, when to use it; a line `Change: name = value` for each choice",
  "stages": ["correctness", "optimization"], "families": ["elementwise", "reduction", "layout", "matmul", "attention"]}]
```

`stages` says where it helps. Leave `families` empty where it helps with any.
"""

DISTILL = """\
You turn an experience that has proved itself into a rule that is shown to every later author. Write only the rule: what
to do, when, and why, in the imperative, without examples of code. Keep its `Change: name = value` lines if it has any.
"""


def system(card: OperatorCard) -> str:
    """Everything that stays the same over a task: the form of an answer and the entry point."""
    return f"{SYSTEM}\nThe header that the source includes:\n\n```cpp\n{card.abi.strip()}\n```\n"


def card(operator: OperatorCard) -> str:
    """Describe the operator: definition, visible cases, attributes."""
    cases = "\n".join(f"- {line}" for line in operator.cases)
    attributes = ", ".join(operator.attributes) or "none"
    return (
        f"# Operator {operator.name} (level {operator.level}, {operator.family}, {operator.language})\n\n"
        f"{operator.summary}\n\nReference:\n\n```python\n{operator.reference.strip()}\n```\n\n"
        f"Element types: {', '.join(operator.dtypes)}. Attributes, in order: {attributes}.\n\nVisible cases:\n{cases}\n"
    )


def user(context: Context) -> str:
    """Describe one round: card, rules, offers, history and what is asked now."""
    parts = [card(context.operator)]
    if context.residents:
        parts.append("# Rules that have proved themselves\n")
        parts.extend(f"- [{rule.id}] {rule.rule}" for rule in context.residents)
    if context.offers:
        parts.append("\n# Experiences offered in this stage (decide on each by its id)\n")
        parts.extend(f"## [{offer.id}] {offer.title}\n\n{offer.body.strip()}\n" for offer in context.offers)
    if context.history:
        parts.append(_history(context.history))
    parts.append(
        f"# Now\n\nRound {context.round} of the {context.stage} stage; {context.rounds_left} rounds are left in all."
    )
    if context.advice:
        parts.append(f"\nYour last answer could not be used. {context.advice}")
    return "\n".join(parts)


def compare(operator: OperatorCard, generated: str, expert: str) -> str:
    """Ask for the patterns between two kernels."""
    sources = (("Generated", generated), ("Expert", expert))
    return card(operator) + "".join(f"\n# {who}\n\n```cpp\n{source.strip()}\n```\n" for who, source in sources)


def distill(title: str, body: str, evidence: str, limit_tokens: int) -> str:
    """Ask for a rule."""
    return f"# {title}\n\n{body.strip()}\n\nWhat it brought: {evidence}\n\nWrite at most {limit_tokens} tokens.\n"


def _history(history: tuple[Attempt, ...]) -> str:
    """All rounds in a line each, then the last source with its evidence and, where it is another, the best source."""
    lines = ["# Rounds so far\n"]
    lines.extend(_line(attempt) for attempt in history)
    last = history[-1]
    lines.append(f"\nThe last source (round {last.round}):\n\n```cpp\n{last.source.strip()}\n```\n")
    lines.append(f"What was found: {last.summary}\n\n{last.evidence.strip()}\n")
    correct = [item for item in history if item.outcome == "correct" and item.latency_ms is not None]
    best = min(correct, key=lambda item: item.latency_ms or 0.0, default=None)
    if best is not None and best is not last:
        lines.append(f"The best correct source so far (round {best.round}):\n\n```cpp\n{best.source.strip()}\n```\n")
    return "\n".join(lines)


def _line(attempt: Attempt) -> str:
    found = attempt.outcome.replace("_", " ")
    if attempt.latency_ms is not None:
        found += f", {attempt.latency_ms:.4f} ms"
        found += f" (torch {attempt.reference_ms:.4f} ms)" if attempt.reference_ms is not None else ""
    return f"{attempt.round}. [{attempt.stage}] {' '.join(attempt.change.split()) or 'first draft'} -> {found}"
