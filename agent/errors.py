"""One root error of the agent house. The loop tells apart: try again with this advice; done, it failed; our bug.

A verdict on a kernel is never an error: a crash or a wrong answer is an outcome, and the next round starts from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.port import Usage


class AgentError(Exception):
    """Root of every error that the agent house raises on purpose."""


class ConfigurationError(AgentError):
    """A setting can not be right; the message names it and what would be."""


class BugError(AgentError):
    """Our own mistake: something that the loop promises never to do was refused by the ledger or the device."""


# --- ways out of a stage -------------------------------------------------------------------------------------------


class StageOver(AgentError):  # noqa: N818  (a way out, not an error: most stages end by one of these)
    """The stage ends and is scored from what the ledger holds. `reason` is a phrase for a person."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StageSolved(StageOver):
    """A candidate is correct and measured, which is what a correctness stage is for."""


class RoundsSpent(StageOver):
    """The task's round budget is used up."""


class TimeSpent(StageOver):
    """The task's allowance of seconds is used up."""


class NothingMore(StageOver):
    """The model has nothing more to try."""


class ModelFailed(StageOver):
    """Done, it failed: the model refused, or never gave an answer that could be used."""


# --- models --------------------------------------------------------------------------------------------------------


class ModelError(AgentError):
    """A call to a model came to nothing. `usage` is what it cost all the same; `transcript` what was said."""

    def __init__(self, message: str, *, usage: Usage | None = None, transcript: str = "") -> None:
        self.usage = usage
        self.transcript = transcript
        super().__init__(message)


class AnswerError(ModelError):
    """The answer can not be used: try again with this advice."""

    def __init__(self, message: str, *, advice: str, usage: Usage | None = None, transcript: str = "") -> None:
        self.advice = advice
        super().__init__(message, usage=usage, transcript=transcript)


class EmptyAnswerError(AnswerError):
    """The model answered with nothing."""


class GarbageAnswerError(AnswerError):
    """No kernel, rule or reading can be found in the answer."""


class TruncatedAnswerError(AnswerError):
    """The answer was cut off at the provider's length limit."""


class RepeatedAnswerError(AnswerError):
    """The proposed source is one that was judged already."""


class RuleTooLongError(AnswerError):
    """The distilled rule has more tokens than were asked for."""


class ModelTransportError(ModelError):
    """The call did not come through; the same call may come through later. `retry_after` seconds, where told."""

    def __init__(self, message: str, *, retry_after: float | None = None, usage: Usage | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message, usage=usage)


class ModelTimeoutError(ModelTransportError):
    """The endpoint took longer than the set limit."""


class ModelBusyError(ModelTransportError):
    """The endpoint limits the rate of calls (429)."""


class ModelServerError(ModelTransportError):
    """The endpoint failed (5xx), or its answer was not one of the protocol."""


class ModelUnreachableError(ModelTransportError):
    """No connection to the endpoint."""


class ModelRefusedError(ModelError):
    """The model or its provider refuses to answer; asking the same again would be refused again."""


class ModelSetupError(ModelError):
    """The endpoint refuses the call as it is made: key, model name or request. Only a person can clear it."""


class ModelUnavailableError(AgentError):
    """Retries are spent and the model still can not be reached. The stage stays open, so a later run continues it."""


# --- ledger and device ---------------------------------------------------------------------------------------------


class LedgerUnavailableError(AgentError):
    """The ledger did not answer within the patience set for it. What it holds is kept, so a later run continues."""


class LedgerStartError(AgentError):
    """A ledger process that the run starts itself did not come up."""


class TaskTakenError(AgentError):
    """The task of that name was begun with another operator, model or budget than this run would use."""


class WorkbenchError(AgentError):
    """The device can not judge at all (no compiler, no device); this is no verdict on a kernel."""


class ScriptError(AgentError):
    """A script of answers can not be read; names the file and the line."""
