"""The answer to `why` as Markdown, to paste into a review."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.audit import words

Json = dict[str, Any]


def _cell(value: object) -> str:
    text = "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)  # noqa: RUF001 - typography
    return text.replace("|", "\\|").replace("\n", " ")


def _table(headers: tuple[str, ...], rows: list[tuple[object, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(headers) + " |"
    yield "|" + "---|" * len(headers)
    for row in rows:
        yield "| " + " | ".join(_cell(value) for value in row) + " |"
    yield ""


def _fence(text: str, language: str = "") -> Iterator[str]:
    """A code fence longer than any in the text."""
    longest = max(
        (len(run) for line in text.splitlines() for run in [line[: len(line) - len(line.lstrip("`"))]]), default=0
    )
    ticks = "`" * max(3, longest + 1)
    yield ticks + language
    yield text
    yield ticks
    yield ""


def why_markdown(answer: Json) -> str:
    """The whole answer. Numbers in brackets are sequences of the library's log."""
    return "\n".join(_lines(answer)).rstrip() + "\n"


def _lines(answer: Json) -> Iterator[str]:
    yield f"## Why `{answer['experience']}`: {_cell(answer['title'])}"
    yield ""
    yield answer["answer"]
    yield ""
    gate = answer["gate"]
    yield f"### Gate: {'passes' if gate['passes'] else 'does not pass'}"
    yield ""
    yield from _table(
        ("what", "has", "needs"),
        [
            ("value", gate["value"], "above 0"),
            ("stages adopted in", gate["adoptions"], gate["min_adoptions"]),
            ("operators", f"{len(gate['operators'])}: {', '.join(gate['operators'])}", gate["min_operators"]),
        ],
    )
    for what, table in words.tables(answer):
        if table is None:
            yield from _listed(_head(what), ["it is not in the table of candidates"])
        else:
            head = f"{_head(what)} [{table['sequence']}] after {table['trigger']} {_cell(table['subject'])}"
            yield from _listed(head, words.rank(table))
    if answer["what_would_it_take"] is not None:
        yield from _listed("What it would take", words.lacking_lines(answer["what_would_it_take"]))
    if answer["rule"] is not None:
        rule = answer["rule"]
        yield f"### Rule [{rule['sequence']}] by {rule['actor']}, {rule['tokens']} tokens ({rule['tokenizer']})"
        yield ""
        yield from _fence(rule["text"] or "(erased)")
    yield from _listed("Moves", (words.move(move) for move in answer["moves"]))
    yield from _value(answer)
    yield from _decisions(answer["value"])
    yield from _listed("Offered where no value moved", (words.unscored(item) for item in answer["unscored"]))
    yield from _listed(f"Frequency: {words.frequency(answer['frequency'])}", words.frequencies(answer["frequency"]))
    yield from _listed("Hold-out", words.holdout(answer))
    yield from _listed("Conflicts", (words.conflict(item, answer["experience"]) for item in answer["conflicts"]))
    yield from _listed("Applies", words.applies(answer))
    yield from _origin(answer["origin"])


def _head(what: str) -> str:
    return what[:1].upper() + what[1:]


def _listed(head: str, lines: Iterable[str]) -> Iterator[str]:
    """A section of bullets; none where there is nothing to list and the head says nothing by itself."""
    told = [f"- {_cell(line)}" for line in lines]
    if told or ":" in head:
        yield f"### {head}"
        yield ""
        if told:
            yield from told
            yield ""


def _value(answer: Json) -> Iterator[str]:
    yield "### Value"
    yield ""
    headers = ("sequence", "operator", "stage", "agent", "model", "score", "adopted", "of")
    yield from _table(
        (*headers, "feedback", "alpha", "N", "old", "new", "counts"),
        [
            (
                u["sequence"],
                u["operator"],
                f"{u['kind']} {u['stage']}",
                u["agent"],
                u["model"],
                u["score"],
                "yes" if u["adopted"] else "no",
                u["adopted_in_stage"],
                u["feedback"],
                u["alpha"],
                u["n"],
                u["old"],
                u["new"],
                "yes" if u["counts"] else "no, withdrawn",
            )
            for u in answer["value"]
        ],
    )
    moved = [item for item in words.course(answer) if "update" not in item]
    yield from _listed(
        "Reversals",
        (words.restated(m["restated"]) if "restated" in m else words.reversal(m["reversal"]) for m in moved),
    )


def _decisions(updates: list[Json]) -> Iterator[str]:
    yield "### Decisions and evidence"
    yield ""
    for update in updates:
        yield f"- [{update['sequence']}] {_cell(update['operator'])} {update['kind']}: {words.credit(update)}"
        for line in (*words.around(update), *map(words.decision, update["decisions"])):
            yield f"  - {_cell(line)}"
        for decision in update["decisions"]:
            if decision.get("change"):
                yield f"  - {_cell(words.change(decision['change']))}"
        yield from (f"  - {_cell(line)}" for line in words.evidence(update["evidence"]))
    yield ""
    for update in updates:
        for decision in update["decisions"]:
            change = decision.get("change")
            if change and change["diff"] and change["parent"]:
                yield f"<details><summary>[{change['sequence']}] {_cell(html.escape(change['change']))}</summary>"
                yield ""
                yield from _fence(change["diff"], "diff")
                yield "</details>"
                yield ""


def _origin(origin: Json) -> Iterator[str]:
    yield f"### Origin [{origin['sequence']}]: {origin['kind']} {_cell(origin['name'])}"
    yield ""
    yield f"Recorded by {origin['actor']} at {origin['time']}, text `{origin['body']}`."
    yield ""
    yield from (f"- drawn from `{sha256}`" for sha256 in origin["texts"])
    if origin["texts"]:
        yield ""
    yield from _fence(origin["body_text"] or "(erased)", "markdown")
    for item in origin["amendments"]:
        yield f"Text {_cell(words.amendment(item))}."
        yield ""
        yield from _fence(item["body_text"] or "(erased)", "markdown")
    if origin["retired"] is not None:
        yield f"It was {_cell(words.end(origin['retired']))}."
