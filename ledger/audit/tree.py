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
    if answer["admission"] is not None:
        yield from _rank(answer["admission"], "admitted by consolidation")
    yield from _rank(answer["consolidation"], "newest consolidation")
    if answer["what_would_it_take"] is not None:
        yield "what it would take"
        yield from (f"  {line}" for line in lacking_lines(answer["what_would_it_take"]))
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
    for told in answer["restated"]:
        yield (
            f"  [{told['sequence']}] restated: value {_number(told['value'])}, N {told['retrievals']}, "
            f"adoptions {told['adoptions']}"
        )
    for where in answer["environments"]["needs_revalidation"]:
        yield f"needs revalidation under chip {where[0] or '?'}, toolkit {where[1] or '?'}"
    for item in answer["conflicts"]:
        yield f"conflict [{item['sequence']}] {item['conflict']}: {item['reason']}"
    frequency = answer["frequency"]
    yield f"frequency {_number(frequency['now'])}: {frequency['rule']}"
    yield from _origin(answer["origin"])


def lacking_lines(lack: Json) -> Iterator[str]:  # noqa: C901, PLR0912 - one arm a hindrance
    """What keeps it out, by how much, and the least change that would let it in."""
    if lack["retired"]:
        yield "it is retired; record a new experience, or let the one that superseded it stand"
    if lack["no_residents"]:
        yield "the policy keeps no residents; another policy would have to"
    if lack["value_short"] is not None:
        yield f"the value must rise by more than {lack['value_short']:.4f}, to above 0"
    if lack["adoptions_missing"]:
        yield f"{lack['adoptions_missing']} more stages must adopt it"
    if lack["operators_missing"]:
        yield f"{lack['operators_missing']} more operators must adopt it"
    if lack["rule_missing"]:
        yield "a rule text must be distilled"
    if lack["against"]:
        yield f"the conflict with {lack['against']} must be settled in its favour, or that rule leave"
    for other in lack["above"]:
        yield f"out-ranked by {other['experience']} ({other['tokens']} tokens) by a priority of {other['margin']:.4g}"
    least = lack["least"]
    if least is not None:
        ways = []
        if least["value"] is not None:
            ways.append(f"a value above {least['value']:.4f}")
        if least["frequency"] is not None:
            ways.append(f"a frequency above {least['frequency']:.4f}")
        if least["tokens"] is not None:
            ways.append(f"a rule of at most {least['tokens']} tokens")
        if ways:
            yield "the least that lets it into the budget: " + ", or ".join(ways)
        else:
            yield "no value, frequency or length alone would let it into the budget"


def _gate(gate: Json) -> Iterator[str]:
    yield f"gate: {'passes' if gate['passes'] else 'does not pass'}"
    yield f"  value {_number(gate['value'])} (must be above 0)"
    yield f"  adopted in {gate['adoptions']} stages (at least {gate['min_adoptions']})"
    names = ", ".join(gate["operators"]) or "none"
    yield f"  on {len(gate['operators'])} operators (at least {gate['min_operators']}): {names}"


def _rank(table: Json | None, what: str) -> Iterator[str]:
    if table is None:
        yield f"{what}: it is not in the table of candidates"
        return
    yield f"{what} [{table['sequence']}] after {table['trigger']} {table['subject']}"
    yield (
        f"  rank {table['rank']} of {table['candidates']}: priority {table['priority']:.4g} = value "
        f"{_number(table['value'])}"
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
    yield (
        f"rule [{rule['sequence']}] by {rule['actor']}, {rule['tokens']} tokens ({rule['tokenizer']}), blob "
        f"{_short(rule['blob'])}"
    )
    for line in (rule["text"] or "(erased)").splitlines():
        yield f"  | {line}"


def _update(update: Json, *, diff: bool) -> Iterator[str]:
    share = f"adopted with {update['adopted_in_stage']} in all" if update["adopted"] else "not adopted"
    yield (
        f"  [{update['sequence']}] {update['operator']} {update['kind']} ({update['stage']}, {update['agent']} "
        f"with {update['model']}): "
        f"{_number(update['old'])} -> {_number(update['new'])}"
    )
    yield (
        f"      score {_number(update['score'])} [{update['scored_at']}], {share}: feedback "
        f"{_number(update['feedback'])}, "
        f"alpha {_number(update['alpha'])}, N {update['n']}"
    )
    where = update["environment"]
    if where.get("chip") or where.get("toolkit"):
        yield f"      on {where.get('chip', '?')}, toolkit {where.get('toolkit', '?')}"
    if not update["counts"]:
        yield "      withdrawn: it does not count; the value goes on from where it was restated"
    for reversal in update["reversals"]:
        yield f"      reversed [{reversal['sequence']}] by {reversal['actor']}: {reversal['reason']}"
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
        yield (
            f"      {role} {fact['candidate']}: {verdict}{measured}; report {_short(fact.get('report'))}, "
            f"judge {str(fact.get('judge'))[:12]}"
        )


def _origin(origin: Json) -> Iterator[str]:
    yield (
        f"origin [{origin['sequence']}]: {origin['kind']} {origin['name']} recorded by {origin['actor']}, "
        f"text {_short(origin['body'])}"
    )
    for sha256 in origin["texts"]:
        yield f"  drawn from {_short(sha256)}"
    for line in (origin["body_text"] or "(erased)").splitlines():
        yield f"  | {line}"
