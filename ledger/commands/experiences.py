"""Experiences: record, amend, distill, retire, list."""

from __future__ import annotations

from ledger import views, wire
from ledger.domain import consolidation, decide
from ledger.domain import events as ev
from ledger.domain.applicability import check_asked, holds
from ledger.domain.state import Experience, State, Task
from ledger.service import Batch, Call, Ledger

BYTES_A_TOKEN = 4
"""Estimate where nobody counted: English text has about four bytes a token. Rounded up, never below one."""


def _answer(ledger: Ledger, batch: Batch, name: str) -> wire.Experience:
    def text(sha256: str) -> str | None:
        given = batch.blobs.get(sha256)
        return ledger.text(sha256) if given is None else given.decode()

    return views.experience(batch.state, batch.state.experiences[name], text)


def record(ledger: Ledger, call: Call, library: str, new: wire.NewExperience) -> wire.Experience | bytes:
    """Put an experience into cold memory."""

    def command(batch: Batch) -> None:
        for sha256 in new.source.texts:
            ledger.blob(sha256)
        batch.emit(
            decide.record_experience(
                batch.state,
                ev.ExperienceRecorded(
                    experience=new.experience,
                    title=new.title,
                    body=batch.blob(new.body),
                    stages=tuple(dict.fromkeys(new.stages)),
                    source=ev.Source(kind=new.source.kind, name=new.source.name, texts=new.source.texts),
                    conditions=views.conditions(new.conditions),
                ),
            )
        )

    return ledger.execute(library, call, command, lambda batch: _answer(ledger, batch, new.experience))


def amend(ledger: Ledger, call: Call, library: str, name: str, change: wire.AmendExperience) -> wire.Experience | bytes:
    """Change the text."""

    def command(batch: Batch) -> None:
        batch.emit(
            decide.amend_experience(
                batch.state,
                ev.ExperienceAmended(
                    experience=name,
                    title=change.title,
                    body=batch.blob(change.body),
                    reason=change.reason,
                    conditions=None if change.conditions is None else views.conditions(change.conditions),
                ),
            )
        )

    return ledger.execute(library, call, command, lambda batch: _answer(ledger, batch, name))


def retire(ledger: Ledger, call: Call, library: str, name: str, reason: str) -> wire.Experience | bytes:
    """Offer it no more."""

    def command(batch: Batch) -> None:
        batch.emit(decide.retire_experience(batch.state, name, reason))

    return ledger.execute(library, call, command, lambda batch: _answer(ledger, batch, name))


def distill(
    ledger: Ledger, call: Call, library: str, name: str, rule: wire.NewRule
) -> wire.ConsolidationResult | bytes | None:
    """Give it a rule; answers with the consolidation that followed, if the policy has any."""
    estimate = max(1, -(-len(rule.text.encode()) // BYTES_A_TOKEN))

    def command(batch: Batch) -> None:
        batch.emit(
            decide.distill_rule(
                batch.state,
                ev.RuleDistilled(
                    experience=name,
                    text=batch.blob(rule.text),
                    tokens=estimate if rule.tokens is None else rule.tokens,
                    tokenizer=f"bytes/{BYTES_A_TOKEN}" if rule.tokens is None else rule.tokenizer,
                    model=rule.model,
                ),
            )
        )

    return ledger.execute(library, call, command, lambda batch: views.consolidation_result(batch.numbered()))


def show(ledger: Ledger, library: str, name: str) -> wire.Experience:
    """One experience with its texts."""
    with ledger.reading(library) as state:
        return views.experience(state, decide.experience_of(state, name), ledger.text)


def page(
    ledger: Ledger, library: str, *, after: int, limit: int, asked: wire.ExperienceFilter
) -> tuple[list[wire.Experience], int | None]:
    """Experiences recorded after a sequence, in order, and the sequence to go on from if there are more."""
    check_asked(asked.dtype, asked.toolkit)
    with ledger.reading(library) as state:
        like = Task(
            id="",
            operator="",
            level=0,
            model="",
            budget=1,
            family=asked.family,
            dtype=asked.dtype,
            language=asked.language,
            configuration={},
            environment={"chip": asked.chip, "toolkit": asked.toolkit},
            shapes={},
        )
        items: list[wire.Experience] = []
        for item in state.experiences.values():
            if item.recorded <= after or not _asked_for(state, item, asked, like):
                continue
            if len(items) == limit:
                return items, items[-1].recorded
            items.append(views.experience(state, item, ledger.text))
        return items, None


def _asked_for(state: State, item: Experience, asked: wire.ExperienceFilter, like: Task) -> bool:
    """Whether it is one of those; `like` is a task of the family, dtype ... that were named."""
    stale = (
        item.is_stale(like.where)
        if any(like.where)
        else any(item.needs_revalidation(where) for where in item.questioned)
    )
    facts = (
        (asked.resident, item.resident),
        (asked.awaiting_distillation, consolidation.is_awaiting(state, item)),
        (asked.stale, stale),
        (asked.conflict, any(conflict.open for conflict in state.conflicts_of.get(item.id, ()))),
        (asked.superseded, item.superseded_by is not None),
        (asked.retired, item.retired),
    )
    return all(wanted is None or wanted == found for wanted, found in facts) and holds(item.conditions, like)
