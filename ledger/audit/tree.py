"""The answer to `why` as a tree of lines for a person. Numbers in [brackets] are sequences of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.audit import words

Json = dict[str, Any]


def why_lines(answer: Json, *, diff: bool = True) -> Iterator[str]:
    """The whole answer, top down: verdict, gate, rank, moves, value's course with its evidence, frequency, origin."""
    yield f"{answer['experience']}: {answer['title']}"
    yield answer["answer"]
    yield from _gate(answer["gate"])
    for what, table in words.tables(answer):
        yield from _rank(table, what)
    if answer["what_would_it_take"] is not None:
        yield "what it would take"
        yield from (f"  {line}" for line in words.lacking_lines(answer["what_would_it_take"]))
    yield from _rule(answer["rule"])
    yield from _listed("moves", (words.move(move) for move in answer["moves"]))
    yield f"value: {len(answer['value'])} updates"
    for item in words.course(answer):
        if "restated" in item:
            yield f"  {words.restated(item['restated'])}"
        elif "reversal" in item:
            yield f"  {words.reversal(item['reversal'])}"
        else:
            yield from _update(item["update"], diff=diff)
    yield from _listed("offered where no value moved", (words.unscored(item) for item in answer["unscored"]))
    yield from _listed(f"frequency: {words.frequency(answer['frequency'])}", words.frequencies(answer["frequency"]))
    yield from _listed("hold-out", words.holdout(answer))
    yield from _listed("conflicts", (words.conflict(item, answer["experience"]) for item in answer["conflicts"]))
    yield from _listed("applies", words.applies(answer))
    yield from _origin(answer["origin"])


def _listed(head: str, lines: Iterator[str]) -> Iterator[str]:
    """The head, and the lines under it; nothing where there are none and the head says nothing by itself."""
    told = [f"  {line}" for line in lines]
    if told or ":" in head:
        yield head
        yield from told


def _gate(gate: Json) -> Iterator[str]:
    yield f"gate: {'passes' if gate['passes'] else 'does not pass'}"
    yield f"  value {words.number(gate['value'])} (must be above 0)"
    yield f"  adopted in {gate['adoptions']} stages (at least {gate['min_adoptions']})"
    names = ", ".join(gate["operators"]) or "none"
    yield f"  on {len(gate['operators'])} operators (at least {gate['min_operators']}): {names}"


def _rank(table: Json | None, what: str) -> Iterator[str]:
    if table is None:
        yield f"{what}: it is not in the table of candidates"
        return
    yield f"{what} [{table['sequence']}] after {table['trigger']} {table['subject']}"
    yield from (f"  {line}" for line in words.rank(table))


def _rule(rule: Json | None) -> Iterator[str]:
    if rule is None:
        yield "rule: none distilled yet"
        return
    yield (
        f"rule [{rule['sequence']}] by {rule['actor']}, {rule['tokens']} tokens ({rule['tokenizer']}), blob "
        f"{words.blob(rule['blob'])}"
    )
    for line in (rule["text"] or "(erased)").splitlines():
        yield f"  | {line}"


def _update(update: Json, *, diff: bool) -> Iterator[str]:
    yield (
        f"  [{update['sequence']}] {update['operator']} {update['kind']} ({update['stage']}, {update['agent']} "
        f"with {update['model']}): {words.number(update['old'])} -> {words.number(update['new'])}"
    )
    yield f"      {words.credit(update)}"
    yield from (f"      {line}" for line in words.around(update))
    for decision in update["decisions"]:
        yield f"      {words.decision(decision)}"
        change = decision.get("change")
        if change is not None:
            yield from _change(change, diff=diff)
    yield from (f"      {line}" for line in words.evidence(update["evidence"]))


def _change(change: Json, *, diff: bool) -> Iterator[str]:
    yield f"        {words.change(change)}"
    if diff and change["diff"] and change["parent"]:
        for line in change["diff"].splitlines():
            yield f"          {line}"


def _origin(origin: Json) -> Iterator[str]:
    yield (
        f"origin [{origin['sequence']}]: {origin['kind']} {origin['name']} recorded by {origin['actor']} at "
        f"{origin['time']}, text {words.blob(origin['body'])}"
    )
    for sha256 in origin["texts"]:
        yield f"  drawn from {words.blob(sha256)}"
    for line in (origin["body_text"] or "(erased)").splitlines():
        yield f"  | {line}"
    for item in origin["amendments"]:
        yield words.amendment(item)
        for line in (item["body_text"] or "(erased)").splitlines():
            yield f"  | {line}"
    if origin["retired"] is not None:
        yield words.end(origin["retired"])
