"""The model that needs no network and no language model: it composes kernels from choices and changes a few each round.

It keeps nothing between calls. Which choices a kernel was composed from is read back from its source, and whatever is
random is drawn from the seed, the operator and the round, so a run that was cut off goes on in the same way.
"""

from __future__ import annotations

import random
import time

from agent.coldstart import patterns
from agent.models.search import decisions, rules, space
from agent.models.search.correct import next_repair
from agent.models.search.emit import emit
from agent.models.search.improve import next_improvement
from agent.models.search.plan import Situation
from agent.models.search.recommend import recommendations
from agent.models.search.translate import translate
from agent.port import Context, Decision, OperatorCard, Pattern, Proposal, RuleDraft, Usage

NAME = "search"


class SearchModel:
    """Implements `agent.port.Model`.

    `use_memory=False` reads neither offers nor residents: it explores blindly from the seed, as a control does.
    `patience` is how many rounds of optimization may pass without an improvement before it has nothing more to try.
    """

    def __init__(self, seed: int = 0, use_memory: bool = True, *, patience: int = 4) -> None:
        self._seed = seed
        self._use_memory = use_memory
        self._patience = patience

    @property
    def name(self) -> str:
        """What the ledger records as the model."""
        return NAME

    def propose(self, context: Context) -> Proposal:
        """Compose the next candidate. Raises `NoRecipe` for an operator that no recipe covers."""
        begin = time.monotonic()
        situation = self._situation(context)
        plan = next_repair(situation) if context.stage == "correctness" else next_improvement(situation)
        usage = Usage(NAME, seconds=time.monotonic() - begin)
        if plan.choices is None:
            return Proposal(None, plan.change, plan.hypothesis, plan.decisions, plan.diagnosis, usage=usage)
        source = emit(situation.traits.family, situation.program, plan.choices)
        return Proposal(
            source, plan.change, plan.hypothesis, plan.decisions, plan.diagnosis, parent=plan.parent, usage=usage
        )

    def closing_decisions(self, context: Context) -> tuple[Decision, ...]:
        """A decision, with its reason, on every offer of the stage that no round decided on."""
        return decisions.closing(self._situation(context), use_memory=self._use_memory)

    def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
        """Read what the expert's source does that the generated one does not, by the features that a text shows."""
        begin = time.monotonic()
        found = patterns.compare(operator, generated, expert)
        return found, Usage(NAME, seconds=time.monotonic() - begin)

    def distill(self, title: str, body: str, evidence: str, limit_tokens: int) -> RuleDraft:
        """Cut an experience down to a rule: when, what, why, and its `Change:` line."""
        begin = time.monotonic()
        text = rules.distill(title, body, evidence, limit_tokens)
        return RuleDraft(text, Usage(NAME, seconds=time.monotonic() - begin))

    def _situation(self, context: Context) -> Situation:
        program = translate(context.operator)
        traits = space.traits_of(program)
        advice = recommendations(context) if self._use_memory else ()
        rng = random.Random(f"{self._seed}:{context.seed}:{context.operator.name}:{context.round}:{context.advice}")
        draft = space.draft(traits, random.Random(f"{self._seed}:{context.seed}:{context.operator.name}:draft"))
        return Situation(context, program, traits, advice, draft, rng, self._patience)
