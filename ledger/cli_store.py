"""`sagebook checkpoint|prove|verify|redact|backup|restore|copy` and `sagebook db downgrade`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ledger import cli, errors

if TYPE_CHECKING:
    from ledger.store.move import Copied, Progress

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
    for command in (_checkpoint, _prove, _verify, _redact, _backup, _restore, _copy):
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
        """Check every stored record against the chain and the checkpoints, and every blob that one names.

        Exit code 7 where one does not hold.
        """
        notes = [cli.text_of(path) for path in kept or []]
        if key is not None and "+" not in key:
            key = cli.text_of(Path(key)).strip()
        with cli.client(db, server) as ledger:
            verdict = ledger.verify(library, checkpoints=notes, key=key)
            if as_json:
                cli.show(verdict)
            elif verdict.ok:
                erased = f", {verdict.erased_blobs} erased" if verdict.erased_blobs else ""
                typer.echo(f"clean: {verdict.events} events, {verdict.blobs} blobs{erased}, head {verdict.head}")
            else:
                typer.echo(f"not clean at sequence {verdict.bad_sequence}: {verdict.reason}")
            if not verdict.ok:
                raise typer.Exit(7)


def _redact(app: typer.Typer) -> None:
    @app.command("redact", epilog="Example: sagebook redact team --experience doc-7 --reason 'names a customer'")
    def redact(
        library: cli.Library,
        reason: Annotated[str, typer.Option("--reason", help="Why; it is recorded.")],
        experience: Annotated[str | None, typer.Option("--experience", help="Erase all texts of this one.")] = None,
        blobs: Annotated[list[str] | None, typer.Option("--blob", help="Erase the blob of this SHA-256.")] = None,
        record: Annotated[int | None, typer.Option("--record", help="Erase fields of this record.", min=1)] = None,
        fields: Annotated[list[str] | None, typer.Option("--field", help="Such as payload.title or actor.")] = None,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Erase texts for good and record that it was done; hashes, proofs and values stay."""
        from ledger import wire_proofs  # noqa: PLC0415 - pydantic is slow to load

        if (record is None) != (not fields):
            raise typer.BadParameter("--record and --field go together")
        records = [wire_proofs.RedactedFields(sequence=record, fields=fields)] if record and fields else []
        given = wire_proofs.Redaction(reason=reason, experience=experience, blobs=blobs or [], records=records)
        with cli.client(db, server) as ledger:
            done = ledger.redact(library, given)
            if as_json:
                cli.show(done)
                return
            typer.echo(f"{len(done.blobs)} blobs and {len(done.records)} records redacted at {done.sequence}", err=True)
            typer.echo("backups and exports made before still hold the text; make them anew", err=True)


def _backup(app: typer.Typer) -> None:
    @app.command("backup", epilog="Example: sagebook backup ledger-2026-12-01.db")
    def backup(
        file: Annotated[Path, typer.Argument(help="The new SQLite file.", show_default=False)],
        db: cli.Db = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Copy the whole ledger into a new file, also while a service writes it, and check every chain of the copy."""
        from ledger.store import move  # noqa: PLC0415 - SQLAlchemy is slow to load

        with _copying() as progress:
            _tell(
                move.backup(cli.settings_with(database_url=db).database_url, file, progress=progress), as_json=as_json
            )


def _restore(app: typer.Typer) -> None:
    @app.command("restore", epilog="Example: sagebook restore ledger-2026-12-01.db --db sqlite:///new.db")
    def restore(
        file: Annotated[Path, typer.Argument(help="A backup.", show_default=False)],
        db: cli.Db = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Copy a backup into an empty database, SQLite or PostgreSQL, and check every chain of what arrived."""
        from ledger.store import move  # noqa: PLC0415 - see backup

        if not file.is_file():
            typer.echo(f"sagebook: there is no backup {str(file)!r}", err=True)
            raise typer.Exit(3)
        with _copying() as progress:
            target = cli.settings_with(database_url=db).database_url
            _tell(move.copy(f"sqlite:///{file}", target, progress=progress), as_json=as_json)


def _copy(app: typer.Typer) -> None:
    @app.command("copy", epilog="Example: sagebook copy sqlite:///ledger.db postgresql://ledger@host/ledger")
    def copy(
        source: Annotated[str, typer.Argument(help="URL of the database to copy.", show_default=False)],
        target: Annotated[str, typer.Argument(help="URL of an empty one.", show_default=False)],
        as_json: cli.AsJson = False,
    ) -> None:
        """Copy a ledger between databases, record for record; the schema of a new PostgreSQL is made first."""
        from ledger.store import move  # noqa: PLC0415 - see backup

        with _copying() as progress:
            _tell(move.copy(source, target, progress=progress), as_json=as_json)


def db_downgrade(group: typer.Typer) -> None:
    """Add `sagebook db downgrade`."""

    @group.command("downgrade", epilog="Example: sagebook db downgrade 0001 --db sqlite:///ledger.db --yes")
    def downgrade_command(
        revision: Annotated[str, typer.Argument(help="The older schema, as `db status` names it.", show_default=False)],
        db: cli.Db = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    ) -> None:
        """Bring the database back to an older version's schema. What only newer schemas keep is lost; events stay.

        Says what is lost and asks first. Make a backup before, and stop every service on the database.
        """

        def sure(lost: list[str]) -> bool:
            for part in lost:
                typer.echo(part, err=True)
            return yes or typer.confirm("Go back?", err=True)

        cli.configure_logging()
        try:
            done = cli.downgrade(cli.settings_with(database_url=db).database_url, revision, sure)
        except errors.LedgerError as error:
            cli.fail(error)
        typer.echo(f"schema {revision}" if done else "nothing was changed", err=True)
        if not done:
            raise typer.Exit(4)


@contextmanager
def _copying() -> Iterator[Progress]:
    """Shows what is being done once it takes long; refusals end the command."""
    cli.configure_logging()
    began = last = time.monotonic()

    def progress(what: str, done: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - began > 2.0 and now - last > 1.0:
            last = now
            typer.echo(f"{what}: {done} of {of}", err=True)

    try:
        yield progress
    except errors.LedgerError as error:
        cli.fail(error)


def _tell(found: Copied, *, as_json: bool) -> None:
    heads = {name: {"sequence": head.sequence, "hash": head.hash.hex()} for name, head in found.heads.items()}
    if as_json:
        cli.show({"libraries": heads, "events": found.events, "blobs": found.blobs})
        return
    for name, head in heads.items():
        typer.echo(f"{name}: {head['sequence']} events, head {head['hash']}")
    typer.echo(f"{found.events} events and {found.blobs} blobs, every chain holds", err=True)
