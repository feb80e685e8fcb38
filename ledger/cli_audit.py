"""`sagebook why|rederive|verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from ledger import cli
from ledger.cli_library import Policy, table
from ledger.policy_file import policy_argument

At = Annotated[str | None, typer.Option("--at", help="As of this sequence or time (RFC 3339).")]


def register_audit(app: typer.Typer) -> None:  # noqa: C901, PLR0915 - it holds its commands
    """Add the commands of the audit."""

    @app.command("why", epilog="Example: sagebook why team doc-cheat-sheet-threads")
    def why(
        library: cli.Library,
        experience: Annotated[str, typer.Argument(help="Id of the experience.", show_default=False)],
        diff: Annotated[bool, typer.Option("--diff/--no-diff", help="Show the code differences.")] = True,
        at: At = None,
        form: Annotated[str, typer.Option("--format", help="tree, json, markdown or prov.")] = "tree",
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Say why a rule is resident or not, back to measurements and code; [numbers] are sequences of the log."""
        with cli.client(db, server) as ledger:
            with cli.busy(f"reading what bears on {experience}"):
                answer = ledger.why(library, experience, at=at)
            if as_json or form == "json":
                cli.show(answer)
            elif form == "markdown":
                from ledger.audit.markdown import why_markdown  # noqa: PLC0415

                typer.echo(why_markdown(answer), nl=False)
            elif form == "prov":
                from ledger.audit.provenance import why_prov  # noqa: PLC0415

                typer.echo(why_prov(answer).serialize(format="json", indent=2))
            elif form == "tree":
                from ledger.audit.tree import why_lines  # noqa: PLC0415

                for line in why_lines(answer, diff=diff):
                    typer.echo(line)
            else:
                raise typer.BadParameter(f"--format is {form!r}; choose tree, json, markdown or prov")

    @app.command("why-not", epilog="Example: sagebook why-not team repair-tail")
    def why_not(
        library: cli.Library,
        experience: Annotated[str, typer.Argument(help="Id of the experience.", show_default=False)],
        at: At = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Say what keeps a rule out of the resident set, by how much, and the least change that would let it in."""
        with cli.client(db, server) as ledger:
            with cli.busy(f"reading what bears on {experience}"):
                answer = ledger.why_not(library, experience, at=at)
            if as_json:
                cli.show(answer)
                return
            from ledger.audit import words  # noqa: PLC0415

            typer.echo(answer.answer)
            for line in answer.lines:
                typer.echo(f"  {line}")
            for item in answer.conflicts:
                typer.echo(f"  conflict {words.conflict(item, experience)}")
            for move in answer.moves:
                typer.echo(f"  {words.move(move)}")

    @app.command("rederive", epilog="Example: sagebook rederive team --policy value-memory")
    def rederive(
        library: cli.Library,
        policy: Policy = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Recompute all from the facts: under the recorded policy (exit code 7 on a difference), or another one."""
        with cli.client(db, server) as ledger:
            with cli.busy(f"re-deriving {library}") as tell:
                given = None if policy is None else policy_argument(policy)
                answer = ledger.rederive(library, policy=given, tell=tell)
            if as_json:
                cli.show(answer)
            elif answer.same_policy:
                if answer.first_difference is None:
                    typer.echo(
                        f"clean: {answer.compared} derived events equal the recorded ones up to sequence "
                        f"{answer.sequence}"
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
