"""What the loop asks of a model, of a workbench and of a journal; nothing here does I/O.

The words are the field's: a *stage* is correctness or optimization, an *experience* is offered by retrieval,
a *resident* is a rule that is always in context, a *decision* says whether an offer was adopted and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

StageKind = Literal["correctness", "optimization"]
Outcome = Literal["compile_error", "refused", "crash", "hang", "resource", "wrong", "correct"]


@dataclass(frozen=True, slots=True)
class OperatorCard:
    """Everything an author is told about the operator to write."""

    name: str
    level: int
    family: str
    summary: str
    reference: str
    """Source text of the torch reference."""
    dtypes: tuple[str, ...]
    cases: tuple[str, ...]
    """One line a visible case: input shapes, strides, attributes."""
    attributes: tuple[str, ...]
    """Names of the attributes, in the order in which the entry point receives them."""
    abi: str
    """The header that a candidate includes."""
    language: str = "cpp"


@dataclass(frozen=True, slots=True)
class Offer:
    """An experience that retrieval offered in this stage."""

    id: str
    title: str
    body: str
    value: float
    score: float


@dataclass(frozen=True, slots=True)
class Resident:
    """A rule that is in context in every stage."""

    id: str
    rule: str
    value: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round as it happened: what was written, why, and what the judge found."""

    round: int
    stage: StageKind
    candidate: str
    """The ledger's id of the candidate."""
    source: str
    change: str
    hypothesis: str
    outcome: Outcome
    summary: str
    evidence: str
    """The compiler's text, the first bad element, or the measured latencies."""
    latency_ms: float | None = None
    reference_ms: float | None = None
    noise_ms: float | None = None
    parent: str | None = None
    """`candidate` of the attempt that it started from."""

    def withdrawn(self) -> Attempt:
        """The same round where a person withdrew this very kernel: whatever the judge says, it counts for nothing."""
        return replace(
            self,
            outcome="refused",
            summary="withdrawn",
            evidence="This kernel, or the shared object that it compiles to, was withdrawn from the library: its "
            "verdicts do not count. Write another one.",
            latency_ms=None,
            reference_ms=None,
            noise_ms=None,
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What the model sees in one round. The history is linear: earlier rounds never change."""

    operator: OperatorCard
    stage: StageKind
    round: int
    """Counts from 1 over both stages."""
    rounds_left: int
    """Rounds that remain in the task's budget, this one included."""
    history: tuple[Attempt, ...]
    offers: tuple[Offer, ...]
    residents: tuple[Resident, ...]
    seed: int
    advice: str = ""
    """Why the last answer in this round could not be used, and what to do instead; empty at the first try."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Adopted or not, and why. A resident needs one only if it was used."""

    experience: str
    adopted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call to the model cost."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False
    """True where the provider reported no usage and the tokens were counted here."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How the last result was read before the next change was chosen."""

    tool: str
    hypothesis: str
    evidence: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One round's answer: a whole source to build, or `source=None` when there is nothing more to try."""

    source: str | None
    change: str
    hypothesis: str
    decisions: tuple[Decision, ...] = ()
    diagnosis: Diagnosis | None = None
    query: str | None = None
    """What to search the memory for next, in the model's words; the loop builds one where it is None."""
    usage: Usage = field(default_factory=lambda: Usage(model="none"))
    parent: str | None = None
    """`Attempt.candidate` of the attempt that it starts from; where it is None, the loop records the last one."""
    transcript: str = ""
    """What was said and answered, word for word, where the model is one that is spoken to; kept as a blob."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A reusable pattern read from two implementations of one operator (differential mining)."""

    key: str
    """Stable name of the pattern: the same pattern found again is the same experience."""
    title: str
    body: str
    """Markdown: what differs, the hardware reason, when to use it; carries `Change:` lines."""
    stages: tuple[StageKind, ...]
    families: tuple[str, ...]
    """Operator families that it applies to; empty means any."""


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A concise rule distilled from an experience that passed the gate."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found. The signed report is the evidence; the fields beside it are read out of it."""

    outcome: Outcome
    summary: str
    evidence: str
    """The compiler's text, the first bad element, or the measured latencies."""
    report: str
    """The exact JSON text that was signed."""
    signature: str
    judge_key: str
    latency_ms: float | None = None
    reference_ms: float | None = None
    noise_ms: float | None = None
    compile_seconds: float = 0.0
    device_seconds: float = 0.0


class Workbench(Protocol):
    """Where kernels are built, judged and timed. The real one is `agent.workbench.DeviceWorkbench`."""

    def operators(self) -> tuple[str, ...]:
        """Names of the operators that it can judge, by level."""
        ...

    def card(self, operator: str) -> OperatorCard:
        """What an author is told of an operator. Raises ConfigurationError for an unknown name."""
        ...

    def expert(self, operator: str) -> str | None:
        """Source text of the operator's expert kernel, where there is one."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Chip, toolkit and compiler that verdicts are made under."""
        ...

    def judge(self, source: str, operator: str, *, seed: int) -> Verdict:
        """Build, verify and time one candidate. Raises WorkbenchError when the device can not judge at all."""
        ...


class Model(Protocol):
    """A source of kernels and of readings of kernels. Implementations: chat, search, scripted."""

    @property
    def name(self) -> str:
        """What the ledger records as the model, e.g. `search` or the provider's model name."""
        ...

    def propose(self, context: Context) -> Proposal:
        """Write the next candidate. Raises `agent.errors.ModelError` and its kinds."""
        ...

    def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
        """Read the patterns that the expert's source has and the generated one lacks."""
        ...

    def distill(self, title: str, body: str, evidence: str, limit_tokens: int) -> RuleDraft:
        """Write the rule for an experience that passed the gate, in at most `limit_tokens` tokens."""
        ...
