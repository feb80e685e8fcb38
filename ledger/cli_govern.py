"""`sagebook diff|costs|evidence|invalidate|reinstate|supersede|conflict`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ledger import cli
from ledger.cli_library import table

if TYPE_CHECKING:
    from ledger import wire

Reason = Annotated[str, typer.Option("--reason", help="Why; it is recorded.", show_default=False)]
Subject = Annotated[
    str, typer.Argument(help="stage:ID, task:ID, or candidate:SHA256 of a source or an artefact.", show_default=False)
]


def _cells(pair: tuple[Any, Any]) -> str:
    shown = [f"{v:.4f}" if isinstance(v, float) else "-" if v is None else str(v) for v in pair]
    return shown[0] if shown[0] == shown[1] else " -> ".join(shown)


def register_govern(app: typer.Typer) -> None:
    """Add the commands of those who look after a library."""
    _register_reports(app)
    _register_reversal(app)
    _register_conflicts(app)


def _register_reports(app: typer.Typer) -> None:
    @app.command("diff", epilog="Example: sagebook diff team 100 200")
    def diff(
        library: cli.Library,
        start: Annotated[str, typer.Argument(help="A sequence or a time (RFC 3339).", show_default=False)],
        end: Annotated[str | None, typer.Argument(help="A sequence or a time; default: now.")] = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Show what changed between two points in values, residents and rules, and which events did it."""
        with cli.client(db, server) as ledger:
            found = ledger.diff(library, start, end)
            if as_json:
                cli.show(found)
                return
            typer.echo(f"{library}: sequence {found.start} -> {found.end}; {len(found.changes)} experiences changed")
            typer.echo(
                f"admitted: {', '.join(found.admitted) or 'none'}; evicted: {', '.join(found.evicted) or 'none'}"
            )
            for told in found.reversals:
                typer.echo(
                    f"[{told.sequence}] {told.what} {told.subject} by {told.actor}: {told.reason} "
                    f"({', '.join(told.stages) or 'no stage'})"
                )
            for item in found.changes:
                marks = [f"value {_cells(item.value)}", f"resident {_cells(item.resident)}"]
                marks += ["rule changed"] if item.rule else []
                marks += ["text changed"] if item.text_changed and item.value[0] is not None else []
                marks += ["retired"] if item.retired[1] and not item.retired[0] else []
                typer.echo(f"{item.experience}: {'; '.join(marks)}  {item.events}")

    @app.command("costs", epilog="Example: sagebook costs team --by operator")
    def costs(
        library: cli.Library,
        by: Annotated[str, typer.Option("--by", help="library, operator, task, stage, round or model.")] = "operator",
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Show tokens and seconds by group, and what each rule cost and brought."""
        with cli.client(db, server) as ledger:
            found = ledger.costs(library, by=by)
            if as_json:
                cli.show(found)
                return
            table(
                (by, "model s", "compile s", "device s", "upkeep s", "tokens in", "tokens out"),
                [
                    (
                        g.group,
                        g.model_seconds,
                        g.compile_seconds,
                        g.device_seconds,
                        g.upkeep_seconds,
                        g.input_tokens,
                        g.output_tokens,
                    )
                    for g in found.groups
                ],
            )
            _rules(found)

    @app.command("evidence", epilog="Example: sagebook evidence team")
    def evidence(
        library: cli.Library, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False
    ) -> None:
        """Show hold-out evidence: each rule's measured uplift with its 95 % interval."""
        with cli.client(db, server) as ledger:
            found = ledger.evidence(library)
            if as_json:
                cli.show(found)
                return
            typer.echo(f"hold-out rate {found.rate}", err=True)
            table(
                ("rule", "with it", "without", "uplift", "low", "high", "verdict"),
                [(u.experience, u.presented, u.withheld, u.difference, u.low, u.high, u.verdict) for u in found.rules],
            )


def _rules(found: wire.Costs) -> None:
    if found.rules:
        typer.echo("")
        table(
            ("rule", "presented", "used", "context tokens", "distill tokens", "distill s", "credit", "uplift"),
            [
                (
                    r.experience,
                    r.presented,
                    r.used,
                    r.context_tokens,
                    r.distilled_tokens,
                    r.distilled_seconds,
                    r.credit,
                    r.uplift,
                )
                for r in found.rules
            ],
        )


def _told(done: wire.Reversal) -> None:
    typer.echo(f"[{done.sequence}] stages: {', '.join(done.stages)}")
    typer.echo(f"moved: {', '.join(done.moved) or 'none'}")
    typer.echo(f"admitted: {', '.join(done.admitted) or 'none'}; evicted: {', '.join(done.evicted) or 'none'}")


def _register_reversal(app: typer.Typer) -> None:
    @app.command(
        "invalidate",
        epilog="Example: sagebook invalidate team stage:softmax-7-optimization --reason 'replays an answer'",
    )
    def invalidate(
        library: cli.Library,
        subject: Subject,
        reason: Reason,
        by_judge: Annotated[bool, typer.Option("--by-judge", help="The judge withdrew it, not a person.")] = False,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Withdraw the verdicts of a stage, a task, or all that rests on a candidate; credit is taken back."""
        with cli.client(db, server) as ledger:
            by: Literal["person", "judge"] = "judge" if by_judge else "person"
            with cli.busy("reckoning without it") as tell:
                done = ledger.invalidate(library, subject, reason, by=by, tell=tell)
            cli.show(done) if as_json else _told(done)

    @app.command(
        "reinstate", epilog="Example: sagebook reinstate team stage:softmax.o1 --reason 'the finding was wrong'"
    )
    def reinstate(
        library: cli.Library,
        subject: Subject,
        reason: Reason,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Reverse a reversal: the verdicts count again."""
        with cli.client(db, server) as ledger:
            with cli.busy("reckoning with it") as tell:
                done = ledger.reinstate(library, subject, reason, tell=tell)
            cli.show(done) if as_json else _told(done)


def _register_conflicts(app: typer.Typer) -> None:
    @app.command(
        "supersede", epilog="Example: sagebook supersede team old-rule --by new-rule --reason 'covers tails too'"
    )
    def supersede(
        library: cli.Library,
        experience: Annotated[str, typer.Argument(help="The older experience.", show_default=False)],
        by: Annotated[str, typer.Option("--by", help="The newer experience.", show_default=False)],
        reason: Reason,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Put a newer experience in the place of an older one."""
        with cli.client(db, server) as ledger:
            done = ledger.supersede(library, experience, by, reason)
            if as_json:
                cli.show(done)

    group = typer.Typer(no_args_is_help=True, help="Rules that contradict each other.")
    app.add_typer(group, name="conflict")

    @group.command("record", epilog="Example: sagebook conflict record team rule-a rule-b --reason 'opposite flags'")
    def record(
        library: cli.Library,
        first: Annotated[str, typer.Argument(show_default=False)],
        second: Annotated[str, typer.Argument(show_default=False)],
        reason: Reason,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Link two experiences; from here on they are never resident together."""
        from ledger import wire  # noqa: PLC0415

        with cli.client(db, server) as ledger:
            new = wire.NewConflict(
                conflict=f"conflict-{uuid.uuid4().hex[:12]}", first=first, second=second, reason=reason
            )
            made = ledger.record_conflict(library, new)
            cli.show(made) if as_json else typer.echo(made.conflict)

    @group.command(
        "resolve",
        epilog="Example: sagebook conflict resolve team conflict-0a1b2c3d4e5f --loser rule-b --reason 'measured'",
    )
    def resolve(
        library: cli.Library,
        conflict: Annotated[str, typer.Argument(show_default=False)],
        reason: Reason,
        loser: Annotated[
            str | None, typer.Option("--loser", help="It stays out; without one there was no conflict.")
        ] = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Settle a conflict."""
        with cli.client(db, server) as ledger:
            made = ledger.resolve_conflict(library, conflict, loser=loser, reason=reason)
            if as_json:
                cli.show(made)

    @group.command("list", epilog="Example: sagebook conflict list team")
    def list_(library: cli.Library, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False) -> None:
        """List conflicts, open and settled."""
        with cli.client(db, server) as ledger:
            items = ledger.conflicts(library)
            if as_json:
                cli.show([item.model_dump(mode="json") for item in items])
            else:
                table(
                    ("conflict", "first", "second", "state", "loser", "reason"),
                    [
                        (c.conflict, c.first, c.second, "open" if c.open else "settled", c.loser, c.reason)
                        for c in items
                    ],
                )
