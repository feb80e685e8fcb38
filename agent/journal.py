"""What happened in a task goes into the ledger, and what an interrupted run needs comes back out.

Ids are derived from run, operator, stage and round, so a repeat meets what it stored before and reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent import reports
from agent.errors import BugError, TaskTakenError
from agent.memory import answer_named_in
from agent.port import Attempt, Decision, Diagnosis, Offer, OperatorCard, Proposal, Resident, StageKind, Usage, Verdict
from agent.shelf import Shelf
from ledger import errors, wire

_LINE = 19_000


@dataclass(slots=True)
class OpenStage:
    """A stage being worked on, as the agent knows it."""

    id: str
    kind: StageKind
    residents: tuple[Resident, ...]
    offers: dict[str, Offer] = field(default_factory=dict)
    """Everything offered in this stage, in the order in which it was first offered."""
    decided: dict[str, bool] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Offers without a decision."""
        return tuple(name for name in self.offers if name not in self.decided)


class Journal(Shelf):
    """The tasks and stages of one library, beside its experiences."""

    # --- tasks -----------------------------------------------------------------------------------------------------

    def task(self, task: str) -> wire.Task | None:
        """The task as it stands, or None."""
        try:
            return self._call("task", lambda: self.client.task(self.library, task), expect=(errors.UnknownTaskError,))
        except errors.UnknownTaskError:
            return None

    def tasks(self) -> list[wire.Task]:
        """All tasks of the library."""
        return self._call("tasks", lambda: self.client.tasks(self.library))

    def begin(
        self,
        task: str,
        card: OperatorCard,
        *,
        model: str,
        budget: int,
        configuration: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> wire.Task:
        """The task as the ledger holds it, started where there is none.

        Raises TaskTakenError when it was started as something else.
        """
        found = self.task(task)
        if found is None:
            new = wire.NewTask(
                task=task,
                operator=card.name,
                level=card.level,
                model=model,
                budget=budget,
                family=card.family,
                dtype=card.dtypes[0] if card.dtypes else "",
                language=card.language,
                configuration=dict(configuration),
                environment=dict(environment),
            )
            try:
                return self._call(
                    f"{task}.start", lambda: self.client.start_task(self.library, new), expect=(errors.TaskExistsError,)
                )
            except errors.TaskExistsError:
                found = self.task(task)
        if found is None:
            raise BugError(f"the ledger says both that task {task!r} exists and that it does not")
        for what, theirs, ours in (("operator", found.operator, card.name), ("model", found.model, model)):
            if theirs != ours and not found.finished:
                raise TaskTakenError(
                    f"task {task!r} was begun with {what} {theirs!r}, not {ours!r}; "
                    "give this run another name (--run), or continue with the settings that it was begun with"
                )
        return found

    def finish(self, task: str, *, summary: str) -> None:
        """End the task."""
        try:
            self._call(
                f"{task}.finish",
                lambda: self.client.finish_task(self.library, task, summary=_line(summary)),
                expect=(errors.TaskFinishedError,),
            )
        except errors.TaskFinishedError:
            return

    # --- stages ----------------------------------------------------------------------------------------------------

    def enter(self, task: wire.Task, kind: StageKind, *, memory: bool) -> OpenStage | None:
        """The task's open stage of that kind, continued or opened; None where one was scored already.

        A stage that was abandoned is followed by a new one under the next id.
        """
        ours = [stage for stage in task.stages if stage.kind == kind]
        if any(stage.status == "scored" for stage in ours):
            return None
        running = next((stage for stage in ours if stage.status == "open"), None)
        if running is not None:
            return self._continued(running, kind, memory=memory)
        name = f"{task.task}.{kind}" if not ours else f"{task.task}.{kind}.{len(ours) + 1}"
        new = wire.NewStage(stage=name, kind=kind)
        try:
            opened = self._call(
                f"{name}.open",
                lambda: self.client.open_stage(self.library, task.task, new),
                expect=(errors.StageExistsError,),
            )
        except errors.StageExistsError:
            return self._continued(
                self._call("stage", lambda: self.client.stage(self.library, name)), kind, memory=memory
            )
        rules = opened.rules if memory else []
        return OpenStage(name, kind, tuple(Resident(rule.experience, rule.rule, rule.value) for rule in rules))

    def _continued(self, stage: wire.Stage, kind: StageKind, *, memory: bool) -> OpenStage:
        rules, offers = [], {}
        for name in stage.rules if memory else []:
            found = self.experience(name)
            rules.append(Resident(name, found.rule or "", found.value))
        for name in stage.retrieved:
            found = self.experience(name)
            offers[name] = Offer(name, found.title, found.body or "", found.value, found.value)
        return OpenStage(stage.stage, kind, tuple(rules), offers, dict(stage.decided))

    def retrieve(self, stage: OpenStage, query: str, round_: int) -> None:
        """Search the memory; what comes back joins the stage's offers. A query that was put before is not put again."""
        query = _line(query)
        if query in stage.queries:
            return
        found = self._call(
            f"{stage.id}.r{round_}.retrieve", lambda: self.client.retrieve(self.library, stage.id, query)
        )
        stage.queries.add(query)
        for item in found:
            stage.offers.setdefault(
                item.experience, Offer(item.experience, item.title, item.body, item.value, item.score)
            )

    def propose(
        self, stage: OpenStage, candidate: str, proposal: Proposal, *, language: str, parent: str | None
    ) -> None:
        """Record a kernel that is about to be judged."""
        if proposal.source is None:
            raise BugError("a proposal without a source can not be recorded as a candidate")
        new = wire.NewCandidate(
            candidate=candidate,
            source=proposal.source,
            language=language,
            change=_line(proposal.change),
            hypothesis=_line(proposal.hypothesis),
            parent=parent,
        )
        try:
            self._call(
                f"{candidate}.propose",
                lambda: self.client.propose_candidate(self.library, stage.id, new),
                expect=(errors.CandidateExistsError,),
            )
        except errors.CandidateExistsError:
            return

    def decide(self, stage: OpenStage, decisions: Sequence[Decision], candidate: str | None, round_: int) -> None:
        """Record decisions on what was offered; a repeat of a decision that stands is left out."""
        known = {*stage.offers, *(rule.id for rule in stage.residents)}
        fresh = [
            item
            for item in decisions
            if item.experience in known and stage.decided.get(item.experience) not in {True, item.adopted}
        ]
        if not fresh:
            return
        sent = [
            wire.Decision(
                experience=item.experience,
                adopted=item.adopted,
                reason=_line(item.reason.strip() or "no reason was given"),
                candidate=candidate if item.adopted else None,
            )
            for item in fresh
        ]
        self._call(f"{stage.id}.r{round_}.decide", lambda: self.client.decide(self.library, stage.id, sent))
        stage.decided.update({item.experience: item.adopted for item in fresh})

    def report(self, stage: OpenStage, candidate: str, verdict: Verdict) -> bool:
        """Hand in the judge's signed report; False where a person withdrew this very kernel, so that it counts not."""
        signed = wire.Report(report=verdict.report, signature=verdict.signature, judge_key=verdict.judge_key)
        taken = self._call(f"{candidate}.report", lambda: self.client.report(self.library, stage.id, candidate, signed))
        return not taken.withdrawn

    def diagnose(self, stage: OpenStage, diagnosis: Diagnosis, candidate: str | None, round_: int) -> None:
        """Record how a result was read."""
        sent = wire.Diagnosis(
            tool=_line(diagnosis.tool),
            hypothesis=_line(diagnosis.hypothesis),
            evidence=_line(diagnosis.evidence),
            next_step=_line(diagnosis.next_step),
            candidate=candidate,
        )
        self._call(f"{stage.id}.r{round_}.diagnose", lambda: self.client.diagnose(self.library, stage.id, sent))

    def model_cost(
        self,
        stage: str,
        usage: Usage,
        step: str,
        *,
        round_: int | None = None,
        upkeep: bool = False,
        experience: str | None = None,
    ) -> None:
        """Record what a call to the model cost, in a round or for the upkeep of the memory (of one experience)."""
        cost = wire.Cost(
            kind="upkeep" if upkeep else "model",
            seconds=max(usage.seconds, 0.0),
            round=round_,
            experience=experience,
            model=usage.model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            estimated=usage.estimated,
        )
        self._call(f"{stage}.{step}.model-cost", lambda: self.client.cost(self.library, stage, cost))

    def judge_cost(self, stage: str, verdict: Verdict, step: str, round_: int | None = None) -> None:
        """Record what building and judging cost."""
        spent = wire.Cost(kind="compile", seconds=verdict.compile_seconds, round=round_)
        self._call(f"{stage}.{step}.compile-cost", lambda: self.client.cost(self.library, stage, spent))
        if verdict.device_seconds > 0:
            spent_too = wire.Cost(kind="device", seconds=verdict.device_seconds, round=round_)
            self._call(f"{stage}.{step}.device-cost", lambda: self.client.cost(self.library, stage, spent_too))

    def close(self, stage: OpenStage, reason: str) -> float | None:
        """Close the stage; the ledger computes its score. Where no candidate was judged it is abandoned: None."""
        try:
            return self._call(
                f"{stage.id}.score",
                lambda: self.client.score_stage(self.library, stage.id),
                expect=(errors.StageClosedError, errors.EvidenceMissingError),
            ).score
        except errors.StageClosedError:
            return self._call("stage", lambda: self.client.stage(self.library, stage.id)).score
        except errors.EvidenceMissingError:
            self.abandon(stage, reason)
            return None

    def abandon(self, stage: OpenStage, reason: str) -> None:
        """Close the stage without a score."""
        self._call(f"{stage.id}.abandon", lambda: self.client.abandon_stage(self.library, stage.id, _line(reason)))

    # --- what an interrupted task needs ----------------------------------------------------------------------------

    def attempts(self, task: wire.Task) -> tuple[Attempt, ...]:
        """The judged rounds of a task as they happened, rebuilt from the ledger."""
        kinds = {stage.stage: stage.kind for stage in task.stages}
        return tuple(
            attempt.withdrawn() if found.withdrawn else attempt
            for found in sorted(task.candidates, key=lambda item: item.round)
            if found.outcome is not None
            for attempt in (self._attempt(found, kinds),)
        )

    def _attempt(self, found: wire.Candidate, kinds: Mapping[str, str]) -> Attempt:
        return Attempt(
            round=found.round,
            stage="optimization" if kinds.get(found.stage) == "optimization" else "correctness",
            candidate=found.candidate,
            source=self.text(found.source),
            change=found.change,
            hypothesis=found.hypothesis,
            outcome=found.outcome,  # type: ignore[arg-type]  # the judge's word, checked by the ledger
            summary=found.summary,
            evidence=reports.evidence_in(self.text(found.report)) if found.report else found.summary,
            latency_ms=found.latency_ms,
            reference_ms=found.reference_ms,
            noise_ms=found.noise_ms,
            parent=found.parent,
        )

    def answer_before(self, candidate: str) -> str | None:
        """The model's answer that a candidate came from, as it was written down in the round's diagnosis."""
        blob = None
        for event in self._call("events", lambda: list(self.client.events(self.library))):
            if event.type == "stage.diagnosed" and candidate.startswith(event.task or "\0"):
                blob = answer_named_in(event.payload["evidence"]) or blob
            elif event.type == "stage.candidate_proposed" and event.payload["candidate"] == candidate:
                return self.text(blob) if blob else None
        return None


def _line(text: str) -> str:
    """Cut to what one field of the wire takes; whole texts are blobs."""
    return text if len(text) <= _LINE else f"{text[:_LINE]} … (cut)"
