"""The same facts again: under the recorded policy, compared event by event, or under another policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ledger.domain import consolidation, decide, reversal
from ledger.domain import events as ev
from ledger.domain.policy import Policy
from ledger.domain.state import State, evolve, initial
from ledger.errors import LedgerError

OUTCOMES: tuple[type[ev.Event], ...] = (
    ev.StageScored,
    ev.ValueUpdated,
    ev.FrequencyUpdated,
    ev.Consolidated,
    ev.RuleAdmitted,
    ev.RuleEvicted,
    ev.Revalidated,
    ev.MemoryRestated,
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


def had_not_been_scored(events: Iterable[ev.Event], stages: frozenset[str], policy: Policy | None = None) -> State:
    """The state that the facts come to had these stages never been scored; earlier reversals are part of `stages`."""
    run = _Run(policy, without=stages)
    for event in events:
        run.take(event)
    return run.state


class _Run:
    """One pass over the log.

    With `without`, no reversal in the log is restated: that set stands for all of them. Which candidates were withdrawn
    when, the pass follows all the same, because a stage that was scored meanwhile was scored without them.
    """

    def __init__(self, policy: Policy | None, without: frozenset[str] | None = None) -> None:
        self.state = initial()
        self.compared = 0
        self.first_difference: Difference | None = None
        self._policy = policy
        self._without = without
        self._compares = policy is None and without is None
        self._sequence = 0
        self._expected: deque[ev.Event] = deque()
        self._seen: list[ev.Event] = []

    def take(self, event: ev.Event) -> None:
        self._sequence += 1
        if isinstance(event, OUTCOMES):
            self._outcome(event)
        else:
            self._leftover(event)
            self._fact(event)
        if self._without is None:
            self._seen.append(event)

    def end(self) -> None:
        self._sequence += 1
        self._leftover(None)

    def _leftover(self, event: ev.Event | None) -> None:
        """Derived outcomes that the log does not hold, before a fact or at the end."""
        if self._expected:
            self._differ(event, self._expected[0])
            self._expected.clear()

    def _differ(self, recorded: ev.Event | None, derived: ev.Event | None) -> None:
        if self._compares and self.first_difference is None:
            self.first_difference = Difference(self._sequence, recorded, derived)

    def _outcome(self, event: ev.Event) -> None:
        if isinstance(event, ev.StageScored):
            self._leftover(event)
            if self._without is None or event.stage not in self._without:
                self._derive(self._settled(event.stage))
        if not self._compares:
            self._expected.clear()
            return
        derived = self._expected.popleft() if self._expected else None
        self.compared += 1
        if derived != event:
            self._differ(event, derived)

    def _settled(self, stage: str) -> list[ev.Event]:
        """What closing the stage comes to; nothing where the facts before it do not allow it to be closed."""
        try:
            return decide.score_stage(self.state, stage)
        except LedgerError:
            return []

    def _fact(self, event: ev.Event) -> None:
        if self._policy is not None:
            if isinstance(event, ev.PolicyChanged):
                return
            if isinstance(event, ev.LibraryCreated):
                event = ev.LibraryCreated(policy=self._policy, policy_name="other", title=event.title)
        evolve(self.state, event)
        match event:
            case ev.RuleDistilled():
                self._derive(consolidation.consolidate(self.state, "rule", event.experience))
            case ev.ExperienceRetired():
                self._derive(consolidation.consolidate(self.state, "retire", event.experience))
            case ev.ExperienceSuperseded():
                self._derive(consolidation.consolidate(self.state, "supersede", event.experience))
            case ev.ConflictRecorded() | ev.ConflictResolved():
                self._derive(consolidation.consolidate(self.state, "conflict", event.conflict))
            case ev.PolicyChanged():
                self._derive(consolidation.consolidate(self.state, "policy", self.state.policy_name))
            case ev.StageInvalidated() | ev.StageReinstated() if event.stages and self._without is None:
                invalid = frozenset(name for name, stage in self.state.stages.items() if stage.invalid)
                true = had_not_been_scored(self._seen, invalid, self._policy)
                self._derive(reversal.restate(self.state, true, event.subject))
            case _:
                pass

    def _derive(self, events: list[ev.Event]) -> None:
        for event in events:
            evolve(self.state, event)
        self._expected.extend(events)
