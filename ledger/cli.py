"""The ledger's commands. Data goes to standard output, everything else to standard error.

Exit codes: 0 done, 1 unexpected, 2 usage, 3 not found, 4 refused or conflict, 6 unreachable, 7 verification failed.
An import ends with 2 at a line that is no record, and with 4 at a record that is refused.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ledger import errors

if TYPE_CHECKING:
    from ledger.client import LedgerClient
    from ledger.settings import Settings

Library = Annotated[str, typer.Argument(help="Name of the library.", show_default=False)]
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

EXIT = (
    (errors.NotFoundError, 3),
    (errors.InvalidInputError, 2),
    (errors.RefusedError, 4),
    (errors.ConflictError, 4),
    (errors.UnreachableError, 6),
    (errors.LogCorruptError, 7),
)


def fail(error: errors.LedgerError) -> NoReturn:
    """Say what was refused and leave with the code for it."""
    cause = error.facts.get("cause")
    refused = isinstance(error, errors.TraceInvalidError) and cause not in {None, error.code}
    typer.echo(f"sagebook: {error.message} [{cause if refused else error.code}]", err=True)
    raise typer.Exit(4 if refused else next((code for kind, code in EXIT if isinstance(error, kind)), 1))


def settings_with(**given: str | int | None) -> Settings:
    """Settings with what the command line gave; ends the command where one can not be read."""
    from pydantic import ValidationError  # noqa: PLC0415 - `--help` needs none

    from ledger.settings import Settings, config_file  # noqa: PLC0415

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"])
        fail(errors.InvalidInputError(f"setting {name!r} (SAGEBOOK_{name.upper()}) is wrong: {first['msg']}"))
    except (OSError, ValueError) as error:
        fail(errors.InvalidInputError(f"the settings file {config_file()} can not be read: {error}"))


def _typed_alone(option: str, other: str) -> bool:
    """Whether an option was typed and the other one only stands in the environment."""
    from click import get_current_context  # noqa: PLC0415
    from click.core import ParameterSource  # noqa: PLC0415

    context = get_current_context(silent=True)
    if context is None:
        return False
    typed = ParameterSource.COMMANDLINE
    return context.get_parameter_source(option) is typed and context.get_parameter_source(other) is not typed


@contextmanager
def client(db: str | None, server: str | None) -> Iterator[LedgerClient]:
    """A client of the chosen ledger; refusals end the command with their own exit code."""
    actor = os.environ.get("SAGEBOOK_ACTOR") or os.environ.get("USER") or "cli"
    try:
        if server and not _typed_alone("db", "server"):
            from ledger.client import LedgerClient  # noqa: PLC0415 - `--help` needs no HTTP

            opened = LedgerClient.connect(server, actor=actor)
        else:
            from ledger.bootstrap import configure_logging, embedded_client  # noqa: PLC0415

            settings = settings_with(database_url=db)
            if "log_level" not in settings.model_fields_set:
                # A command that ends at once has its answer to show; a service says what should be looked into.
                settings = settings.model_copy(update={"log_level": "error"})
            configure_logging(settings)
            opened = embedded_client(settings.database_url, actor=actor)
        with opened:
            yield opened
    except errors.LedgerError as error:
        fail(error)
    except ValueError as error:
        from pydantic import ValidationError  # noqa: PLC0415 - `--help` needs none

        if not isinstance(error, ValidationError):
            raise
        # What was typed does not fit the request that it was to become.
        from ledger.words import told  # noqa: PLC0415

        fail(errors.RequestInvalidError(told(error.errors())))


@contextmanager
def busy(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Say on a terminal what takes long, with the seconds that it took so far. Standard output stays data.

    Gives what can be told how much is done, and of how much, to show the share too; None where nobody looks.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[share]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=None, share="")
        yield lambda done, of: progress.update(
            bar, completed=done, total=of or None, share=f"{done:,} of {of:,} events"
        )


def show(value: Any) -> None:
    """Print JSON for a program to read."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def register(app: typer.Typer) -> None:
    """Add the ledger's commands."""
    from ledger.cli_audit import register_audit  # noqa: PLC0415 - one file a subject
    from ledger.cli_experiences import register_experiences  # noqa: PLC0415
    from ledger.cli_govern import register_govern  # noqa: PLC0415
    from ledger.cli_library import register_library  # noqa: PLC0415
    from ledger.cli_store import register_store  # noqa: PLC0415

    register_library(app)
    register_audit(app)
    register_govern(app)
    register_experiences(app)
    register_store(app)
    for command in (serve, db_upgrade):
        command(app)


def serve(app: typer.Typer) -> None:
    """Add `sagebook serve`."""

    @app.command("serve", epilog="Example: sagebook serve --port 8321")
    def serve_command(
        db: Db = None,
        host: Annotated[str | None, typer.Option(help="Address to listen on; default 127.0.0.1.")] = None,
        port: Annotated[int | None, typer.Option(help="Port to listen on; default 8321; 0 picks a free one.")] = None,
    ) -> None:
        """Serve the ledger over HTTP until it is interrupted."""
        import socket  # noqa: PLC0415

        import uvicorn  # noqa: PLC0415

        from ledger.bootstrap import build_app, configure_logging  # noqa: PLC0415

        settings = settings_with(database_url=db, host=host, port=port)
        configure_logging(settings)
        try:
            application = build_app(settings.database_url)
        except errors.LedgerError as error:
            fail(error)
        config = uvicorn.Config(
            application,
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            # Live feeds never end by themselves.
            timeout_graceful_shutdown=2,
        )
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            listening = socket.create_server((settings.host, settings.port), family=family, backlog=config.backlog)
        except OSError as error:
            fail(errors.AddressUnavailableError(settings.host, settings.port, _why(error)))
        # Answers go out in two writes; without this each of them waits 40 ms for the reader's delayed acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in str(host) else host
        try:
            application.state.ledger.hold(f"http://{shown}:{port}")
        except errors.LedgerError as error:
            fail(error)
        typer.echo(f"ledger on http://{shown}:{port}, database {_shown(settings.database_url)}", err=True)
        uvicorn.Server(config).run(sockets=[listening])


def db_upgrade(app: typer.Typer) -> None:
    """Add `sagebook db upgrade`."""
    group = typer.Typer(no_args_is_help=True, help="The database's schema.")
    app.add_typer(group, name="db")

    @group.command("upgrade", epilog="Example: sagebook db upgrade --db postgresql+psycopg://…")
    def upgrade_command(db: Db = None) -> None:
        """Bring the database to this version's schema."""
        from ledger.bootstrap import configure_logging, upgrade_database  # noqa: PLC0415

        settings = settings_with(database_url=db)
        configure_logging(settings)
        try:
            typer.echo(f"schema {upgrade_database(settings.database_url)}", err=True)
        except errors.LedgerError as error:
            fail(error)

    @group.command("status", epilog="Example: sagebook db status --json")
    def status_command(db: Db = None, as_json: AsJson = False) -> None:
        """Show the database's schema and this version's."""
        from ledger.bootstrap import configure_logging, schema_of  # noqa: PLC0415

        settings = settings_with(database_url=db)
        configure_logging(settings)
        try:
            found, wanted = schema_of(settings.database_url)
        except errors.LedgerError as error:
            fail(error)
        facts = {"database": _shown(settings.database_url), "schema": found, "wanted": wanted}
        if as_json:
            show(facts)
        else:
            typer.echo("\n".join(f"{k}: {v}" for k, v in facts.items()))

    from ledger.cli_store import db_downgrade  # noqa: PLC0415 - it imports this module

    db_downgrade(group)


def _why(error: OSError) -> str:
    """The system's words alone; a name that does not resolve has no number of the system's."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)


def _shown(url: str) -> str:
    """A database URL without its password."""
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", url)


def lines_of(path: Path) -> Iterator[bytes]:
    """Lines of a file, or of standard input for `-`. Raises before the first is asked for, while nothing is sent."""
    if str(path) == "-":
        return iter(sys.stdin.buffer)
    try:
        path.open("rb").close()
    except OSError as error:
        raise errors.InvalidInputError(f"the trace {str(path)!r} can not be read: {error}") from None
    return _read(path)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def text_of(path: Path) -> str:
    """The text in a file; ends the command where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        typer.echo(f"sagebook: {path} can not be read: {error}", err=True)
        raise typer.Exit(2) from None


def downgrade(url: str, revision: str, sure: Callable[[list[str]], bool]) -> bool:
    """Bring a database back to an earlier schema once `sure` said yes to what is lost."""
    from ledger.bootstrap import downgrade_database  # noqa: PLC0415 - `--help` needs none

    return downgrade_database(url, revision, sure)


def configure_logging() -> None:
    """Log as the settings say."""
    from ledger.bootstrap import configure_logging as configure  # noqa: PLC0415 - `--help` needs none

    configure(settings_with())
