"""`sagebook`: one command composed of what each house offers under the entry points `sagebook.commands`."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from ledger.version import VERSION

GROUP = "sagebook.commands"


def build() -> typer.Typer:
    """All commands. A house whose package is not installed is left out."""
    app = typer.Typer(
        name="sagebook",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="An experience ledger for agents that write accelerator kernels: what was tried, what it brought, "
        "and why a rule stays.",
    )

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    ) -> None:
        if version:
            typer.echo(VERSION)
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for point in sorted(
        entry_points(group=GROUP),
        key=lambda p: ("ledger", "device", "agent").index(p.name) if p.name in {"ledger", "device", "agent"} else 9,
    ):
        point.load()(app)
    return app


def main() -> None:
    """Entry point of the `sagebook` script."""
    try:
        build()()
    except BrokenPipeError:
        # The reader (head, less) has gone; that is not a failure of ours.
        sys.stderr.close()
        sys.exit(0)
