"""`sagebook experience list|show|record|amend|retire` and `sagebook retrieve`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger import cli, errors
from ledger.cli_library import table

if TYPE_CHECKING:
    from ledger import wire

Name = Annotated[str, typer.Argument(metavar="EXPERIENCE", help="Experience.", show_default=False)]
Reason = Annotated[str, typer.Option(help="Why.", show_default=False)]
Body = Annotated[
    Path, typer.Option("--body", help="File with its Markdown text; - reads standard input.", show_default=False)
]
Title = Annotated[str, typer.Option("--title", help="One line that says what it is about.", show_default=False)]
Many = list[str]
Families = Annotated[Many, typer.Option("--family", help="Operator family that it applies to; repeatable.")]
Dtypes = Annotated[Many, typer.Option("--dtype", help="Element type; repeatable.")]
Languages = Annotated[Many, typer.Option("--language", help="Device language; repeatable.")]
Chips = Annotated[Many, typer.Option("--chip", help="Chip; repeatable.")]
Toolkit = Annotated[str, typer.Option("--toolkit", help="Range of toolkit versions, such as '>=8.3,<9'.")]
Shapes = Annotated[Many, typer.Option("--shape", help="Bounds of a size, such as 'last_axis=32..1024'; repeatable.")]
_SHAPE = re.compile(r"([^=]+)=(\d*)\.\.(\d*)")


def _shape(given: str) -> dict[str, Any]:
    found = _SHAPE.fullmatch(given)
    if found is None:
        raise errors.InvalidInputError(
            f"--shape {given!r} can not be read; write it as last_axis=32..1024", shape=given
        )
    size, least, most = found.groups()
    return {"size": size, "least": int(least) if least else None, "most": int(most) if most else None}


def _conditions(
    families: Many, dtypes: Many, languages: Many, chips: Many, toolkit: str, shapes: Many
) -> wire.Conditions | None:
    """None: nothing was said."""
    from ledger.wire import Conditions  # noqa: PLC0415 - `--help` needs none
    from ledger.words import made  # noqa: PLC0415

    if not (families or dtypes or languages or chips or toolkit or shapes):
        return None
    bounds = [_shape(item) for item in shapes]
    return made(
        Conditions,
        families=families,
        dtypes=dtypes,
        languages=languages,
        chips=chips,
        toolkit=toolkit,
        shapes=bounds,
    )


def _text(body: Path) -> str:
    return typer.get_text_stream("stdin").read() if str(body) == "-" else cli.text_of(body)


def _told(item: wire.Experience) -> None:
    typer.echo(f"{item.experience}: {item.title}", err=True)


def register_experiences(app: typer.Typer) -> None:
    """Add the commands on experiences."""
    experience = typer.Typer(no_args_is_help=True, help="Record, list, show, amend and retire experiences.")
    app.add_typer(experience, name="experience")
    _register_list(experience)
    _register_writing(experience)
    _register_retrieve(app)


def _register_list(experience: typer.Typer) -> None:
    @experience.command("list", epilog="Example: sagebook experience list team --stale --chip 910B --toolkit 8.5.0")
    def list_(
        library: cli.Library,
        resident: Annotated[
            bool | None, typer.Option("--resident/--cold", help="Rules in the context, or not.")
        ] = None,
        stale: Annotated[
            bool | None, typer.Option("--stale/--fresh", help="Needs revalidation (there, with --chip, --toolkit).")
        ] = None,
        conflict: Annotated[bool | None, typer.Option("--conflict/--no-conflict", help="In an open conflict.")] = None,
        superseded: Annotated[bool | None, typer.Option("--superseded/--not-superseded", help="Replaced.")] = None,
        retired: Annotated[
            bool | None, typer.Option("--retired/--live", help="Superseded ones are retired, too.")
        ] = None,
        awaiting: Annotated[
            bool | None, typer.Option("--awaiting/--not-awaiting", help="Passes the gate and has no rule yet.")
        ] = None,
        family: Annotated[str, typer.Option(help="Applies to this operator family.")] = "",
        dtype: Annotated[str, typer.Option(help="Applies to this element type.")] = "",
        language: Annotated[str, typer.Option(help="Applies to this device language.")] = "",
        chip: Annotated[str, typer.Option(help="Applies to this chip.")] = "",
        toolkit: Annotated[str, typer.Option(help="Applies to this toolkit version.")] = "",
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """List experiences, all or those that are asked for."""
        with cli.client(db, server) as ledger:
            found = ledger.experiences(
                library,
                resident=resident,
                stale=stale,
                conflict=conflict,
                superseded=superseded,
                retired=retired,
                awaiting_distillation=awaiting,
                family=family,
                dtype=dtype,
                language=language,
                chip=chip,
                toolkit=toolkit,
            )
            if as_json:
                cli.show([item.model_dump(mode="json") for item in found])
                return
            table(
                ("experience", "value", "adoptions", "state", "title"),
                [(e.experience, e.value, e.adoptions, ", ".join(_state(e)), e.title) for e in found],
            )

    @experience.command("show", epilog="Example: sagebook experience show team tile-the-last-axis")
    def show(
        library: cli.Library, name: Name, db: cli.Db = None, server: cli.Server = None, as_json: cli.AsJson = False
    ) -> None:
        """Show one experience: its text, its rule, what it applies to and its numbers."""
        with cli.client(db, server) as ledger:
            found = ledger.experience(library, name)
            if as_json:
                cli.show(found)
                return
            facts = found.model_dump(mode="json", exclude={"body", "rule", "conditions", "source"})
            conditions = found.conditions.model_dump(exclude_defaults=True)
            for field, value in {**facts, **{f"if {k}": v for k, v in conditions.items()}}.items():
                if value not in (None, [], False):
                    typer.echo(f"{field}: {value}")
            typer.echo(f"\n{'(erased)' if found.body is None else found.body}")
            if found.rule is not None:
                typer.echo(f"\nrule:\n{found.rule}")


def _state(item: wire.Experience) -> list[str]:
    told = {
        "resident": item.resident,
        f"superseded by {item.superseded_by}": item.superseded_by is not None,
        "retired": item.retired and item.superseded_by is None,
        "needs revalidation": bool(item.needs_revalidation),
        "awaiting distillation": item.awaiting_distillation,
    }
    return [word for word, holds in told.items() if holds]


def _register_writing(experience: typer.Typer) -> None:
    @experience.command(
        "record", epilog="Example: sagebook experience record team tail-block --title 'Pad the tail' --body tail.md"
    )
    def record(
        library: cli.Library,
        name: Name,
        title: Title,
        body: Body,
        family: Families = [],  # noqa: B006 - typer copies it
        dtype: Dtypes = [],  # noqa: B006
        language: Languages = [],  # noqa: B006
        chip: Chips = [],  # noqa: B006
        toolkit: Toolkit = "",
        shape: Shapes = [],  # noqa: B006
        stage: Annotated[
            Many, typer.Option("--stage", help="correctness or optimization; repeatable; default both.")
        ] = [],  # noqa: B006
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Record an experience of a person's: it can be retrieved from the next call on."""
        from ledger.wire import Conditions, NewExperience  # noqa: PLC0415 - `--help` needs none
        from ledger.words import made  # noqa: PLC0415

        with cli.client(db, server) as ledger:
            new = made(
                NewExperience,
                experience=name,
                title=title,
                body=_text(body),
                stages=stage or ("correctness", "optimization"),
                conditions=_conditions(family, dtype, language, chip, toolkit, shape) or Conditions(),
            )
            done = ledger.record_experience(library, new)
            cli.show(done) if as_json else _told(done)

    @experience.command(
        "amend", epilog="Example: sagebook experience amend team tail-block --dtype float16 --reason 'half only'"
    )
    def amend(
        library: cli.Library,
        name: Name,
        reason: Reason,
        title: Annotated[str | None, typer.Option("--title", help="Another title.")] = None,
        body: Annotated[Path | None, typer.Option("--body", help="File with another text.")] = None,
        family: Families = [],  # noqa: B006 - typer copies it
        dtype: Dtypes = [],  # noqa: B006
        language: Languages = [],  # noqa: B006
        chip: Chips = [],  # noqa: B006
        toolkit: Toolkit = "",
        shape: Shapes = [],  # noqa: B006
        unconditional: Annotated[bool, typer.Option("--unconditional", help="Drop all conditions.")] = False,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Change its title, text or conditions (all of them at once); value and history stay."""
        from ledger.wire import AmendExperience, Conditions  # noqa: PLC0415 - `--help` needs none
        from ledger.words import made  # noqa: PLC0415

        with cli.client(db, server) as ledger:
            conditions = _conditions(family, dtype, language, chip, toolkit, shape)
            if unconditional:
                conditions = Conditions()
            now = ledger.experience(library, name)
            change = made(
                AmendExperience,
                title=now.title if title is None else title,
                body=(now.body or "") if body is None else _text(body),
                reason=reason,
                conditions=conditions,
            )
            done = ledger.amend_experience(library, name, change)
            cli.show(done) if as_json else _told(done)

    @experience.command("retire", epilog="Example: sagebook experience retire team tail-block --reason 'fixed in 8.5'")
    def retire(
        library: cli.Library,
        name: Name,
        reason: Reason,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Offer it no more; its history stays."""
        with cli.client(db, server) as ledger:
            done = ledger.retire_experience(library, name, reason)
            cli.show(done) if as_json else _told(done)


def _register_retrieve(app: typer.Typer) -> None:
    @app.command("retrieve", epilog="Example: sagebook retrieve team search-0.gelu.c1 'tail block DataCopyPad' --fresh")
    def retrieve(
        library: cli.Library,
        stage: Annotated[str, typer.Argument(help="Open stage that the answer is offered in.", show_default=False)],
        query: Annotated[str, typer.Argument(help="What is looked for.", show_default=False)],
        limit: Annotated[int | None, typer.Option("--limit", help="At most so many.", min=1, max=1000)] = None,
        fresh: Annotated[bool, typer.Option("--fresh", help="Leave out what needs revalidation there.")] = False,
        db: cli.Db = None,
        server: cli.Server = None,
        as_json: cli.AsJson = False,
    ) -> None:
        """Retrieve experiences in an open stage; each that is offered needs a decision before the stage is scored."""
        with cli.client(db, server) as ledger:
            found = ledger.retrieve(library, stage, query, limit=limit, stale=not fresh)
            if as_json:
                cli.show([item.model_dump(mode="json") for item in found])
                return
            table(
                ("experience", "score", "relevance", "value", "state", "title"),
                [
                    (
                        e.experience,
                        e.score,
                        e.relevance,
                        e.value,
                        "needs revalidation" if e.needs_revalidation else "",
                        e.title,
                    )
                    for e in found
                ],
            )
