"""The whole control flow of developing one operator.

A task has one budget of rounds over two scored stages. The correctness stage drafts a kernel, repairs what does not
compile and what does not verify; it ends with the first correct, measured candidate. The optimization stage goes on
with the rounds that are left. In each round memory is searched, the model writes a kernel, the ledger records both
before the device judges, and the signed verdict goes into the ledger and into the history that the model sees next.

Every step is recorded before the next one is taken and every step can be repeated, so a run that was cut off anywhere
continues from what the ledger holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent import memory
from agent.budget import Budget
from agent.calls import Calls
from agent.config import LoopSettings
from agent.errors import ModelError, NothingMore, StageOver, StageSolved, TimeSpent
from agent.journal import Journal, OpenStage
from agent.lessons import Lessons
from agent.port import Attempt, Context, Model, OperatorCard, Proposal, StageKind, Usage, Workbench
from agent.progress import Progress, Silent, TaskResult
from agent.retry import Retries
from agent.work import Proposed, Work

STAGES: tuple[StageKind, ...] = ("correctness", "optimization")


@dataclass
class Loop:
    """Develops operators with one model on one workbench, and keeps one journal of it."""

    model: Model
    workbench: Workbench
    journal: Journal
    settings: LoopSettings
    lessons: Lessons
    progress: Progress = field(default_factory=Silent)
    sleep: Callable[[float], None] = time.sleep

    def develop(self, operator: str, *, place: int = 1, of: int = 1) -> TaskResult:
        """Develop one operator: both stages, then what is learnt from it.

        A finished task is not repeated. Raises AgentError kinds that end the run (ledger or model away, device broken);
        the task is then left as it stands, and the same call continues it.
        """
        work = self._begin(operator)
        if work.task.finished:
            result = work.result("finished before", continued=True)
            self.progress.done(result)
            return result
        self.progress.task(work.card, place, of, rounds=work.budget.used)
        reason = ""
        for kind in STAGES:
            reason = self._stage(work, kind) or reason
        self.lessons.learn(work.card, work.task.task, work.history, work.calls, self._still_fails)
        result = work.result(reason)
        if work.measured and self._optimization_due(work):
            # The clock ended it, not its rounds: the next run of the same name goes on with what is left.
            self.progress.done(result)
            return result
        self.journal.finish(work.task.task, summary=_summary(result))
        self.progress.done(result)
        return result

    # --- the two stages --------------------------------------------------------------------------------------------

    def _stage(self, work: Work, kind: StageKind) -> str:
        """Work through one stage until it is over, and have it scored. Return why it ended, empty if it was not due."""
        if not self._due(work, kind):
            return ""
        stage = self.journal.enter(work.task, kind, memory=self.settings.memory)
        if stage is None:
            return ""
        try:
            self._judge_interrupted(work, stage)
            while True:
                self._round(work, stage)
        except StageOver as over:
            ended, reason = over, over.reason
        self._decide_rest(work, stage, reason)
        if isinstance(ended, TimeSpent) and not work.improved:
            # A slow machine is no evidence against what was adopted.
            self.journal.abandon(stage, reason)
            score = None
        else:
            score = self.journal.close(stage, reason)
            work.scored.add(kind)
        self.progress.stage(kind, score, reason)
        return reason

    def _optimization_due(self, work: Work) -> bool:
        """Tell whether rounds are left for an optimization that has no score yet."""
        scored = any(s.kind == "optimization" and s.status == "scored" for s in work.task.stages)
        return not scored and "optimization" not in work.scored and work.budget.left > 0

    def _still_fails(self, card: OperatorCard, failed: Attempt, repaired: Attempt) -> bool:
        """Judge the failed version on the very inputs that the repaired one passed: luck with a draw is no repair."""
        seed = judge_seed(self.settings.seed, card.name, repaired.round)
        return self.workbench.judge(failed.source, card.name, seed=seed).outcome != "correct"

    def _due(self, work: Work, kind: StageKind) -> bool:
        """Tell whether a stage has anything to do; one that is open is always closed first."""
        if kind == "correctness" or any(s.kind == kind and s.status == "open" for s in work.task.stages):
            return True
        return bool(work.measured) and work.budget.allows(hurry=True)

    def _round(self, work: Work, stage: OpenStage) -> None:
        """Search, propose, record, judge, record. Raises StageOver when there is no next round."""
        if stage.kind == "correctness" and work.measured:
            raise StageSolved("a candidate is correct and measured")
        work.budget.check(hurry=stage.kind == "optimization")
        number = work.budget.used + 1
        if self.settings.memory:
            query = work.query or memory.query(work.card, stage.kind, work.history)
            self.journal.retrieve(stage, query, number)
        self.progress.thinking(stage.kind, number, work.budget.rounds)
        context = self._context(work, stage)
        proposal = work.calls.propose(context, lambda error: self._call_failed(work, stage, error))
        self._record_thinking(work, stage, proposal)
        if proposal.source is None:
            self.journal.decide(stage, proposal.decisions, None, number)
            raise NothingMore(proposal.hypothesis or "the model has nothing more to try")
        candidate = f"{work.task.task}.r{number:02d}"
        parent = proposal.parent or (work.history[-1].candidate if work.history else None)
        self.journal.propose(stage, candidate, proposal, language=work.card.language, parent=parent)
        work.budget.take()
        self.journal.decide(stage, proposal.decisions, candidate, number)
        self._judge(
            work, stage, Proposed(candidate, number, proposal.source, proposal.change, proposal.hypothesis, parent)
        )

    def _judge(self, work: Work, stage: OpenStage, proposed: Proposed) -> None:
        """Build, verify and time what the ledger holds already; hand in the signed report."""
        self.progress.judging(stage.kind, proposed.round, proposed.change)
        seed = judge_seed(self.settings.seed, work.card.name, proposed.round)
        verdict = self.workbench.judge(proposed.source, work.card.name, seed=seed)
        counts = self.journal.report(stage, proposed.candidate, verdict)
        self.journal.judge_cost(stage.id, verdict, f"r{proposed.round}", proposed.round)
        attempt = proposed.with_verdict(stage.kind, verdict)
        if not counts:
            attempt = attempt.withdrawn()
        work.history.append(attempt)
        self.progress.judged(attempt, work.budget.rounds)

    def _judge_interrupted(self, work: Work, stage: OpenStage) -> None:
        """Judge what was proposed before an interruption and never judged; its round is used already."""
        for found in work.task.candidates:
            if found.outcome is None and found.stage == stage.id:
                answer = self.journal.answer_before(found.candidate)
                self.journal.decide(stage, memory.decisions_in(answer) if answer else (), found.candidate, found.round)
                source = self.journal.text(found.source)
                again = Proposed(found.candidate, found.round, source, found.change, found.hypothesis, found.parent)
                self._judge(work, stage, again)

    # --- what surrounds a round ------------------------------------------------------------------------------------

    def _begin(self, operator: str) -> Work:
        card = self.workbench.card(operator)
        task = self.journal.begin(
            self.settings.task_of(operator),
            card,
            model=self.model.name,
            budget=self.settings.budget,
            configuration=self.settings.configuration(),
            environment=self.workbench.environment(),
        )
        retries = Retries(self.settings.model_retries)
        return Work(
            card,
            task,
            Budget(task.budget, used=len(task.candidates), seconds=self.settings.seconds),
            Calls(self.model, retries, self.settings.model_backoff, self.sleep),
            list(self.journal.attempts(task)),
        )

    def _context(self, work: Work, stage: OpenStage) -> Context:
        return Context(
            operator=work.card,
            stage=stage.kind,
            round=work.budget.used + 1,
            rounds_left=work.budget.left,
            history=tuple(work.history),
            offers=tuple(stage.offers.values()),
            residents=stage.residents,
            seed=self.settings.seed,
        )

    def _record_thinking(self, work: Work, stage: OpenStage, proposal: Proposal) -> None:
        """Record what the call cost and how the last result was read; the whole answer is a blob that this names."""
        number = work.budget.used + 1
        self.journal.model_cost(stage.id, proposal.usage, f"r{number}", round_=number)
        last = work.history[-1] if work.history else None
        answer = self.journal.blob(memory.answer(proposal))
        diagnosis = memory.diagnosis(proposal, last, answer)
        self.journal.diagnose(stage, diagnosis, last.candidate if last else None, number)
        work.query = proposal.query

    def _call_failed(self, work: Work, stage: OpenStage, error: ModelError) -> None:
        """Record a call to the model that came to nothing, and what it cost all the same."""
        number = work.budget.used + 1
        used = work.calls.retries.used
        usage = error.usage or Usage(model=self.model.name)
        self.journal.model_cost(stage.id, usage, f"r{number}.failed{used}", round_=number)
        transcript = self.journal.blob(error.transcript) if error.transcript else None
        self.journal.diagnose(stage, memory.failed_call(error, transcript), None, number)
        self.progress.note(f"model: {error}")

    def _decide_rest(self, work: Work, stage: OpenStage, reason: str) -> None:
        """Decide on every offer that is still open: the model's own word where it has one, else what did not happen."""
        if not stage.undecided:
            return
        closing = getattr(self.model, "closing_decisions", None)
        if closing is not None:
            # What it could not write a kernel for it may not be able to judge either; the reasons below then stand.
            with contextlib.suppress(ModelError):
                self.journal.decide(stage, closing(self._context(work, stage)), None, work.budget.used)
        rounds = sum(attempt.stage == stage.kind for attempt in work.history)
        rest = memory.not_adopted(stage.undecided, self.model.name, stage.kind, rounds, reason)
        self.journal.decide(stage, rest, None, work.budget.used)


def judge_seed(seed: int, operator: str, round_: int) -> int:
    """Draw the judge's seed for one round: other inputs in each round, the same ones when the run is repeated."""
    digest = hashlib.sha256(f"{seed}:{operator}:{round_}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _summary(result: TaskResult) -> str:
    if result.best_ms is None:
        return f"no correct candidate in {result.rounds} rounds: {result.reason}"
    return (
        f"{result.best_ms:.4f} ms after {result.rounds} rounds, first correct {result.first_ms:.4f} ms: {result.reason}"
    )
