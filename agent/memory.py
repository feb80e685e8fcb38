"""What the loop says to memory: the words of a search, how results were read, and why an offer was left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.errors import AnswerError, ModelError
from agent.port import Attempt, Decision, Diagnosis, OperatorCard, Proposal, StageKind

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


def diagnosis(proposal: Proposal, last: Attempt | None, transcript: str | None) -> Diagnosis | None:
    """Say how the last result was read: in the model's words, or as the judge's evidence and the change that followed.

    `transcript` is the blob of what was said; None for the first round of a model that is not spoken to.
    """
    found = proposal.diagnosis
    if found is None:
        if last is None and transcript is None:
            return None
        found = Diagnosis(
            tool="judge" if last else "none",
            hypothesis=proposal.hypothesis,
            evidence=f"round {last.round}: {last.outcome}; {last.evidence}" if last else "",
            next_step=proposal.change,
        )
    if transcript is None:
        return found
    said = f"{found.evidence}\nprompt and answer: blob {transcript}".strip()
    return Diagnosis(found.tool, found.hypothesis, said, found.next_step)


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
