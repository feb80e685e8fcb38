"""The answer to `why` as Markdown, to paste into a review."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.audit.tree import lacking_lines

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
    yield f"## Why `{answer['experience']}`: {answer['title']}"
    yield ""
    yield answer["answer"]
    yield ""
    gate = answer["gate"]
    yield "### Gate"
    yield ""
    yield from _table(
        ("what", "has", "needs"),
        [
            ("value", gate["value"], "above 0"),
            ("stages adopted in", gate["adoptions"], gate["min_adoptions"]),
            ("operators", f"{len(gate['operators'])}: {', '.join(gate['operators'])}", gate["min_operators"]),
        ],
    )
    yield from _rank(answer["consolidation"])
    if answer["what_would_it_take"] is not None:
        yield "### What it would take"
        yield ""
        yield from (f"- {line}" for line in lacking_lines(answer["what_would_it_take"]))
        yield ""
    if answer["rule"] is not None:
        rule = answer["rule"]
        yield f"### Rule [{rule['sequence']}], {rule['tokens']} tokens ({rule['tokenizer']})"
        yield ""
        yield from _fence(rule["text"] or "(erased)")
    yield "### Value"
    yield ""
    yield from _table(
        (
            "sequence",
            "operator",
            "stage",
            "model",
            "score",
            "adopted",
            "of",
            "feedback",
            "alpha",
            "N",
            "old",
            "new",
            "counts",
        ),
        [
            (
                u["sequence"],
                u["operator"],
                u["kind"],
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
    yield from _decisions(answer["value"])
    origin = answer["origin"]
    yield f"### Origin [{origin['sequence']}]: {origin['kind']} {origin['name']}"
    yield ""
    yield f"Recorded by {origin['actor']} at {origin['time']}, text `{origin['body']}`."
    yield ""
    yield from _fence(origin["body_text"] or "(erased)", "markdown")


def _rank(table: Json | None) -> Iterator[str]:
    if table is None:
        return
    yield f"### Consolidation [{table['sequence']}]"
    yield ""
    yield (
        f"Rank {table['rank']} of {table['candidates']}: priority {table['priority']:.4g} = value "
        f"{table['value']:.4f} × "  # noqa: RUF001 - typography
        f"frequency {table['frequency']:.4f} / {table['tokens']} tokens; {table['used']} of {table['budget']} "
        f"tokens used."
    )
    yield ""


def _decisions(updates: list[Json]) -> Iterator[str]:
    yield "### Decisions and evidence"
    yield ""
    for update in updates:
        for decision in update["decisions"]:
            word = "adopted" if decision["adopted"] else "not adopted"
            yield (
                f"- [{decision['sequence']}] {update['operator']} {update['kind']}: **{word}**, "
                f"{_cell(decision['reason'])}"
            )
        evidence = update["evidence"]
        for role in ("first", "best"):
            fact = evidence.get(role)
            if fact and "latency_ms" in fact:
                yield (
                    f"  - {role} `{fact['candidate']}` [{fact['measured_at']}]: {fact['latency_ms']:.4f} ± "
                    f"{fact['noise_ms']:.4f} ms "
                    f"on {_cell(fact['device'])}, reference {fact['reference_ms']:.4f} ms, report "
                    f"`{str(fact['report'])[:12]}`"
                )
        if evidence["basis"] == "reported":
            yield f"  - [{evidence['sequence']}] {evidence['note']}"
    yield ""
    for update in updates:
        for decision in update["decisions"]:
            change = decision.get("change")
            if change and change["diff"] and change["parent"]:
                yield f"<details><summary>[{change['sequence']}] {_cell(change['change'])}</summary>"
                yield ""
                yield from _fence(change["diff"], "diff")
                yield "</details>"
                yield ""
