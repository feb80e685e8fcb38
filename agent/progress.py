"""Live progress on standard error: which operator, round and stage, the verdict, the latency and the speedup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from agent.port import Attempt, OperatorCard, StageKind

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How one task ended, or stands."""

    task: str
    operator: str
    level: int
    solved: bool
    rounds: int
    first_ms: float | None = None
    best_ms: float | None = None
    reference_ms: float | None = None
    """The torch reference, timed beside the best candidate."""
    reason: str = ""
    continued: bool = False
    """True where it was finished before this run."""

    @property
    def speedup(self) -> float | None:
        """Reference latency over best latency; above 1 is faster than torch."""
        return _ratio(self.reference_ms, self.best_ms)

    @property
    def acceleration(self) -> float | None:
        """First correct latency over best latency: what optimization brought."""
        return _ratio(self.first_ms, self.best_ms)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


class Progress(Protocol):
    """What a run tells as it goes."""

    def task(self, card: OperatorCard, place: int, of: int, *, rounds: int) -> None:
        """Tell that a task begins, or continues after `rounds` rounds."""
        ...

    def thinking(self, kind: StageKind, round_: int, budget: int) -> None:
        """Tell that the model is asked for a candidate."""
        ...

    def judging(self, kind: StageKind, round_: int, change: str) -> None:
        """Tell that the candidate is being judged."""
        ...

    def judged(self, attempt: Attempt, budget: int) -> None:
        """Tell a verdict."""
        ...

    def stage(self, kind: StageKind, score: float | None, reason: str) -> None:
        """Tell that a stage was scored, or abandoned where the score is None."""
        ...

    def done(self, result: TaskResult) -> None:
        """Tell how a task ended."""
        ...

    def note(self, text: str) -> None:
        """Tell anything else in one line."""
        ...


class Silent:
    """Tells nothing."""

    def task(self, card: OperatorCard, place: int, of: int, *, rounds: int) -> None:
        """Tell nothing."""

    def thinking(self, kind: StageKind, round_: int, budget: int) -> None:
        """Tell nothing."""

    def judging(self, kind: StageKind, round_: int, change: str) -> None:
        """Tell nothing."""

    def judged(self, attempt: Attempt, budget: int) -> None:
        """Tell nothing."""

    def stage(self, kind: StageKind, score: float | None, reason: str) -> None:
        """Tell nothing."""

    def done(self, result: TaskResult) -> None:
        """Tell nothing."""

    def note(self, text: str) -> None:
        """Tell nothing."""


_MARKS = {"correct": "green", "wrong": "yellow", "compile_error": "yellow"}


class ConsoleProgress:
    """One line a round; on a terminal also a status line of what is going on right now.

    `NO_COLOR` and a redirected stream give plain lines. Nothing is written to standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Write to `console`, by default a console on standard error."""
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only a run that tells needs it

        self._console = console or RichConsole(stderr=True, highlight=False)
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._best: float | None = None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the status line away."""
        if self._status is not None:
            self._status.stop()

    def _print(self, text: str, style: str | None = None) -> None:
        if self._console.is_terminal:
            self._console.print(text, style=style, markup=False, no_wrap=True, overflow="ellipsis")
        else:
            self._console.print(text, markup=False, soft_wrap=True)

    def now(self, text: str) -> None:
        """Show in the status line what is going on."""
        if self._status is not None:
            from rich.text import Text  # noqa: PLC0415

            self._status.update(Text(text, overflow="ellipsis", no_wrap=True))

    def task(self, card: OperatorCard, place: int, of: int, *, rounds: int) -> None:
        """Write a headline."""
        self._best = None
        after = f", continued after round {rounds}" if rounds else ""
        self._print(f"[{place}/{of}] {card.name} (level {card.level}, {card.family}){after}", "bold")

    def thinking(self, kind: StageKind, round_: int, budget: int) -> None:
        """Show in the status line."""
        self.now(f"round {round_}/{budget} {kind}: choosing the next change")

    def judging(self, kind: StageKind, round_: int, change: str) -> None:
        """Show in the status line."""
        self.now(f"round {round_} {kind}: building and judging ({' '.join(change.split())})")

    def judged(self, attempt: Attempt, budget: int) -> None:
        """Write the round in one line."""
        line = f"  {attempt.round:>3}/{budget} {attempt.stage:<12} {attempt.outcome.replace('_', ' '):<13}"
        if attempt.latency_ms is not None:
            line += f" {attempt.latency_ms:>9.4f} ms"
            speedup = _ratio(attempt.reference_ms, attempt.latency_ms)
            line += f" {speedup:>6.2f}x torch" if speedup is not None else ""
            if self._best is None or attempt.latency_ms < self._best:
                self._best = attempt.latency_ms
                line += " *"
            line += f"  {_short(attempt.change)}"
        else:
            line += f" {_short(attempt.summary, 100)}"
        self._print(line, _MARKS.get(attempt.outcome, "red"))

    def stage(self, kind: StageKind, score: float | None, reason: str) -> None:
        """Write how the stage ended."""
        scored = "abandoned, no score" if score is None else f"score {score:+.3f}"
        self._print(f"      {kind} stage: {scored} ({_short(reason, 120)})")

    def done(self, result: TaskResult) -> None:
        """Write how the task ended."""
        if result.best_ms is None:
            self._print(f"      {result.operator}: not solved in {result.rounds} rounds", "red")
            return
        again = " (finished before)" if result.continued else ""
        self._print(
            f"      {result.operator}: {result.best_ms:.4f} ms, {result.speedup or 0:.2f}x torch, "
            f"{result.acceleration or 0:.2f}x its first correct version, {result.rounds} rounds{again}",
            "bold green",
        )

    def note(self, text: str) -> None:
        """Write a line."""
        self._print(f"      {text}")


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
