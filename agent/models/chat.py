"""A language model behind any OpenAI-compatible endpoint: one call a method, every way it can go wrong has a name.

The loop decides what is tried again; the client's own retries are off, so that each call is recorded and paid for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from agent.errors import (
    EmptyAnswerError,
    ModelBusyError,
    ModelRefusedError,
    ModelServerError,
    ModelSetupError,
    ModelTimeoutError,
    ModelUnreachableError,
    TruncatedAnswerError,
)
from agent.models import answers, prompts
from agent.port import Context, OperatorCard, Pattern, Proposal, RuleDraft, Usage
from agent.tokens import TokenCounter

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion

_TRANSIENT = {408, 409, 425}


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a language model is reached and asked."""

    base_url: str
    """Root of the endpoint, e.g. `http://127.0.0.1:8000/v1`."""
    model: str
    """Name of the model as the endpoint knows it."""
    api_key: str = "none"
    """Key; endpoints on one's own machine take any."""
    timeout: float = 300.0
    """Seconds that one call may take."""
    temperature: float | None = None
    """Sampling temperature; None leaves it to the endpoint."""
    max_output_tokens: int = 16_384
    """Longest answer; one that is cut off there is asked for again, shorter."""


@dataclass
class ChatModel:
    """Writes kernels, reads differences and distills rules by chat completions."""

    settings: ChatSettings
    tokens: TokenCounter
    """Counts where the endpoint reports no usage."""
    _client: openai.OpenAI | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """The provider's model name."""
        return self.settings.model

    def propose(self, context: Context) -> Proposal:
        """Write the next candidate. Raises the kinds of ModelError."""
        said, usage, transcript = self._ask(prompts.system(context.operator), prompts.user(context), context.seed)
        return answers.proposal(said, usage, transcript)

    def compare(self, operator: OperatorCard, generated: str, expert: str) -> tuple[tuple[Pattern, ...], Usage]:
        """Read the patterns that the expert's source has and the generated one lacks."""
        said, usage, transcript = self._ask(prompts.COMPARE, prompts.compare(operator, generated, expert))
        return answers.patterns(said, usage, transcript), usage

    def distill(self, title: str, body: str, evidence: str, limit_tokens: int) -> RuleDraft:
        """Write a rule of at most `limit_tokens` tokens."""
        said, usage, transcript = self._ask(prompts.DISTILL, prompts.distill(title, body, evidence, limit_tokens))
        return RuleDraft(answers.rule(said, usage, transcript), usage)

    # --- the call --------------------------------------------------------------------------------------------------

    def _ask(self, system: str, user: str, seed: int | None = None) -> tuple[str, Usage, str]:
        """Make one call; return the text, what it cost, and the transcript."""
        import openai  # noqa: PLC0415 - half a second, only where a model is called

        started = time.monotonic()
        asked = f"{system}\n\n{user}"
        try:
            completion = self._connected().chat.completions.create(
                model=self.settings.model,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                max_tokens=self.settings.max_output_tokens,
                temperature=self.settings.temperature if self.settings.temperature is not None else openai.omit,
                seed=seed if seed is not None else openai.omit,
            )
        except openai.OpenAIError as error:
            self._failed(
                error, Usage(self.name, self.tokens.count(asked), 0, time.monotonic() - started, estimated=True)
            )
        except ValueError as error:  # a body that is no JSON, or JSON of another shape
            raise ModelServerError(f"{self._where()} answered with something that is no completion: {error}") from error
        return self._read(completion, asked, time.monotonic() - started)

    def _read(self, completion: ChatCompletion, asked: str, seconds: float) -> tuple[str, Usage, str]:
        """Take the answer out of a completion, and tell empty, cut off and refused answers apart."""
        choices = getattr(completion, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise ModelServerError(f"{self._where()} answered with no choices; is it a chat completions endpoint?")
        message, finish = choices[0].message, choices[0].finish_reason
        said = message.content or ""
        usage = self._usage(completion, asked, said, seconds)
        transcript = f"# Asked\n\n{asked}\n\n# Answered ({finish})\n\n{said or message.refusal or ''}\n"
        if message.refusal or finish == "content_filter":
            raise ModelRefusedError(
                f"{self.name} refuses to answer: {message.refusal or 'stopped by the content filter'}",
                usage=usage,
                transcript=transcript,
            )
        if finish == "length":
            raise TruncatedAnswerError(
                f"the answer was cut off after {usage.output_tokens} tokens",
                advice="It was cut off at the length limit. Think less aloud and write a shorter source.",
                usage=usage,
                transcript=transcript,
            )
        if not said.strip():
            raise EmptyAnswerError(
                "the answer is empty",
                advice="It was empty. Answer in the form that was asked for.",
                usage=usage,
                transcript=transcript,
            )
        return said, usage, transcript

    def _usage(self, completion: ChatCompletion, asked: str, said: str, seconds: float) -> Usage:
        """Read the reported usage; where there is none, count and say so."""
        told = completion.usage
        if told is None or not isinstance(told.prompt_tokens, int) or not isinstance(told.completion_tokens, int):
            return Usage(self.name, self.tokens.count(asked), self.tokens.count(said), seconds, estimated=True)
        return Usage(self.name, max(told.prompt_tokens, 0), max(told.completion_tokens, 0), seconds)

    def _failed(self, error: openai.OpenAIError, usage: Usage) -> NoReturn:
        """Give a client's error its name in this house."""
        import openai  # noqa: PLC0415

        where = self._where()
        if isinstance(error, openai.APITimeoutError):
            raise ModelTimeoutError(
                f"{where} gave no answer within {self.settings.timeout:g} s", usage=usage
            ) from error
        if isinstance(error, openai.APIResponseValidationError):
            raise ModelServerError(f"{where} answered with something that is no completion: {error}") from error
        if isinstance(error, openai.APIStatusError):
            told = f"{where} answered {error.status_code}: {_clip(error.message)}"
            if error.status_code == openai.RateLimitError.status_code:
                raise ModelBusyError(told, retry_after=_retry_after(error)) from error
            if error.status_code >= 500 or error.status_code in _TRANSIENT:
                raise ModelServerError(told, retry_after=_retry_after(error)) from error
            raise ModelSetupError(f"{told} (check --base-url, --model-name and the key in SAGEBOOK_API_KEY)") from error
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            raise ModelUnreachableError(f"no connection to {where}: {cause}", usage=usage) from error
        raise ModelServerError(f"{where}: {error}") from error

    def _where(self) -> str:
        return f"{self.name} at {self.settings.base_url}"

    def _connected(self) -> openai.OpenAI:
        if self._client is None:
            import openai  # noqa: PLC0415

            self._client = openai.OpenAI(
                base_url=self.settings.base_url,
                api_key=self.settings.api_key,
                timeout=self.settings.timeout,
                max_retries=0,
            )
        return self._client

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        return float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None


def _clip(text: str, limit: int = 500) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
