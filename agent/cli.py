"""`sagebook develop` and `sagebook run`. Data goes to standard output, progress and everything else to standard error.

Exit codes: 0 done, 1 failed, 2 a setting is wrong, 6 the ledger or the model can not be reached, 7 the log is not
clean, 130 interrupted (run the same command again to continue).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ledger.client import LedgerClient

Library = Annotated[str, typer.Option("--library", "-l", help="Library that is read and written; created if need be.")]
Model = Annotated[str, typer.Option("--model", help="search (needs nothing), chat (an endpoint) or scripted (a file).")]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", help="OpenAI-compatible endpoint; or SAGEBOOK_BASE_URL. Key: SAGEBOOK_API_KEY."),
]
ModelName = Annotated[
    str | None, typer.Option("--model-name", help="The model's name at the endpoint; or SAGEBOOK_MODEL_NAME.")
]
Script = Annotated[Path | None, typer.Option("--script", help="JSON-lines file of answers, for --model scripted.")]
Budget = Annotated[int, typer.Option("--budget", min=1, help="Rounds an operator, shared by both stages.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the model's choices and of the judge's inputs.")]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Neither read nor record experiences.")]
Run = Annotated[
    str | None, typer.Option("--run", help="Name of the run; the same name continues. Default: MODEL-SEED.")
]
Policy = Annotated[str, typer.Option("--policy", help="Preset or policy file for a library that is created.")]
Device = Annotated[str, typer.Option("--device", help="cpu or npu.")]
Mode = Annotated[str, typer.Option("--mode", help="The judge's protocol: hardened or paper.")]
Db = Annotated[
    str | None,
    typer.Option(
        "--db", help="Database URL; default: a SQLite file in the user's data folder.", envvar="SAGEBOOK_DATABASE_URL"
    ),
]
Server = Annotated[
    str | None,
    typer.Option("--server", help="URL of a running ledger, instead of a database.", envvar="SAGEBOOK_SERVER"),
]
Patience = Annotated[
    float, typer.Option("--patience", help="Seconds that a ledger which does not answer is waited for.", min=0)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the agent's commands."""
    app.command("develop", epilog="Example: sagebook develop gelu softmax --budget 12")(develop)
    app.command("run", epilog="Example: sagebook run --operators gelu,softmax --seed 3")(run)


def develop(
    operators: Annotated[list[str], typer.Argument(help="Operators; `sagebook device operators` lists them.")],
    library: Library = "workshop",
    model: Model = "search",
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    script: Script = None,
    budget: Budget = 30,
    seed: Seed = 0,
    no_memory: NoMemory = False,
    run_name: Run = None,
    policy: Policy = "sage",
    device: Device = "cpu",
    mode: Mode = "hardened",
    server: Server = None,
    db: Db = None,
    patience: Patience = 60.0,
    as_json: AsJson = False,
) -> None:
    """Develop kernels for the named operators with one library as memory; the same command continues it."""
    from agent import circle  # noqa: PLC0415 - `--help` needs none of this
    from agent.bootstrap import Options, build_loop, build_parts  # noqa: PLC0415
    from agent.console import print_summary, reported  # noqa: PLC0415
    from agent.progress import ConsoleProgress  # noqa: PLC0415
    from ledger.client import policy_argument  # noqa: PLC0415

    with reported():
        options = Options(
            library=library,
            model=_kind(model),
            run=run_name,
            budget=budget,
            seed=seed,
            memory=not no_memory,
            device=device,
            mode=_mode(mode),
            base_url=base_url,
            model_name=model_name,
            script=script,
            patience=patience,
        )
        parts = build_parts(options)
        names = circle.chosen(parts.workbench, operators)
    with reported(), ConsoleProgress() as progress, _service(server, db, progress.note) as (client, _, revive):
        loop = build_loop(client, options, parts, progress, revive=revive)
        circle.prepare(loop, policy_argument(policy))
        results = circle.develop(loop, names)
        summary = circle.summarize(loop, results)
    print_summary(summary, as_json=as_json)
    where = _where(server, db)
    if not as_json:
        typer.echo(f"\nwhat it learnt: sagebook state {library}{where}")
    raise typer.Exit(0 if all(result.solved for result in results) else 1)


def run(
    operators: Annotated[
        str | None, typer.Option("--operators", help="Operators, separated by commas; default: the starter suite.")
    ] = None,
    library: Library = "circle",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew in a library of the next free name.")] = False,
    model: Model = "search",
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    script: Script = None,
    budget: Budget = 30,
    minutes: Annotated[
        float, typer.Option("--minutes", help="Allowance in minutes, shared by the operators; 0 means no limit.", min=0)
    ] = 4.5,
    seed: Seed = 0,
    no_memory: NoMemory = False,
    run_name: Run = None,
    policy: Policy = "sage",
    device: Device = "cpu",
    mode: Mode = "hardened",
    server: Server = None,
    db: Db = None,
    patience: Patience = 60.0,
    as_json: AsJson = False,
) -> None:
    """Develop operators level by level with a ledger service of its own, and show what was learnt and why.

    Once the allowance of minutes is used, an operator that is solved is optimized no further.
    Interrupted and run again, it continues from what the ledger holds.
    """
    from agent import circle  # noqa: PLC0415 - `--help` needs none of this
    from agent.bootstrap import Options, build_loop, build_parts  # noqa: PLC0415
    from agent.console import (  # noqa: PLC0415
        NOT_CLEAN,
        print_audit,
        print_further,
        print_summary,
        print_why,
        reported,
    )
    from agent.progress import ConsoleProgress  # noqa: PLC0415
    from ledger.client import policy_argument  # noqa: PLC0415

    wanted = [name.strip() for name in (operators or "").split(",") if name.strip()]
    with reported():
        options = Options(
            library=library,
            model=_kind(model),
            run=run_name,
            budget=budget,
            seed=seed,
            memory=not no_memory,
            device=device,
            mode=_mode(mode),
            base_url=base_url,
            model_name=model_name,
            script=script,
            patience=patience,
        )
        parts = build_parts(options)
        names = circle.chosen(parts.workbench, wanted)
    with reported(), ConsoleProgress() as progress, _service(server, db, progress.note) as (client, url, revive):
        name = _free_name(client, library) if fresh else library
        loop = build_loop(client, replace(options, library=name), parts, progress, revive=revive)
        if fresh:
            progress.note(f"library {name}; to continue it later: sagebook run --library {name} --seed {seed}")
        sections = circle.prepare(loop, policy_argument(policy), "developed by `sagebook run`")
        progress.note(f"cold start: {sections} sections recorded from the reference documents")
        results = circle.develop(loop, names, seconds=minutes * 60 or None)
        progress.now("verifying and re-deriving the library")
        summary = circle.summarize(loop, results)
        explained = circle.to_explain(loop, summary)
        progress.close()
        print_summary(summary, as_json=as_json)
        if not as_json:
            if explained is not None:
                print_why(name, explained, url)
            print_audit(summary)
            print_further(name, explained, _where(server, db), seed)
    raise typer.Exit(0 if summary.clean else NOT_CLEAN)


# --- the ledger ----------------------------------------------------------------------------------------------------


@contextmanager
def _service(server: str | None, db: str | None, note: Any) -> Iterator[tuple[LedgerClient, str, Any]]:
    """A client of the given service, or of one that is started here and stopped at the end."""
    from agent.ledger_process import LedgerProcess  # noqa: PLC0415
    from agent.link import connect  # noqa: PLC0415

    if server:
        with connect(server, actor=_actor()) as client:
            yield client, server, None
        return
    import platformdirs  # noqa: PLC0415

    log = platformdirs.user_state_path("sagebook") / "ledger.log"
    with LedgerProcess(db, log, notice=note) as process:
        note(f"ledger on {process.url} (process {process.pid}), its log in {log}")
        with connect(process.url, actor=_actor()) as client:
            yield client, process.url, process.revive


def _free_name(client: LedgerClient, base: str) -> str:
    taken = {item.library for item in client.libraries()}
    return next(name for n in range(1, len(taken) + 2) if (name := base if n == 1 else f"{base}-{n}") not in taken)


def _actor() -> str:
    import os  # noqa: PLC0415

    return os.environ.get("SAGEBOOK_ACTOR") or "agent"


def _kind(model: str) -> Any:
    from agent.errors import ConfigurationError  # noqa: PLC0415

    if model not in {"search", "chat", "scripted"}:
        raise ConfigurationError(f"there is no model {model!r}; choose search, chat or scripted")
    return model


def _mode(mode: str) -> Any:
    from agent.errors import ConfigurationError  # noqa: PLC0415

    if mode not in {"hardened", "paper"}:
        raise ConfigurationError(f"the judge has no mode {mode!r}; choose hardened or paper")
    return mode


def _where(server: str | None, db: str | None) -> str:
    return f" --server {server}" if server else f" --db {db}" if db else ""
