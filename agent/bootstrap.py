"""Names the concrete parts: which model, which workbench, which ledger. Only the command line calls this."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic_settings import BaseSettings, SettingsConfigDict

from agent.coldstart.differential import Differential
from agent.config import LoopSettings
from agent.distill import Distiller
from agent.errors import ConfigurationError
from agent.journal import Journal
from agent.lessons import Lessons
from agent.link import Line
from agent.loop import Loop
from agent.models.chat import ChatModel, ChatSettings
from agent.models.scripted import ScriptedModel
from agent.port import Model, Workbench
from agent.progress import Progress
from agent.retry import Backoff
from agent.tokens import TokenCounter, counter
from agent.workbench import DeviceWorkbench
from ledger.client import LedgerClient

ModelKind = Literal["search", "chat", "scripted"]


class Environment(BaseSettings):
    """What the environment may say of a language model, so that no key stands on a command line."""

    model_config = SettingsConfigDict(env_prefix="SAGEBOOK_", extra="ignore")

    base_url: str = ""
    """Root of an OpenAI-compatible endpoint (`SAGEBOOK_BASE_URL`)."""
    model_name: str = ""
    """Name of the model at that endpoint (`SAGEBOOK_MODEL_NAME`)."""
    api_key: str = "none"
    """Key of that endpoint (`SAGEBOOK_API_KEY`)."""
    model_timeout: float = 300.0
    """Seconds that one call may take (`SAGEBOOK_MODEL_TIMEOUT`)."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a command was asked for."""

    library: str
    model: ModelKind = "search"
    run: str | None = None
    """Name of the run; None derives it from model and seed."""
    budget: int = 30
    seed: int = 0
    memory: bool = True
    device: str = "cpu"
    mode: Literal["hardened", "paper"] = "hardened"
    base_url: str | None = None
    model_name: str | None = None
    script: Path | None = None
    patience: float = 60.0
    """Seconds that a ledger which does not answer is waited for."""
    environment: Environment = field(default_factory=Environment)


def build_model(options: Options, tokens: TokenCounter) -> Model:
    """Make the model that was asked for. Raises ConfigurationError naming the option that is missing."""
    if options.model == "search":
        from agent.models.search import SearchModel  # noqa: PLC0415 - many modules, only where it is used

        return SearchModel(options.seed, use_memory=options.memory)
    if options.model == "scripted":
        if options.script is None:
            raise ConfigurationError("the scripted model needs a script: give its JSON-lines file with --script")
        return ScriptedModel.from_file(options.script)
    base_url = options.base_url or options.environment.base_url
    name = options.model_name or options.environment.model_name
    if not base_url or not name:
        missing = "--base-url (or SAGEBOOK_BASE_URL)" if not base_url else "--model-name (or SAGEBOOK_MODEL_NAME)"
        raise ConfigurationError(f"the chat model needs {missing}, e.g. --base-url http://127.0.0.1:8000/v1")
    settings = ChatSettings(
        base_url=base_url,
        model=name,
        api_key=options.environment.api_key,
        timeout=options.environment.model_timeout,
    )
    return ChatModel(settings, tokens)


def run_name(options: Options, model: Model) -> str:
    """Name the run: as asked for, or by model and seed, in characters that an id may hold."""
    return options.run or re.sub(r"[^A-Za-z0-9._-]+", "-", f"{model.name}-{options.seed}").strip("-")


@dataclass(frozen=True, slots=True)
class Parts:
    """What needs no ledger, so that a wrong setting is told before one is started."""

    tokens: TokenCounter
    model: Model
    workbench: Workbench


def build_parts(options: Options) -> Parts:
    """Make tokenizer, model and workbench. Raises ConfigurationError naming the option that is missing."""
    tokens = counter()
    return Parts(tokens, build_model(options, tokens), DeviceWorkbench(device=options.device, mode=options.mode))


def build_loop(
    client: LedgerClient,
    options: Options,
    parts: Parts,
    progress: Progress,
    *,
    revive: Callable[[], None] | None = None,
) -> Loop:
    """Wire a loop. `revive` brings back a ledger that the caller started, where it died."""
    tokens, model, workbench = parts.tokens, parts.model, parts.workbench
    shown = (("device", options.device), ("mode", options.mode))
    settings = LoopSettings(
        library=options.library,
        run=run_name(options, model),
        budget=options.budget,
        seed=options.seed,
        memory=options.memory,
        extra=shown,
    )
    journal = Journal(
        client, options.library, Line(Backoff(patience=options.patience), revive=revive, notice=progress.note)
    )
    differential = Differential(journal, workbench, progress, seed=options.seed)
    lessons = Lessons(
        journal,
        Distiller(journal, tokens, settings, progress),
        differential if options.memory else None,
        progress,
        record=options.memory,
    )
    return Loop(model, workbench, journal, settings, lessons, progress)
