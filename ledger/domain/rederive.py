"""The same facts again: under the recorded policy, compared event by event, or under another policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.domain import consolidation, decide
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State, evolve, initial

OUTCOMES: tuple[type[ev.Event], ...] = (
    ev.StageScored,
    ev.ValueUpdated,
    ev.FrequencyUpdated,
    ev.Consolidated,
    ev.RuleAdmitted,
    ev.RuleEvicted,
)
"""What the ledger computed. Everything else is fact."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the recorded and the derived outcome part."""

    sequence: int
    recorded: ev.Event | None
    derived: ev.Event | None


@dataclass(slots=True)
class Derivation:
    """What the facts come to."""

    state: State
    compared: int = 0
    first_difference: Difference | None = None
    _expected: deque[ev.Event] = field(default_factory=deque)


def rederive(events: Iterable[ev.Event], policy: Policy | None = None) -> Derivation:
    """Run the facts of a library under `policy`, or under its own and compare with what was recorded.

    Later facts stand as recorded: what was offered, presented and adopted is never guessed anew.
    """
    derivation = Derivation(initial())
    sequence = 0
    for sequence, event in enumerate(events, 1):
        if isinstance(event, OUTCOMES):
            _outcome(derivation, sequence, event, compare=policy is None)
        else:
            _fact(derivation, sequence, event, policy)
    if policy is None and derivation._expected and derivation.first_difference is None:  # noqa: SLF001 - same module
        derivation.first_difference = Difference(sequence + 1, None, derivation._expected[0])  # noqa: SLF001
    return derivation


def _outcome(derivation: Derivation, sequence: int, event: ev.Event, *, compare: bool) -> None:
    if isinstance(event, ev.StageScored):
        stage = derivation.state.stages[event.stage]
        _apply(derivation, decide.settle(derivation.state, stage))
    if not compare:
        derivation._expected.clear()  # noqa: SLF001
        return
    derived = derivation._expected.popleft() if derivation._expected else None  # noqa: SLF001
    derivation.compared += 1
    if derived != event and derivation.first_difference is None:
        derivation.first_difference = Difference(sequence, event, derived)


def _fact(derivation: Derivation, sequence: int, event: ev.Event, policy: Policy | None) -> None:
    state = derivation.state
    if derivation._expected:  # noqa: SLF001
        if policy is None and derivation.first_difference is None:
            derivation.first_difference = Difference(sequence, event, derivation._expected[0])  # noqa: SLF001
        derivation._expected.clear()  # noqa: SLF001
    if policy is not None and isinstance(event, ev.LibraryCreated):
        event = ev.LibraryCreated(policy=policy, policy_name="other", title=event.title)
    if policy is not None and isinstance(event, ev.PolicyChanged):
        return
    evolve(state, event)
    if isinstance(event, ev.RuleDistilled):
        _apply(derivation, consolidation.consolidate(state, "rule", event.experience))
    elif isinstance(event, ev.ExperienceRetired):
        _apply(derivation, consolidation.consolidate(state, "retire", event.experience, without=event.experience))
    elif isinstance(event, ev.PolicyChanged):
        _apply(derivation, consolidation.consolidate(state, "policy", state.policy_name))


def _apply(derivation: Derivation, events: list[ev.Event]) -> None:
    for event in events:
        evolve(derivation.state, event)
    derivation._expected.extend(events)  # noqa: SLF001
