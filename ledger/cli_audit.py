"""`sagebook why|rederive|verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from ledger import cli
from ledger.cli_library import Policy, table


def register_audit(app: typer.Typer) -> None:
    """Add the commands of the audit."""

    @app.command("why", epilog="Example: sagebook why team doc-cheat-sheet-threads")
    def why(
        library: cli.Library,
        experience: Annotated[str, typer.Argument(help="Id of the experience.", show_default=False)],
        diff: Annotated[bool, typer.Option("--diff/--no-diff", help="Show the code differences.")] = True,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Say why a rule is resident or not, back to measurements and code; numbers in [brackets] are sequences of the log."""
        with cli.client(db, server) as ledger:
            answer = ledger.why(library, experience)
            if as_json:
                cli.show(answer)
                return
            from ledger.render import why_lines  # noqa: PLC0415

            for line in why_lines(answer, diff=diff):
                typer.echo(line)

    @app.command("rederive", epilog="Example: sagebook rederive team --policy value-memory")
    def rederive(
        library: cli.Library,
        policy: Policy = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Recompute everything from the facts: under the recorded policy (exit code 7 on a difference), or another one."""
        with cli.client(db, server) as ledger:
            answer = ledger.rederive(library, policy=cli.policy_argument(policy))
            if as_json:
                cli.show(answer)
            elif answer.same_policy:
                if answer.first_difference is None:
                    typer.echo(
                        f"clean: {answer.compared} derived events equal the recorded ones up to sequence {answer.sequence}"
                    )
                else:
                    found = answer.first_difference
                    typer.echo(f"different from sequence {found.sequence} on")
                    typer.echo(f"  recorded: {found.recorded}\n  derived:  {found.derived}")
            else:
                typer.echo(
                    f"under {answer.policy_name}: {len(answer.residents)} residents, {answer.resident_tokens} tokens"
                )
                typer.echo(f"would enter: {', '.join(answer.would_enter) or 'none'}")
                typer.echo(f"would leave: {', '.join(answer.would_leave) or 'none'}")
                if answer.rank_correlation is not None:
                    typer.echo(f"rank correlation of values: {answer.rank_correlation:.3f}")
                table(
                    ("experience", "recorded value", "derived value", "recorded", "derived"),
                    [
                        (
                            name,
                            e.recorded_value,
                            e.value,
                            "resident" if e.recorded_resident else "",
                            "resident" if e.resident else "",
                        )
                        for name, e in sorted(answer.experiences.items(), key=lambda item: (-item[1].value, item[0]))
                    ],
                )
            if answer.first_difference is not None:
                raise typer.Exit(7)

    @app.command("verify", epilog="Example: sagebook verify team")
    def verify(library: cli.Library, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False) -> None:
        """Check every stored record against the hash chain; exit code 7 where one does not hold."""
        with cli.client(db, server) as ledger:
            verdict = ledger.verify(library)
            if as_json:
                cli.show(verdict)
            elif verdict.ok:
                typer.echo(f"clean: {verdict.events} events, head {verdict.head}")
            else:
                typer.echo(f"not clean at sequence {verdict.bad_sequence}: {verdict.reason}")
            if not verdict.ok:
                raise typer.Exit(7)
