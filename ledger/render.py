"""The answer to `why` as a tree of lines for a person. Numbers in [brackets] are sequences of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def _number(value: float | None, digits: int = 4) -> str:
    return "not measured" if value is None else f"{value:.{digits}f}"


def _short(sha256: str | None) -> str:
    return "none" if sha256 is None else sha256[:12]


def why_lines(answer: Json, *, diff: bool = True) -> Iterator[str]:
    """The whole answer, top down: verdict, gate, rank, moves, value's course with its evidence, frequency, origin."""
    yield f"{answer['experience']}: {answer['title']}"
    yield answer["answer"]
    yield from _gate(answer["gate"])
    yield from _rank(answer["consolidation"])
    yield from _rule(answer["rule"])
    if answer["moves"]:
        yield "moves"
        for move in answer["moves"]:
            detail = (
                f"rank {move['rank']}, priority {move['priority']:.3g}"
                if move["move"] == "admitted"
                else move["reason"]
            )
            yield f"  [{move['sequence']}] {move['move']} after {move['subject']}: {detail}"
    yield f"value: {len(answer['value'])} updates"
    for update in answer["value"]:
        yield from _update(update, diff=diff)
    frequency = answer["frequency"]
    yield f"frequency {_number(frequency['now'])}: {frequency['rule']}"
    yield from _origin(answer["origin"])


def _gate(gate: Json) -> Iterator[str]:
    yield f"gate: {'passes' if gate['passes'] else 'does not pass'}"
    yield f"  value {_number(gate['value'])} (must be above 0)"
    yield f"  adopted in {gate['adoptions']} stages (at least {gate['min_adoptions']})"
    names = ", ".join(gate["operators"]) or "none"
    yield f"  on {len(gate['operators'])} operators (at least {gate['min_operators']}): {names}"


def _rank(table: Json | None) -> Iterator[str]:
    if table is None:
        yield "consolidation: it is not in the newest table of candidates"
        return
    yield f"consolidation [{table['sequence']}] after {table['trigger']} {table['subject']}"
    yield (
        f"  rank {table['rank']} of {table['candidates']}: priority {table['priority']:.4g} = value {_number(table['value'])}"
        f" * frequency {_number(table['frequency'])} / {table['tokens']} tokens"
    )
    yield f"  budget {table['budget']}: {table['used_before']} used above it, {table['used']} in all"
    for role in ("above", "below"):
        other = table[role]
        if other is not None:
            yield f"  {role}: {other['experience']} (priority {other['priority']:.4g}, {other['tokens']} tokens)"
    if table["margin_to_cut"] is None:
        yield "  nothing was left out: every candidate fits"
    else:
        yield f"  margin to {table['first_left_out']['experience']}, the first left out: {table['margin_to_cut']:.4g}"


def _rule(rule: Json | None) -> Iterator[str]:
    if rule is None:
        yield "rule: none distilled yet"
        return
    yield f"rule [{rule['sequence']}] by {rule['actor']}, {rule['tokens']} tokens ({rule['tokenizer']}), blob {_short(rule['blob'])}"
    for line in (rule["text"] or "(erased)").splitlines():
        yield f"  | {line}"


def _update(update: Json, *, diff: bool) -> Iterator[str]:
    share = f"adopted with {update['adopted_in_stage']} in all" if update["adopted"] else "not adopted"
    yield (
        f"  [{update['sequence']}] {update['operator']} {update['kind']} ({update['stage']}, {update['agent']} with {update['model']}): "
        f"{_number(update['old'])} -> {_number(update['new'])}"
    )
    yield (
        f"      score {_number(update['score'])} [{update['scored_at']}], {share}: feedback {_number(update['feedback'])}, "
        f"alpha {_number(update['alpha'])}, N {update['n']}"
    )
    offered = update["offered"]
    if offered is not None:
        relevance = "" if offered["relevance"] is None else f", relevance {offered['relevance']:.2f}"
        yield f"      offered [{offered['sequence']}]{relevance}"
    for decision in update["decisions"]:
        word = "adopted" if decision["adopted"] else "not adopted"
        yield f"      {word} [{decision['sequence']}]: {decision['reason']}"
        change = decision.get("change")
        if change is not None:
            yield from _change(change, diff=diff)
    yield from _evidence(update["evidence"])


def _change(change: Json, *, diff: bool) -> Iterator[str]:
    latency = "" if change["latency_ms"] is None else f", {change['latency_ms']:.4f} ms"
    yield (
        f"        candidate {change['candidate']} [{change['sequence']}] from {change['parent'] or 'nothing'}: "
        f"{change['change']} ({change['outcome'] or 'not judged'}{latency}), source {_short(change['source'])}"
    )
    if diff and change["diff"] and change["parent"]:
        for line in change["diff"].splitlines():
            yield f"          {line}"


def _evidence(evidence: Json) -> Iterator[str]:
    if evidence["basis"] == "reported":
        yield f"      evidence [{evidence['sequence']}]: {evidence['note']}"
        return
    for role in ("first", "best"):
        fact = evidence.get(role)
        if fact is None:
            continue
        verdict = f"{fact.get('outcome', 'not judged')} [{fact.get('verified_at')}] under {fact.get('rule')}"
        measured = ""
        if "measured_at" in fact:
            measured = (
                f"; {fact['latency_ms']:.4f} ± {fact['noise_ms']:.4f} ms [{fact['measured_at']}] on {fact['device']}"
                f" (reference {fact['reference_ms']:.4f} ms)"
            )
        yield f"      {role} {fact['candidate']}: {verdict}{measured}; report {_short(fact.get('report'))}, judge {str(fact.get('judge'))[:12]}"


def _origin(origin: Json) -> Iterator[str]:
    yield f"origin [{origin['sequence']}]: {origin['kind']} {origin['name']} recorded by {origin['actor']}, text {_short(origin['body'])}"
    for sha256 in origin["texts"]:
        yield f"  drawn from {_short(sha256)}"
    for line in (origin["body_text"] or "(erased)").splitlines():
        yield f"  | {line}"
