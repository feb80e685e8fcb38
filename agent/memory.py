"""What the loop says to memory: the words of a search, how results were read, and why an offer was left. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict

from agent.errors import AnswerError, ModelError
from agent.port import Attempt, Decision, Diagnosis, OperatorCard, Proposal, StageKind

_ANSWER = re.compile(r"^answer: blob ([0-9a-f]{64})$", re.MULTILINE)
_EVIDENCE = 12_000
_ASKS: dict[str, str] = {
    "compile_error": "compile error, repair the build",
    "refused": "source refused by the judge",
    "crash": "crash, out of bounds access, invalid pointer",
    "hang": "hang, endless loop, deadlock",
    "resource": "out of memory or time limit",
    "wrong": "wrong result, numerical error, tail, overflow, accumulation",
    "correct": "correct, make it faster: memory movement, vectorization, threads, passes",
}


def query(card: OperatorCard, stage: StageKind, history: Sequence[Attempt]) -> str:
    """Build a search from the operator's card and from how the last round was read."""
    words = [f"{stage} of {card.name} ({card.family}), {card.language}: {card.summary}"]
    if not history:
        words.append("first draft: layout, indexing, numerical traps")
        return "\n".join(words)
    last = history[-1]
    words.append(_ASKS[last.outcome])
    if last.outcome != "correct":
        words.append(last.summary[:300])
    return "\n".join(words)


def answer(proposal: Proposal) -> str:
    """Write down a proposal as it came, without its source, which is a blob of its own."""
    told = asdict(proposal)
    del told["source"]
    return json.dumps(told, ensure_ascii=False, indent=1)


def decisions_in(answer_text: str) -> tuple[Decision, ...]:
    """Read the decisions back out of an answer."""
    return tuple(Decision(**item) for item in json.loads(answer_text)["decisions"])


def answer_named_in(evidence: str) -> str | None:
    """Find the blob of the answer that a diagnosis names."""
    found = _ANSWER.search(evidence)
    return found.group(1) if found else None


def diagnosis(proposal: Proposal, last: Attempt | None, answer_blob: str) -> Diagnosis:
    """Say how the last result was read: in the model's words, or as the judge's evidence and the change that followed.

    The evidence ends with the name of the blob that holds the whole answer.
    """
    found = proposal.diagnosis or Diagnosis(
        tool="judge" if last else "none",
        hypothesis=proposal.hypothesis,
        evidence=f"round {last.round}: {last.outcome}; {last.evidence}" if last else "nothing was judged yet",
        next_step=proposal.change,
    )
    seen = f"{found.evidence[:_EVIDENCE]}\nanswer: blob {answer_blob}"
    return Diagnosis(found.tool, found.hypothesis, seen, found.next_step)


def failed_call(error: ModelError, transcript: str | None) -> Diagnosis:
    """Describe a call to a model that came to nothing."""
    said = f"\nprompt and answer: blob {transcript}" if transcript else ""
    return Diagnosis(
        tool="model",
        hypothesis=type(error).__name__,
        evidence=f"{error}{said}",
        next_step=error.advice if isinstance(error, AnswerError) else "ask again, within the task's retries",
    )


def not_adopted(offers: Sequence[str], model: str, stage: StageKind, rounds: int, reason: str) -> tuple[Decision, ...]:
    """Decide on offers that no decision was made on; the reason says what did not happen."""
    counted = "no round was" if rounds == 0 else "one round was" if rounds == 1 else f"{rounds} rounds were"
    return tuple(
        Decision(
            offer,
            adopted=False,
            reason=f"not adopted: {model} made no change after it; {counted} judged in this {stage} stage, "
            f"which ended because {reason}",
        )
        for offer in offers
    )
