"""Audit: why, re-derivation, verification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from ledger import wire
from ledger.audit import statistics, words
from ledger.commands.libraries import point, resolve_policy
from ledger.domain import costs, course, decide, diff, explain, holdout
from ledger.domain import events as ev
from ledger.domain.rederive import Difference, rederive
from ledger.domain.state import State
from ledger.domain.trail import Entry
from ledger.domain.whereabouts import trail_of
from ledger.errors import ExperienceNotYetError, InvalidInputError
from ledger.progress import Tell, counted, untold
from ledger.service import Ledger


def why(ledger: Ledger, library: str, name: str, at: str | int | None = None) -> dict[str, Any]:
    """Why an experience's rule is resident or not, now or as of a point."""
    sequence = point(ledger, library, at)
    if sequence is not None:
        then = ledger.as_of(library, sequence)
        if name not in then.experiences:
            _not_yet(ledger, library, name, sequence)
        return _why(ledger, library, name, then)
    with ledger.reading(library) as state:
        return _why(ledger, library, name, state)


def _not_yet(ledger: Ledger, library: str, name: str, sequence: int) -> NoReturn:
    with ledger.reading(library) as now:
        raise ExperienceNotYetError(name, sequence, decide.experience_of(now, name).trail[0])


def _why(ledger: Ledger, library: str, name: str, state: State) -> dict[str, Any]:
    decide.experience_of(state, name)
    entries = (Entry(r.sequence, r.time, r.actor, r.event) for r in ledger.recorded_at(library, trail_of(state, name)))
    answer = {"library": library, **explain.why(state, name, entries, ledger.text)}
    measured = holdout.arms_of(state, name)
    answer["uplift"] = statistics.uplift(measured).model_dump() if measured.withheld or measured.presented else None
    return answer


def why_not(ledger: Ledger, library: str, name: str, at: str | int | None = None) -> wire.WhyNot:
    """What keeps a rule out of the resident set, by how much, and the least change that would let it in."""
    answer = why(ledger, library, name, at)
    told = {field: answer[field] for field in wire.WhyNot.model_fields if field in answer}
    lack = answer["what_would_it_take"]
    return wire.WhyNot(**told, lines=[] if lack is None else list(words.lacking_lines(lack)))


def difference(ledger: Ledger, library: str, start: str | int, end: str | int | None) -> wire.LibraryDiff:
    """What changed between two points, and which events did it."""
    first = point(ledger, library, start) or 0
    last = point(ledger, library, end)
    if last is None:
        last = ledger.head(library)
    if first > last:
        raise InvalidInputError(f"the first point, sequence {first}, is after the second, {last}; swap them")
    before, after = ledger.as_of(library, first), ledger.as_of(library, last)
    entries = [Entry(r.sequence, r.time, r.actor, r.event) for r in ledger.recorded(library, after=first, until=last)]
    changes = diff.diff(before, after, ((e.sequence, e.event) for e in entries))
    return wire.LibraryDiff(
        library=library,
        start=first,
        end=last,
        admitted=sorted(set(after.residents) - set(before.residents)),
        evicted=sorted(set(before.residents) - set(after.residents)),
        reversals=[
            wire.DiffReversal(**course.reversal(entry))
            for entry in entries
            if isinstance(entry.event, ev.StageInvalidated | ev.StageReinstated)
        ],
        changes=[_change(ledger, item) for item in changes],
    )


def _change(ledger: Ledger, item: diff.Change) -> wire.ExperienceDiff:
    rules = tuple(ledger.text(sha256) if sha256 else None for sha256 in item.rule)
    return wire.ExperienceDiff(
        experience=item.experience,
        value=item.value,
        frequency=item.frequency,
        resident=item.resident,
        retired=item.retired,
        rule=(rules[0], rules[1]) if item.rule[0] != item.rule[1] else None,
        text_changed=item.body[0] != item.body[1],
        events=item.events,
    )


def cost_report(ledger: Ledger, library: str, by: costs.Group) -> wire.Costs:
    """What the work cost, in groups, and what each rule's upkeep cost against what it brought."""
    with ledger.reading(library) as state:
        events = list(ledger.facts(library, until=state.sequence))
        found = costs.totals(state, events, by)
        kept = costs.upkeep(state, events)
        evidence = holdout.arms(state)
        return wire.Costs(
            library=library,
            by=by,
            groups=[
                wire.CostTotal(
                    group=group,
                    request_model=group if by == "model" and group != costs.NOBODY else None,
                    model_seconds=total.seconds["model"],
                    compile_seconds=total.seconds["compile"],
                    device_seconds=total.seconds["device"],
                    upkeep_seconds=total.seconds["upkeep"],
                    input_tokens=total.input_tokens,
                    output_tokens=total.output_tokens,
                    estimated=total.estimated,
                )
                for group, total in found.items()
            ],
            rules=[
                wire.RuleUpkeep(
                    **{f: getattr(item, f) for f in wire.RuleUpkeep.model_fields if f != "uplift"},
                    uplift=statistics.difference(evidence[name]) if name in evidence else None,
                )
                for name, item in kept.items()
            ],
        )


def evidence(ledger: Ledger, library: str) -> wire.HoldoutEvidence:
    """The measured uplift of each rule that was withheld from some stages."""
    with ledger.reading(library) as state:
        return wire.HoldoutEvidence(
            library=library,
            rate=state.policy.holdout_rate,
            rules=[statistics.uplift(item) for _, item in sorted(holdout.arms(state).items())],
        )


def _shown(event: ev.Event | None) -> dict[str, Any] | None:
    return None if event is None else {"type": ev.NAME_OF.get(type(event), "?"), **msgspec.to_builtins(event)}


def _difference(found: Difference | None) -> wire.Difference | None:
    if found is None:
        return None
    return wire.Difference(sequence=found.sequence, recorded=_shown(found.recorded), derived=_shown(found.derived))


def rederivation(
    ledger: Ledger, library: str, given: str | Mapping[str, Any] | None, tell: Tell = untold
) -> wire.Rederivation:
    """Recompute from the facts, under the recorded policy (None) or another, and set the two side by side.

    The library is not held up meanwhile; what is appended then is not part of it.
    """
    policy, name = (None, "") if given is None else resolve_policy(given)
    with ledger.reading(library) as state:
        sequence, name = state.sequence, name or state.policy_name
        values = {item: state.experiences[item].value for item in sorted(state.experiences)}
        residents = set(state.residents)
    derivation = rederive(counted(ledger.facts(library, until=sequence), sequence, tell), policy)
    derived = derivation.state
    return wire.Rederivation(
        library=library,
        sequence=sequence,
        policy_name=name,
        policy=derived.policy.to_mapping(),
        same_policy=policy is None,
        compared=derivation.compared,
        first_difference=_difference(derivation.first_difference),
        residents=sorted(derived.residents),
        resident_tokens=sum(derived.experiences[r].tokens or 0 for r in derived.residents),
        would_enter=sorted(set(derived.residents) - residents),
        would_leave=sorted(residents - set(derived.residents)),
        rank_correlation=statistics.rank_correlation(
            list(values.values()), [derived.experiences[item].value for item in values]
        ),
        experiences={
            item: wire.DerivedExperience(
                value=derived.experiences[item].value,
                recorded_value=value,
                resident=derived.experiences[item].resident,
                recorded_resident=item in residents,
            )
            for item, value in values.items()
        },
    )
