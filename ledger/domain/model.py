"""What is known of one library: experiences, tasks, stages, candidates, conflicts. `ledger.domain.state` folds them."""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec import field

from ledger.domain import events as ev
from ledger.domain.policy import SAGE, Policy

FREQUENCY_COURSE = 200
"""Changes of a frequency that `why` tells; a rule that was ever resident has one a scored stage."""

Environment = tuple[str, str]
"""Chip and toolkit; empty where a task did not say."""


def _agree(one: Environment, other: Environment) -> bool:
    """What one side does not say contradicts nothing; upper and lower case are one."""
    return all(not a or not b or a.casefold() == b.casefold() for a, b in zip(one, other, strict=True))


class Experience(msgspec.Struct):
    """What is known of one experience, hot or cold."""

    id: str
    title: str
    body: str
    stages: tuple[ev.StageKind, ...]
    conditions: ev.Conditions
    source: ev.Source
    recorded: int
    """Sequence of the event that recorded it."""
    scored_before: int
    """Scored stages of its kinds before it was recorded; these were not eligible."""
    value: float = 0.0
    n: int = 0
    """Stages in which it was offered and looked at."""
    adoptions: int = 0
    operators: set[str] = field(default_factory=set)
    average: float | None = None
    """Moving average of use, from the first admission on."""
    frozen: float | None = None
    """Frequency at retirement."""
    resident: bool = False
    rule: str | None = None
    tokens: int | None = None
    tokenizer: str | None = None
    superseded_by: str | None = None
    environments: set[Environment] = field(default_factory=set)
    """Where it was adopted with success."""
    questioned: set[Environment] = field(default_factory=set)
    """Where a task ran although its evidence did not reach there."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Embedding model and version -> blob."""
    trail: list[int] = field(default_factory=list)
    """Sequences of the events that bear on it, but for its frequency."""
    frequencies: deque[int] = field(default_factory=lambda: deque(maxlen=FREQUENCY_COURSE))
    """Sequences of the newest changes of its frequency."""

    @property
    def retired(self) -> bool:
        """Offered no more."""
        return self.frozen is not None

    def covers(self, environment: Environment) -> bool:
        """Whether it was adopted with success there, by what both sides say of chip and toolkit."""
        return environment in self.environments or any(_agree(environment, known) for known in self.environments)

    def needs_revalidation(self, environment: Environment) -> bool:
        """Whether its evidence was asked for under this chip and toolkit and has not been given since."""
        return environment in self.questioned and not self.covers(environment)

    def is_stale(self, environment: Environment) -> bool:
        """Whether it needs revalidation there, or will once it is offered there."""
        return not self.covers(environment) and (
            environment in self.questioned or (bool(self.environments) and any(environment))
        )


class Candidate(msgspec.Struct):
    """One kernel, as far as it has been judged."""

    id: str
    stage: str
    round: int
    source: str
    language: str
    change: str
    hypothesis: str
    parent: str | None
    outcome: str | None = None
    summary: str = ""
    latency_ms: float | None = None
    reference_ms: float | None = None
    noise_ms: float = 0.0
    report: str | None = None
    artefact: str | None = None


class Stage(msgspec.Struct):
    """One stage of a task."""

    id: str
    task: str
    kind: ev.StageKind
    operator: str
    basis: ev.Basis
    residents_at_start: frozenset[str]
    """As this fold has them. In a re-derivation they may differ from the rules that the agent was shown."""
    status: str = "open"
    score: float | None = None
    retrieved: dict[str, None] = field(default_factory=dict)
    """In order, each once."""
    rules: tuple[str, ...] = ()
    withheld: str | None = None
    drawn: bool = False
    """Whether a rule could have been withheld from it: it began under a hold-out rate and was not played before."""
    decisions: dict[str, bool] = field(default_factory=dict)
    """Experience -> adopted at least once."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The reason of the adoption, or else of the last decision."""
    candidates: list[str] = field(default_factory=list)
    outcome: ev.OutcomeReported | None = None
    invalid: bool = False
    """Its verdicts were withdrawn; the memory is as if it had not been scored."""
    reversals: set[str] = field(default_factory=set)
    """Subjects `stage:ID` and `task:ID` under which it was, and still is; hashes stand in `State.withdrawn`."""
    first: str | None = None
    best: str | None = None
    """Candidates that its score was read from."""
    trail: list[int] = field(default_factory=list)
    """Sequences of its events."""

    @property
    def adopted(self) -> tuple[str, ...]:
        """Members of the retrieved or presented that were adopted at least once, by id."""
        return tuple(sorted(e for e, adopted in self.decisions.items() if adopted))

    @property
    def undecided(self) -> tuple[str, ...]:
        """Retrieved experiences without a decision, in order."""
        return tuple(e for e in self.retrieved if e not in self.decisions)


class Task(msgspec.Struct):
    """One operator attempted by one agent run."""

    id: str
    operator: str
    level: int
    model: str
    budget: int
    family: str
    dtype: str
    language: str
    configuration: dict[str, str]
    environment: dict[str, str]
    shapes: dict[str, int]
    finished: bool = False
    solved: bool = False
    stages: list[str] = field(default_factory=list)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """In the order in which they were proposed; each took one round."""

    @property
    def where(self) -> Environment:
        """Chip and toolkit that it runs under."""
        return self.environment.get("chip", ""), self.environment.get("toolkit", "")


class Conflict(msgspec.Struct):
    """Two rules that contradict each other."""

    id: str
    first: str
    second: str
    reason: str
    open: bool = True
    loser: str | None = None
    """Once it is settled; None then: they do not contradict each other."""

    def rival(self, name: str) -> str:
        """The other one."""
        return self.second if name == self.first else self.first


class State(msgspec.Struct):
    """One library."""

    sequence: int = 0
    policy: Policy = SAGE
    policy_name: str = "sage"
    title: str = ""
    experiences: dict[str, Experience] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    scored: dict[str, int] = field(default_factory=lambda: {"correctness": 0, "optimization": 0})
    """Scored stages by kind."""
    averaged: set[str] = field(default_factory=set)
    """Experiences that are or were resident."""
    residents: dict[str, None] = field(default_factory=dict)
    """In the order of their admission."""
    reports: dict[str, str] = field(default_factory=dict)
    """Blob of each judge's report -> the candidate that it was handed in for."""
    table: int = 0
    """Sequence of the newest consolidation."""
    reversal: int = 0
    """Sequence of the newest reversal."""
    left: set[str] = field(default_factory=set)
    """Rules that it evicted."""
    withdrawn: set[str] = field(default_factory=set)
    """SHA-256 of the sources and artefacts whose verdicts count nowhere, not in later stages either."""
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    conflicts_of: dict[str, list[Conflict]] = field(default_factory=dict)
    """By experience."""

    def eligible(self, stages: tuple[ev.StageKind, ...]) -> int:
        """Scored stages of these kinds so far."""
        return sum(self.scored[kind] for kind in stages)

    def is_withdrawn(self, candidate: Candidate) -> bool:
        """Whether its verdicts count no more: its source, its artefact or the stage that it was made in fell."""
        return (
            candidate.source in self.withdrawn
            or candidate.artefact in self.withdrawn
            or self.stages[candidate.stage].invalid
        )

    def correct(self, task: Task) -> list[Candidate]:
        """Candidates that passed verification and count, in the order in which they were proposed."""
        return [c for c in task.candidates.values() if c.outcome == "correct" and not self.is_withdrawn(c)]

    def first_correct(self, task: Task) -> Candidate | None:
        """The first of them that was measured."""
        return next((c for c in self.correct(task) if c.latency_ms is not None), None)


def initial() -> State:
    """A library before its first event."""
    return State()


def frequency(experience: Experience, eligible: int) -> float:
    """How often an experience is needed, 0 to 1.

    `eligible` is `State.eligible` of its kinds now. Never resident: N over the stages that it could have been offered
    in since it was recorded; then the moving average; retired: as it stood.
    """
    if experience.frozen is not None:
        return experience.frozen
    if experience.average is not None:
        return experience.average
    since = eligible - experience.scored_before
    return experience.n / since if since > 0 else 0.0
