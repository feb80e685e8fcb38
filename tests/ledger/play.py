"""A library played through the domain's commands by hand, for given/when/then: each method of `Play` is one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.domain import decide, govern, reversal
from ledger.domain import events as ev
from ledger.domain.policy import SAGE, Policy
from ledger.domain.rederive import had_not_been_scored
from ledger.domain.state import State, evolve, initial

BOTH: tuple[ev.StageKind, ...] = ("correctness", "optimization")
JUDGE = "judge"


class Play:
    """One library, in the state that its events come to."""

    def __init__(self, policy: Policy = SAGE) -> None:
        self.state: State = initial()
        self.events: list[ev.Event] = []
        self.take(decide.create_library(policy, "test", ""))

    def take(self, events: Sequence[ev.Event]) -> Sequence[ev.Event]:
        """Apply what a command decided."""
        for event in events:
            evolve(self.state, event)
        self.events.extend(events)
        return events

    # --- experiences -----------------------------------------------------------------------------------------------

    def record(self, *names: str, stages: Sequence[ev.StageKind] = BOTH) -> None:
        for name in names:
            new = ev.ExperienceRecorded(
                experience=name, title=name, body="0" * 64, stages=tuple(stages), source=ev.Source(kind="person")
            )
            self.take(decide.record_experience(self.state, new))

    def rule(self, name: str, tokens: int) -> Sequence[ev.Event]:
        rule = ev.RuleDistilled(experience=name, text="1" * 64, tokens=tokens, tokenizer="declared")
        return self.take(decide.distill_rule(self.state, rule))

    def retire(self, name: str) -> Sequence[ev.Event]:
        return self.take(decide.retire_experience(self.state, name, "stale"))

    # --- governance ------------------------------------------------------------------------------------------------

    def supersede(self, name: str, by: str) -> Sequence[ev.Event]:
        return self.take(govern.supersede_experience(self.state, name, by, "newer"))

    def conflict(self, name: str, first: str, second: str) -> None:
        new = ev.ConflictRecorded(conflict=name, first=first, second=second, reason="they contradict")
        self.take(govern.record_conflict(self.state, new))
        self.take(govern.reconsolidate(self.state, "conflict", name))

    def resolve(self, name: str, loser: str | None) -> None:
        end = ev.ConflictResolved(conflict=name, loser=loser, reason="settled")
        self.take(govern.resolve_conflict(self.state, end))
        self.take(govern.reconsolidate(self.state, "conflict", name))

    def reverse(self, subject: str, *, back: bool = False) -> None:
        """Withdraw the verdicts that the subject names, or with `back` let them count again."""
        facts = list(self.events)
        chosen = govern.reinstate if back else govern.invalidate
        reversed_ = self.take(chosen(self.state, subject, "a cheat was found", "person"))[0]
        assert isinstance(reversed_, ev.StageInvalidated | ev.StageReinstated)
        if not reversed_.stages:
            return
        invalid = frozenset(name for name, stage in self.state.stages.items() if stage.invalid)
        self.take(reversal.restate(self.state, had_not_been_scored(facts, invalid), subject))

    # --- stages ----------------------------------------------------------------------------------------------------

    def task(self, name: str, operator: str, budget: int = 30) -> None:
        self.take(
            decide.start_task(
                self.state, ev.TaskStarted(task=name, operator=operator, level=1, model="m", budget=budget)
            )
        )

    def open(self, stage: str, task: str, kind: ev.StageKind = "correctness", basis: ev.Basis = "reported") -> None:
        operator = self.state.tasks[task].operator
        self.take(
            decide.open_stage(
                self.state, ev.StageStarted(stage=stage, task=task, kind=kind, operator=operator, basis=basis)
            )
        )

    def retrieve(self, stage: str, *names: str) -> None:
        self.take(decide.retrieve(self.state, ev.ExperiencesRetrieved(stage=stage, query="q", pool=(), offered=names)))

    def decide(self, stage: str, decisions: Mapping[str, bool]) -> None:
        self.take(
            decide.decide_adoptions(
                self.state,
                stage,
                [
                    ev.AdoptionDecided(stage=stage, experience=name, adopted=adopted, reason="because")
                    for name, adopted in decisions.items()
                ],
            )
        )

    def propose(self, stage: str, candidate: str, parent: str | None = None, source: str = "2" * 64) -> None:
        new = decide.NewCandidate(stage, candidate, source, "cpp", "change", "hypothesis", parent)
        self.take(decide.propose_candidate(self.state, new))

    def judge(
        self,
        stage: str,
        candidate: str,
        outcome: str = "correct",
        ms: float | None = None,
        noise: float = 0.0,
        source: str = "2" * 64,
    ) -> None:
        """Propose a candidate and hand in what the judge found."""
        self.propose(stage, candidate, source=source)
        blob = f"{stage}/{candidate}"
        facts: list[ev.Event] = [
            ev.CandidateCompiled(
                stage=stage, candidate=candidate, ok=outcome != "compile_error", seconds=1.0, report=blob, judge=JUDGE
            )
        ]
        if outcome != "compile_error":
            facts.append(
                ev.CandidateVerified(
                    stage=stage, candidate=candidate, ok=outcome == "correct", outcome=outcome, summary="", report=blob,
                    judge=JUDGE, mode="hardened", rule="hardened",
                )
            )  # fmt: skip
        if ms is not None:
            facts.append(
                ev.CandidateMeasured(
                    stage=stage, candidate=candidate, latency_ms=ms, reference_ms=1.0, noise_ms=noise, device="cpu",
                    report=blob, judge=JUDGE,
                )
            )  # fmt: skip
        self.take(decide.hand_in_report(self.state, stage, candidate, facts))

    def tell(
        self, stage: str, correct: bool | None = None, first: float | None = None, best: float | None = None
    ) -> None:
        told = ev.OutcomeReported(stage=stage, correct=correct, first_ms=first, best_ms=best)
        self.take(decide.report_outcome(self.state, told))

    def score(self, stage: str) -> ev.StageScored:
        scored = self.take(decide.score_stage(self.state, stage))[0]
        assert isinstance(scored, ev.StageScored)
        return scored

    def played(
        self,
        stage: str,
        operator: str,
        adopted: Sequence[str] = (),
        rejected: Sequence[str] = (),
        *,
        correct: bool = True,
        best: float | None = None,
    ) -> ev.StageScored:
        """A whole reported stage of a task of its own: correctness, or with `best` an optimization from 1 ms."""
        self.task(f"task-{stage}", operator)
        self.open(stage, f"task-{stage}", "correctness" if best is None else "optimization")
        cold = [name for name in (*adopted, *rejected) if not self.state.experiences[name].resident]
        if cold:
            self.retrieve(stage, *cold)
        self.decide(stage, dict.fromkeys(adopted, True) | dict.fromkeys(rejected, False))
        self.tell(stage, *((correct,) if best is None else (None, 1.0, best)))
        return self.score(stage)

    def value(self, name: str) -> float:
        return self.state.experiences[name].value
