"""The same facts again: under the recorded policy, compared event by event, or under another policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Derivation:
    """What the facts come to. `first_difference` is only looked for under the recorded policy."""

    state: State
    compared: int
    first_difference: Difference | None


def rederive(events: Iterable[ev.Event], policy: Policy | None = None) -> Derivation:
    """Run the facts of a library under `policy`, or under its own and compare with what was recorded.

    Later facts stand as recorded: what was offered, presented and adopted is never guessed anew.
    """
    run = _Run(policy)
    for event in events:
        run.take(event)
    run.end()
    return Derivation(run.state, run.compared, run.first_difference)


class _Run:
    def __init__(self, policy: Policy | None) -> None:
        self.state = initial()
        self.compared = 0
        self.first_difference: Difference | None = None
        self._policy = policy
        self._sequence = 0
        self._expected: deque[ev.Event] = deque()

    def take(self, event: ev.Event) -> None:
        self._sequence += 1
        if isinstance(event, OUTCOMES):
            self._outcome(event)
        else:
            self._leftover(event)
            self._fact(event)

    def end(self) -> None:
        self._sequence += 1
        self._leftover(None)

    def _leftover(self, event: ev.Event | None) -> None:
        """Derived outcomes that the log does not hold, before a fact or at the end."""
        if self._expected:
            self._differ(event, self._expected[0])
            self._expected.clear()

    def _differ(self, recorded: ev.Event | None, derived: ev.Event | None) -> None:
        if self._policy is None and self.first_difference is None:
            self.first_difference = Difference(self._sequence, recorded, derived)

    def _outcome(self, event: ev.Event) -> None:
        if isinstance(event, ev.StageScored):
            self._leftover(event)
            self._derive(decide.settle(self.state, self.state.stages[event.stage]))
        if self._policy is not None:
            self._expected.clear()
            return
        derived = self._expected.popleft() if self._expected else None
        self.compared += 1
        if derived != event:
            self._differ(event, derived)

    def _fact(self, event: ev.Event) -> None:
        if self._policy is not None:
            if isinstance(event, ev.PolicyChanged):
                return
            if isinstance(event, ev.LibraryCreated):
                event = ev.LibraryCreated(policy=self._policy, policy_name="other", title=event.title)
        evolve(self.state, event)
        if isinstance(event, ev.RuleDistilled):
            self._derive(consolidation.consolidate(self.state, "rule", event.experience))
        elif isinstance(event, ev.ExperienceRetired):
            self._derive(consolidation.consolidate(self.state, "retire", event.experience))
        elif isinstance(event, ev.PolicyChanged):
            self._derive(consolidation.consolidate(self.state, "policy", self.state.policy_name))

    def _derive(self, events: list[ev.Event]) -> None:
        for event in events:
            evolve(self.state, event)
        self._expected.extend(events)
