"""Calls to a model that may come to nothing: which are tried again, with what advice, and when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from agent.errors import (
    AnswerError,
    ModelError,
    ModelFailed,
    ModelSetupError,
    ModelTransportError,
    ModelUnavailableError,
    RepeatedAnswerError,
)
from agent.port import Context, Model, Proposal
from agent.retry import Backoff, Retries

_T = TypeVar("_T")


@dataclass
class Calls:
    """Asks a model. Every call that came to nothing is told to `failed`, so that its cost and reason are recorded."""

    model: Model
    retries: Retries
    backoff: Backoff
    sleep: Callable[[float], None] = time.sleep

    def propose(self, context: Context, failed: Callable[[ModelError], None]) -> Proposal:
        """Ask for the next candidate; one that repeats a judged source is sent back once.

        Raises ModelFailed when the model refuses or gives no usable answer, ModelUnavailableError when it can not be
        reached, ModelSetupError when only a person can clear it.
        """
        judged = {attempt.source for attempt in context.history}
        sent_back = False

        def ask(advice: str) -> Proposal:
            nonlocal sent_back
            proposal = self.model.propose(replace(context, advice=advice))
            if proposal.source in judged and not sent_back:
                sent_back = True
                raise RepeatedAnswerError(
                    f"the source proposed in round {context.round} was judged before",
                    advice="This source was judged already and its result would be the same. Change something, or "
                    "say that there is nothing more to try.",
                    usage=proposal.usage,
                    transcript=proposal.transcript,
                )
            return proposal

        return self.until_usable(ask, failed)

    def until_usable(self, ask: Callable[[str], _T], failed: Callable[[ModelError], None]) -> _T:
        """Call `ask` with the advice of the last failure until it answers; see `propose` for what it raises."""
        advice = ""
        while True:
            try:
                return ask(advice)
            except ModelSetupError:
                raise
            except RepeatedAnswerError as error:
                failed(error)
                advice = error.advice
            except AnswerError as error:
                failed(error)
                advice = error.advice
                if not self.retries.take():
                    raise ModelFailed(f"no usable answer in {self.retries.allowed} retries: {error}") from error
            except ModelTransportError as error:
                failed(error)
                if not self.retries.take():
                    raise ModelUnavailableError(
                        f"{error} ({self.retries.allowed} retries). Run the same command again when it "
                        "answers: the stage is open and continues from what the ledger holds"
                    ) from error
                self.sleep(self.retries.wait(error.retry_after, self.backoff))
            except ModelError as error:  # it refuses, or it knows of no way: asking again would end the same
                failed(error)
                raise ModelFailed(str(error)) from error
