"""Rules for experiences that passed the gate: short texts with a token count by a named tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.calls import Calls
from agent.config import LoopSettings
from agent.errors import ModelFailed, ModelUnavailableError, RuleTooLongError
from agent.journal import Journal
from agent.port import RuleDraft
from agent.progress import Progress
from agent.tokens import TokenCounter
from ledger import wire


@dataclass
class Distiller:
    """Gives each experience that awaits a rule its text."""

    journal: Journal
    tokens: TokenCounter
    settings: LoopSettings
    progress: Progress

    def run(self, calls: Calls, stage: str | None) -> int:
        """Distill whatever awaits a rule; the cost is booked as upkeep on `stage`. Return how many rules were made.

        A model that gives no usable rule leaves the experience waiting; the next task asks again.
        """
        made = 0
        for waiting in self.journal.experiences(awaiting=True):
            try:
                draft = self._draft(calls, waiting)
            except (ModelFailed, ModelUnavailableError) as error:
                self.progress.note(f"no rule for {waiting.experience} yet: {error}")
                continue
            if stage is not None:
                self.journal.model_cost(
                    stage, draft.usage, f"distill.{waiting.experience}", upkeep=True, experience=waiting.experience
                )
            rule = wire.NewRule(
                text=draft.text,
                tokens=self.tokens.count(draft.text),
                tokenizer=self.tokens.name,
                model=draft.usage.model,
            )
            outcome = self.journal.rule(waiting.experience, rule)
            made += 1
            place = "resident" if outcome and waiting.experience in outcome.admitted else "not resident"
            self.progress.note(f"rule distilled: {waiting.experience} ({rule.tokens} tokens, {place})")
        return made

    def _draft(self, calls: Calls, waiting: wire.Experience) -> RuleDraft:
        limit = self.settings.rule_tokens
        evidence = _evidence(waiting)

        def ask(advice: str) -> RuleDraft:
            asked = f"{evidence}\n{advice}".strip()
            draft = calls.model.distill(waiting.title, waiting.body or "", asked, limit)
            draft = replace(draft, text=draft.text.strip())
            count = self.tokens.count(draft.text)
            if not draft.text or count > limit:
                raise RuleTooLongError(
                    f"the rule for {waiting.experience!r} has {count} tokens, not 1 to {limit}",
                    advice=f"The last answer had {count} tokens. Write 1 to {limit}.",
                    usage=draft.usage,
                )
            return draft

        return calls.until_usable(ask, lambda error: self.progress.note(f"model: {error}"))


def _evidence(waiting: wire.Experience) -> str:
    operators = ", ".join(waiting.operators)
    return (
        f"value {waiting.value:.3f}; retrieved in {waiting.retrievals} stages, adopted in {waiting.adoptions}, "
        f"for the operators {operators}"
    )
