"""`sagebook checkpoint|prove|verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ledger import cli

Kept = Annotated[
    list[Path] | None,
    typer.Option("--checkpoint", help="A file with a checkpoint kept from earlier; may be given several times."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Verifier text of the key that signed them, or a file of it; default: as told."),
]


def register_store(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (_checkpoint, _prove, _verify):
        command(app)


def _checkpoint(app: typer.Typer) -> None:
    @app.command("checkpoint", epilog="Example: sagebook checkpoint team > team.checkpoint")
    def checkpoint(
        library: cli.Library, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False
    ) -> None:
        """Sign the log as it is, and print the checkpoint: kept elsewhere, it shows later whether the log only grew."""
        with cli.client(db, server) as ledger:
            made = ledger.checkpoint(library)
            if as_json:
                cli.show(made)
                return
            typer.echo(made.note, nl=False)
            typer.echo(f"key: {made.key}", err=True)


def _prove(app: typer.Typer) -> None:
    @app.command("prove", epilog="Example: sagebook prove team 42 --checkpoint team.checkpoint > proof.json")
    def prove(
        library: cli.Library,
        sequence: Annotated[int | None, typer.Argument(help="The record to prove.", min=1)] = None,
        since: Annotated[
            Path | None,
            typer.Option("--checkpoint", help="A checkpoint kept from earlier: prove that the log extends it."),
        ] = None,
        db: cli.Db = None,
        server: cli.Server = None,
    ) -> None:
        """Print a bundle of proofs against a checkpoint signed now, which docs/verify_bundle.py checks by itself."""
        note = None if since is None else cli.text_of(since)
        with cli.client(db, server) as ledger:
            typer.echo(json.dumps(ledger.prove(library, sequence, since=note), indent=1, ensure_ascii=False))


def _verify(app: typer.Typer) -> None:
    @app.command("verify", epilog="Example: sagebook verify team --checkpoint team.checkpoint")
    def verify(
        library: cli.Library,
        kept: Kept = None,
        key: Key = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Check every stored record against the chain and the checkpoints; exit code 7 where one does not hold."""
        notes = [cli.text_of(path) for path in kept or []]
        if key is not None and "+" not in key:
            key = cli.text_of(Path(key)).strip()
        with cli.client(db, server) as ledger:
            verdict = ledger.verify(library, checkpoints=notes, key=key)
            if as_json:
                cli.show(verdict)
            elif verdict.ok:
                typer.echo(f"clean: {verdict.events} events, head {verdict.head}")
            else:
                typer.echo(f"not clean at sequence {verdict.bad_sequence}: {verdict.reason}")
            if not verdict.ok:
                raise typer.Exit(7)
