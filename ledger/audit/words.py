"""The facts of an answer in words, a line each: what the tree, Markdown and the page say alike."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

Json = dict[str, Any]

_UP = Context(prec=4, rounding=ROUND_CEILING)


def number(value: float | None, digits: int = 4) -> str:
    """A number to so many places, or that there is none."""
    return "not measured" if value is None else f"{value:.{digits}f}"


def blob(sha256: str | None) -> str:
    """A hash in full, since that is what commands and paths take."""
    return "none" if sha256 is None else sha256


def _enough(value: float) -> str:
    """A bound rounded up to four digits, so that what is above what is printed is above the bound."""
    return f"{_UP.plus(Decimal(repr(value))):f}" if value else "0"


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
    least = lack["least"] or {"value": None, "frequency": None, "tokens": None}
    if lack["rule_missing"]:
        most = f" of at most {least['tokens']} tokens" if least["tokens"] else ""
        yield f"a rule text{most} must be distilled"
    for item in lack["conflicts"]:
        if item["settled"]:
            yield (
                f"it lost the conflict {item['conflict']} with {item['rival']}, and stays out while that lives: "
                f"{item['reason']}"
            )
        else:
            yield (
                f"{item['rival']} contradicts it and ranks above it: out-rank that, or have the conflict "
                f"{item['conflict']} settled in its favour ({item['reason']})"
            )
    for other in lack["above"]:
        yield f"out-ranked by {other['experience']} ({other['tokens']} tokens) by a priority of {other['margin']:.4g}"
    if lack["fits"]:
        yield f"with that it would be admitted as it is, at rank {lack['rank']} of {lack['candidates']}"
        return
    if lack["least"] is None or lack["rule_missing"] or any(item["settled"] for item in lack["conflicts"]):
        return
    ways = []
    if least["value"]:
        ways.append(f"a value above {_enough(least['value'])}")
    if least["frequency"] is not None:
        ways.append(f"a frequency above {_enough(least['frequency'])}")
    if least["tokens"] is not None:
        ways.append(f"a rule of at most {least['tokens']} tokens")
    if ways:
        yield "the least that admits it, the other numbers as they are: " + ", or ".join(ways)
    elif least["value"] is None:
        yield "no value, frequency or length alone would admit it"


def tables(answer: Json) -> Iterator[tuple[str, Json | None]]:
    """The consolidation that admitted it, and the newest where that is another."""
    admission, newest = answer["admission"], answer["consolidation"]
    if admission is not None:
        yield ("admitted by consolidation" if answer["resident"] else "last admitted by consolidation"), admission
    if admission is None or newest is None or newest["sequence"] != admission["sequence"]:
        yield "newest consolidation", newest


def rank(table: Json) -> Iterator[str]:
    """Rank, priority, budget, neighbours and margin, as one consolidation has them."""
    yield (
        f"rank {table['rank']} of {table['candidates']}: priority {table['priority']:.4g} = value "
        f"{number(table['value'])} * frequency {number(table['frequency'])} / {table['tokens']} tokens"
    )
    yield (
        f"budget {table['budget']}: {table['used_before']} used before its turn, {table['used_after']} after, "
        f"{table['used']} in all"
    )
    for role in ("above", "below"):
        other = table[role]
        if other is not None:
            yield f"{role}: {_neighbour(other)}"
    if not table["fits"]:
        yield f"left out: {table['against']} keeps it out" if table["against"] else "left out: its tokens do not fit"
    elif table["margin_to_cut"] is None:
        yield "nothing was left out: every candidate fits"
    else:
        cut = table["first_left_out"]
        yield f"margin to {cut['experience']}, the first left out: {table['margin_to_cut']:.4g}"


def _neighbour(other: Json) -> str:
    out = "" if other["fits"] else f", left out: {other['against']}" if other["against"] else ", left out"
    return f"{other['experience']} (priority {other['priority']:.4g}, {other['tokens']} tokens{out})"


def move(item: Json) -> str:
    """An admission or eviction, and the consolidation that made it."""
    admitted = item["move"] == "admitted"
    detail = f"rank {item['rank']}, priority {item['priority']:.3g}" if admitted else item["reason"]
    table = f", consolidation [{item['consolidation']}]" if item["consolidation"] else ""
    return f"[{item['sequence']}] {item['move']} after {item['subject']}{table}: {detail}"


def course(answer: Json) -> list[Json]:
    """What moved the value, in order: `update`, `restated`, and each `reversal` that it follows from."""
    found = [(u["sequence"], {"update": u}) for u in answer["value"]]
    found += [(r["sequence"], {"restated": r}) for r in answer["restated"]]
    found += [(r["sequence"], {"reversal": r}) for r in answer["reversals"]]
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


def credit(update: Json) -> str:
    """How an update's feedback came about."""
    share = f"adopted with {update['adopted_in_stage']} in all" if update["adopted"] else "not adopted"
    return (
        f"score {number(update['score'])} [{update['scored_at']}], {share}: feedback {number(update['feedback'])}, "
        f"alpha {number(update['alpha'])}, N {update['n']}"
    )


def around(update: Json) -> Iterator[str]:
    """Where a stage ran, whether it still counts, and how the experience came before the agent."""
    where = update["environment"]
    if where.get("chip") or where.get("toolkit"):
        yield f"on {where.get('chip', '?')}, toolkit {where.get('toolkit', '?')}"
    if not update["counts"]:
        yield "withdrawn: it does not count; the value goes on from where it was restated"
    yield from (reversal(item) for item in update["reversals"])
    yield from _before(update)


def _before(item: Json) -> Iterator[str]:
    if item["offered"] is not None:
        yield offer(item["offered"])
    if item["presented"] is not None:
        told = item["presented"]
        yield f"presented [{told['sequence']}] as one of {told['rules']} resident rules, {told['tokens']} tokens"


def reversal(item: Json) -> str:
    """Who withdrew verdicts, or let them count again, and why."""
    by = "" if item["by"] == "person" else f" for the {item['by']}"
    stages = ", ".join(item["stages"])
    return f"[{item['sequence']}] {item['what']} {item['subject']} by {item['actor']}{by}: {item['reason']} ({stages})"


def restated(item: Json) -> str:
    """What a reversal made of the numbers."""
    because = item["because"]
    after = "" if because is None else f" because [{because['sequence']}] {because['subject']} was {because['what']}"
    often = "" if item["frequency"] is None else f", frequency {number(item['frequency'])}"
    return (
        f"[{item['sequence']}] restated{after}: value {number(item['value'])}, N {item['retrievals']}, adoptions "
        f"{item['adoptions']} on {len(item['operators'])} operators{often}"
    )


def offer(item: Json) -> str:
    """Why a retrieval offered it."""
    place = f"offered [{item['sequence']}] as {item['position']} of {item['offered']}"
    asked = f" for {item['query']!r}" if item["query"] else ""
    if item["pool_rank"] is None:
        return f"{place}{asked}"
    parts = [f"relevance {item['relevance']:.3f}"]
    if item["dense"] is not None or item["lexical"] is not None:
        parts.append(f"of lexical {number(item['lexical'], 3)} and dense {number(item['dense'], 3)}")
        parts.append(f"by {item['fusion']} with {item['model']}")
    else:
        parts.append(f"({item['fusion']})")
    return (
        f"{place}, {item['pool_rank']} in a pool of {item['pool']}{asked}: {' '.join(parts)}; with "
        f"value {number(item['value'])} then a score of {item['score']:.3f}"
    )


def decision(item: Json) -> str:
    """A decision and its reason."""
    return f"{'adopted' if item['adopted'] else 'not adopted'} [{item['sequence']}]: {item['reason']}"


def unscored(item: Json) -> str:
    """A stage that moved no value."""
    status = item["status"] if item["counts"] else f"{item['status']}, withdrawn"
    told = "; ".join((*_before(item), *(decision(one) for one in item["decisions"])))
    return f"{item['operator']} {item['kind']} ({item['stage']}, {status}): {told}"


def change(item: Json) -> str:
    """The candidate that an adoption led to."""
    latency = "" if item["latency_ms"] is None else f", {item['latency_ms']:.4f} ms"
    return (
        f"candidate {item['candidate']} [{item['sequence']}] from {item['parent'] or 'nothing'}: {item['change']} "
        f"({item['outcome'] or 'not judged'}{latency}), source {blob(item['source'])}"
    )


def evidence(item: Json) -> Iterator[str]:
    """What a score was read from."""
    if item["basis"] == "reported":
        yield f"evidence [{item['sequence']}]: {item['note']}"
        return
    for role in ("first", "best"):
        fact = item.get(role)
        if fact is None:
            continue
        verdict = "not judged"
        if "verified_at" in fact:
            verdict = f"{fact['outcome']} [{fact['verified_at']}] by rule {fact['rule']} in mode {fact['mode']}"
        measured = ""
        if "measured_at" in fact:
            measured = (
                f"; {fact['latency_ms']:.4f} ± {fact['noise_ms']:.4f} ms [{fact['measured_at']}] on {fact['device']}"
                f" (reference {fact['reference_ms']:.4f} ms)"
            )
        yield (
            f"{role} {fact['candidate']}: {verdict}{measured}; report {blob(fact.get('report'))}, "
            f"judge {str(fact.get('judge'))[:12]}"
        )


def frequency(item: Json) -> str:
    """The frequency now and the rule that it follows."""
    newest = f"; its newest {len(item['course'])} changes" if len(item["course"]) >= item["kept"] else ""
    return f"{number(item['now'])}, {item['rule']}{newest}"


def frequencies(item: Json) -> Iterator[str]:
    """Each change that is kept."""
    for one in item["course"]:
        rule = "average" if one["averaged"] else "share"
        used = "used" if one["used"] else "not used"
        yield f"[{one['sequence']}] {one['stage']}: {number(one['old'])} -> {number(one['new'])} ({used}, {rule})"


def holdout(answer: Json) -> Iterator[str]:
    """What the rule brings as measured without it, and the stages that it was withheld from."""
    uplift = answer.get("uplift")
    if uplift is not None:
        if uplift["difference"] is None:
            yield uplift["verdict"]
        else:
            yield (
                f"uplift {uplift['difference']:+.4f}, 95 % interval {uplift['low']:+.4f} to {uplift['high']:+.4f}, "
                f"from {uplift['presented']} stages with it and {uplift['withheld']} without: {uplift['verdict']}"
            )
    for item in answer["withheld"]:
        score = item["status"] if item["score"] is None else f"score {number(item['score'])}"
        out = "" if item["counts"] else ", withdrawn"
        yield (
            f"[{item['sequence']}] withheld from {item['operator']} {item['kind']} ({item['stage']}) at rate "
            f"{item['rate']:g}: {score}{out}"
        )


def conflict(item: Json, name: str) -> str:
    """With which rule, since when, and who lost."""
    told = (
        f"[{item['sequence']}] {item['conflict']} with {item['rival']}, recorded by {item['actor']}: {item['reason']}"
    )
    if item["proposed"]:
        told += " (an agent's reading)"
    end = item["settled"]
    if end is None:
        return f"{told}; open, {item['rival']} is {'resident' if item['rival_resident'] else 'not resident'}"
    if end["loser"] is None:
        verdict = "they do not contradict each other"
    else:
        verdict = f"{end['loser']} lost, {item['rival'] if end['loser'] == name else name} won"
    return f"{told}; settled [{end['sequence']}] by {end['actor']}, {verdict}: {end['reason']}"


def applies(answer: Json) -> Iterator[str]:
    """Conditions, where there is evidence, and where it is asked for again."""
    conditions = answer["conditions"]
    yield f"in stages {', '.join(conditions['stages'])}"
    for name, value in conditions.items():
        if name == "shapes":
            for bound in value:
                yield f"{bound['size']} from {bound.get('least', 'any')} to {bound.get('most', 'any')}"
        elif name != "stages":
            yield f"{name} {value if isinstance(value, str) else ', '.join(value)}"
    for role in ("evidence", "needs_revalidation"):
        for chip, toolkit in answer["environments"][role]:
            yield f"{role.replace('_', ' ')} under chip {chip or '?'}, toolkit {toolkit or '?'}"
    for event in answer["environments"]["events"]:
        what = "revalidated" if "stage" in event else "revalidation required"
        where = event.get("stage") or event.get("task")
        yield f"[{event['sequence']}] {what} by {where} under chip {event['chip']}, toolkit {event['toolkit']}"


def amendment(item: Json) -> str:
    """Who changed the text, and why."""
    return (
        f"amended [{item['sequence']}] by {item['actor']} at {item['time']}: {item['reason']}; "
        f"title {item['title']!r}, text {blob(item['body'])}"
        + ("" if item["conditions"] is None else ", other conditions")
    )


def end(item: Json) -> str:
    """Its retirement or supersession."""
    what = f"superseded by {item['by']}" if item["by"] else "retired"
    return f"{what} [{item['sequence']}] by {item['actor']} at {item['time']}: {item['reason']}"
