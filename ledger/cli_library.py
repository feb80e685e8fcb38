"""`sagebook library|import|state|events|experience|rule`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ledger import cli
from ledger.policy_file import policy_argument

Policy = Annotated[
    str | None,
    typer.Option(
        "--policy", help="A preset (sage, paper, value-memory, static-rag, …) or a JSON or TOML file of policy fields."
    ),
]


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns for a person; numbers to the right."""
    cells = [[f"{c:.4f}" if isinstance(c, float) else "-" if c is None else str(c) for c in row] for row in rows]
    widths = [max(len(h), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(headers)]
    numeric = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(headers))]
    for line in [list(headers), *cells]:
        parts = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(line, widths, numeric, strict=True)]
        typer.echo("  ".join(parts).rstrip())


def register_library(app: typer.Typer) -> None:
    """Add the commands on a library and its contents."""
    library = typer.Typer(no_args_is_help=True, help="Create, list and show libraries.")
    app.add_typer(library, name="library")

    @library.command("create", epilog="Example: sagebook library create team --policy sage")
    def create(
        name: cli.Library,
        policy: Policy = None,
        title: Annotated[str, typer.Option(help="A line on what it is for.")] = "",
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Create a library under a policy."""
        with cli.client(db, server) as ledger:
            made = ledger.create_library(name, policy=policy_argument(policy or "sage"), title=title)
            if as_json:
                cli.show(made)
            else:
                typer.echo(f"library {made.library}, policy {made.policy_name}", err=True)

    @library.command("list", epilog="Example: sagebook library list --json")
    def list_(db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False) -> None:
        """List all libraries."""
        with cli.client(db, server) as ledger:
            items = ledger.libraries()
            if as_json:
                cli.show([item.model_dump(mode="json") for item in items])
            else:
                table(
                    ("library", "policy", "sequence", "experiences", "residents", "tokens", "stages"),
                    [
                        (
                            i.library,
                            i.policy_name,
                            i.sequence,
                            i.experiences,
                            i.residents,
                            i.resident_tokens,
                            i.scored_stages,
                        )
                        for i in items
                    ],
                )

    @library.command("show", epilog="Example: sagebook library show team")
    def show(name: cli.Library, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False) -> None:
        """Show one library and its policy."""
        with cli.client(db, server) as ledger:
            item = ledger.library(name)
            if as_json:
                cli.show(item)
                return
            facts = item.model_dump()
            policy = facts.pop("policy")
            for key, value in [*facts.items(), *((f"policy.{k}", v) for k, v in policy.items())]:
                typer.echo(f"{key}: {value}")

    _register_policy(library)
    _register_import(app)
    _register_export(app)
    _register_reading(app)


def _register_policy(library: typer.Typer) -> None:
    @library.command("policy", epilog="Example: sagebook library policy team --set paper --reason 'as published'")
    def policy_(
        name: cli.Library,
        change: Annotated[
            str | None,
            typer.Option("--set", help="A preset, or a JSON or TOML file of fields over the policy that holds."),
        ] = None,
        reason: Annotated[str, typer.Option(help="Why it is changed.")] = "",
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Show a library's policy, or put another in force: residents follow at once, values at their next update."""
        if change is not None and not reason.strip():
            raise typer.BadParameter("say why, with --reason")
        with cli.client(db, server) as ledger:
            found = (
                ledger.library(name) if change is None else ledger.change_policy(name, policy_argument(change), reason)
            )
            if as_json:
                cli.show({"policy_name": found.policy_name, "policy": found.policy})
            else:
                typer.echo(f"policy: {found.policy_name}")
                for field, value in found.policy.items():
                    typer.echo(f"{field}: {value}")


def _register_import(app: typer.Typer) -> None:
    @app.command("import", epilog="Example: sagebook import team trace.jsonl --policy paper")
    def import_(
        library: cli.Library,
        trace: Annotated[Path, typer.Argument(help="Trace as JSON lines; - reads standard input.", show_default=False)],
        policy: Policy = None,
        resume: Annotated[bool, typer.Option("--resume", help="Pass over records that the library holds.")] = False,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Import a trace into a library, new or not. A refused record names its line; those before it stay.

        A new library gets the policy that is given, else the trace's own, else sage; one that is there must have it.
        """
        if str(trace) != "-" and not trace.exists():
            typer.echo(f"sagebook: there is no trace {str(trace)!r}", err=True)
            raise typer.Exit(3)
        with cli.client(db, server) as ledger:
            wanted = policy_argument(policy) if policy else None
            with cli.busy(f"importing into {library}"):
                done = ledger.import_trace(library, cli.lines_of(trace), resume=resume, policy=wanted, create=True)
            if as_json:
                cli.show(done)
            else:
                typer.echo(
                    f"{done.records} records, {done.events} events; {library} is at sequence {done.sequence}", err=True
                )


def _register_export(app: typer.Typer) -> None:
    @app.command("export", epilog="Example: sagebook export team --trace > team.jsonl")
    def export(
        library: cli.Library,
        trace: Annotated[bool, typer.Option("--trace", help="As a trace (JSON lines).")] = False,
        db: cli.Db = None,
        server: cli.Server = None,
    ) -> None:
        """Write a library to standard output as a trace that imports to the same state."""
        if not trace:
            raise typer.BadParameter("say in which form: --trace")
        with cli.client(db, server) as ledger:
            typer.echo(ledger.export_trace(library).decode(), nl=False)


def _register_reading(app: typer.Typer) -> None:
    @app.command("state", epilog="Example: sagebook state team --at 120 --json")
    def state(
        library: cli.Library,
        at: Annotated[str | None, typer.Option("--at", help="As of this sequence or time (RFC 3339).")] = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Show values, frequencies and residents."""
        with cli.client(db, server) as ledger:
            now = ledger.state(library, at=at)
            if as_json:
                cli.show(now)
                return
            typer.echo(f"{now.library} at sequence {now.sequence}", err=True)
            ordered = sorted(now.experiences.items(), key=lambda item: (not item[1].resident, -item[1].value, item[0]))
            table(
                ("experience", "value", "retrievals", "adoptions", "operators", "frequency", "resident", "tokens"),
                [
                    (
                        name,
                        e.value,
                        e.retrievals,
                        e.adoptions,
                        len(e.operators),
                        e.frequency,
                        "retired" if e.retired else "resident" if e.resident else "",
                        e.tokens,
                    )
                    for name, e in ordered
                ],
            )

    @app.command("events", epilog="Example: sagebook events team --after 100 --json")
    def events(
        library: cli.Library,
        after: Annotated[int, typer.Option("--after", help="Sequence after which to read.", min=0)] = 0,
        limit: Annotated[int | None, typer.Option("--limit", help="At most so many.", min=1)] = None,
        follow: Annotated[
            bool, typer.Option("--follow", "-f", help="Stay, and show each event as it is stored.")
        ] = False,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Show the log, one event a line; with --json as JSON lines."""
        with cli.client(db, server) as ledger:
            ledger.library(library)
            read = ledger.follow if follow else ledger.events
            for count, event in enumerate(read(library, after=after)):
                if limit is not None and count >= limit:
                    return
                if as_json:
                    typer.echo(event.model_dump_json(by_alias=True))
                else:
                    about = event.stage or event.task or event.payload.get("experience", "")
                    typer.echo(f"{event.sequence:>6}  {event.time}  {event.type:<30} {event.actor:<12} {about}")
