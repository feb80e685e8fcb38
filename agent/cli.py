"""`sagebook develop` and `sagebook run`. Data goes to standard output, progress and everything else to standard error.

Exit codes: 0 done, 1 failed, 2 a setting is wrong, 6 the ledger or the model can not be reached, 7 the log is not
clean, 130 interrupted (run the same command again to continue).
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agent.summary import Summary
    from ledger.client import LedgerClient

INTERRUPTED = 130
NOT_CLEAN = 7
UNREACHABLE = 6
USAGE = 2

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
    as_json: AsJson = False,
) -> None:
    """Develop kernels for the named operators with one library as memory; the same command continues it."""
    from agent import circle  # noqa: PLC0415 - `--help` needs none of this
    from agent.bootstrap import Options, build_loop  # noqa: PLC0415
    from agent.progress import ConsoleProgress  # noqa: PLC0415

    with _reported(), _client(server, db) as client, ConsoleProgress() as progress:
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
        )
        loop = build_loop(client, options, progress)
        circle.prepare(loop, _policy(policy))
        results = circle.develop(loop, circle.chosen(loop, operators))
        summary = circle.summarize(loop, results)
    _print(summary, as_json=as_json)
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
    policy: Policy = "sage",
    device: Device = "cpu",
    mode: Mode = "hardened",
    server: Server = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Develop operators level by level with a ledger service of its own, and show what was learnt and why.

    Once the allowance of minutes is used, an operator that is solved is optimized no further.
    Interrupted and run again, it continues from what the ledger holds.
    """
    from agent import circle  # noqa: PLC0415 - `--help` needs none of this
    from agent.bootstrap import Options, build_loop  # noqa: PLC0415
    from agent.progress import ConsoleProgress  # noqa: PLC0415

    wanted = [name.strip() for name in (operators or "").split(",") if name.strip()]
    with _reported(), ConsoleProgress() as progress, _service(server, db, progress.note) as (client, url, revive):
        name = _free_name(client, library) if fresh else library
        options = Options(
            library=name,
            model=_kind(model),
            budget=budget,
            seed=seed,
            memory=not no_memory,
            device=device,
            mode=_mode(mode),
            base_url=base_url,
            model_name=model_name,
            script=script,
        )
        loop = build_loop(client, options, progress, revive=revive)
        if fresh:
            progress.note(f"library {name}; to continue it later: sagebook run --library {name} --seed {seed}")
        sections = circle.prepare(loop, _policy(policy), "developed by `sagebook run`")
        progress.note(f"cold start: {sections} sections recorded from the reference documents")
        results = circle.develop(loop, circle.chosen(loop, wanted), seconds=minutes * 60 or None)
        progress.now("verifying and re-deriving the library")
        summary = circle.summarize(loop, results)
        explained = circle.to_explain(loop, summary)
        progress.close()
        _print(summary, as_json=as_json)
        if not as_json:
            if explained is not None:
                _why(name, explained, url)
            _audit(summary)
            _further(name, explained, _where(server, db), seed)
    raise typer.Exit(0 if summary.clean else NOT_CLEAN)


# --- the ledger ----------------------------------------------------------------------------------------------------


@contextmanager
def _client(server: str | None, db: str | None) -> Iterator[LedgerClient]:
    """A client of a running service, or of a ledger in this process."""
    if server:
        from agent.link import connect  # noqa: PLC0415

        opened = connect(server, actor=_actor())
    else:
        from ledger.bootstrap import configure_logging, embedded_client  # noqa: PLC0415
        from ledger.settings import Settings  # noqa: PLC0415

        settings = Settings(database_url=db) if db else Settings()
        configure_logging(settings)
        opened = embedded_client(settings.database_url, actor=_actor())
    with opened:
        yield opened


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


def _policy(given: str) -> str | dict[str, Any]:
    """A preset's name, or the fields in a JSON or TOML file."""
    path = Path(given)
    if not path.is_file():
        return given
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        import tomllib  # noqa: PLC0415

        return tomllib.loads(text)
    fields: dict[str, Any] = json.loads(text)
    return fields


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


# --- what is printed -----------------------------------------------------------------------------------------------


def _print(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(summary.to_mapping(), ensure_ascii=False, indent=2))
        return
    from agent.summary import lines  # noqa: PLC0415

    for line in ["", *lines(summary)]:
        typer.echo(line)


def _why(library: str, experience: str, url: str) -> None:
    """Show one `why` in full, by the command that anyone can use."""
    import subprocess  # noqa: PLC0415

    typer.echo(f"\nwhy {experience}\n")
    sys.stdout.flush()
    command = ["why", library, experience, "--server", url]
    subprocess.run([sys.executable, "-c", "from ledger.command import main; main()", *command], check=False)  # noqa: S603


def _audit(summary: Summary) -> None:
    verified, rederived = summary.verified, summary.rederived
    typer.echo("")
    if verified.ok:
        typer.echo(f"verify:   clean, {verified.events} events, head {verified.head}")
    else:
        typer.echo(f"verify:   NOT clean at sequence {verified.bad_sequence}: {verified.reason}")
    if rederived.first_difference is None:
        typer.echo(f"rederive: clean, {rederived.compared} derived events equal the recorded ones")
    else:
        typer.echo(f"rederive: NOT clean from sequence {rederived.first_difference.sequence} on")


def _further(library: str, experience: str | None, where: str, seed: int) -> None:
    typer.echo("\nto look further:")
    typer.echo(f"  sagebook state {library}{where}")
    if experience is not None:
        typer.echo(f"  sagebook why {library} {experience}{where}")
    typer.echo(f"  sagebook events {library}{where}")
    typer.echo(f"  sagebook rederive {library} --policy value-memory{where}")
    typer.echo(f"  sagebook run --library {library} --seed {seed + 1}{where}    # again, with what was learnt")


def _where(server: str | None, db: str | None) -> str:
    return f" --server {server}" if server else f" --db {db}" if db else ""


# --- ends ----------------------------------------------------------------------------------------------------------


@contextmanager
def _reported() -> Iterator[None]:
    """Turn what can happen into a line and an exit code; what nobody expected keeps its traceback."""
    from agent import errors as agent_errors  # noqa: PLC0415
    from ledger import errors as ledger_errors  # noqa: PLC0415

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            "\nsagebook: interrupted. Everything up to the last round is in the ledger; "
            "run the same command again (without --fresh) to continue.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except (agent_errors.ConfigurationError, agent_errors.ScriptError, ledger_errors.PolicyError) as error:
        _fail(error, USAGE)
    except (agent_errors.LedgerUnavailableError, agent_errors.ModelUnavailableError) as error:
        _fail(error, UNREACHABLE)
    except (agent_errors.AgentError, ledger_errors.LedgerError) as error:
        _fail(error, 1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(error: Exception, code: int) -> None:
    typer.echo(f"sagebook: {error}", err=True)
    raise typer.Exit(code) from None
