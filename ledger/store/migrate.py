"""Schema revisions of a database: which one it has, and how it gets to the newest."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, text

from ledger.errors import DowngradeRefusedError, InvalidInputError, SchemaOutdatedError, SchemaUnknownError
from ledger.store.engine import WRITE
from ledger.store.schema import ADDED, REVISIONS
from ledger.store.writer_lock import WriterLock

if TYPE_CHECKING:
    from sqlalchemy import Engine

_LOCK = 0x5A6EB00C
"""Advisory lock under which one process at a time migrates a PostgreSQL database."""


def head() -> str:
    """Name the revision that this version needs."""
    return REVISIONS[-1]


def current(engine: Engine) -> str | None:
    """Find the revision that a database has; None where it was never migrated."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return found


def upgrade(engine: Engine) -> None:
    """Bring a database to the newest revision, in one transaction. Safe when several processes do so at once.

    Raises SchemaUnknownError where the database was made by a newer version.
    """
    _refuse_unknown(engine, current(engine), REVISIONS)
    _migrate(engine, lambda config: _command().upgrade(config, "head"))


def lost(engine: Engine, revision: str) -> list[str]:
    """What a database loses when it goes back to an earlier revision, newest first, a line each.

    Raises InvalidInputError for a revision that there is not, SchemaUnknownError where the database's is unknown,
    DowngradeRefusedError where the revision is not older than the database's.
    """
    found = current(engine)
    _refuse_unknown(engine, found, REVISIONS)
    if revision not in REVISIONS:
        raise InvalidInputError(f"there is no schema {revision!r}; this version knows {', '.join(REVISIONS)}")
    if found is None or REVISIONS.index(revision) >= REVISIONS.index(found):
        raise DowngradeRefusedError(_shown(engine), found, revision)
    between = REVISIONS[REVISIONS.index(revision) + 1 : REVISIONS.index(found) + 1]
    return [f"lost with schema {name}: {ADDED[name]}" for name in reversed(between)]


def downgrade(engine: Engine, revision: str) -> None:
    """Bring a database back to an earlier revision, for an older version. What only newer ones keep is lost.

    Raises as `lost` does, and WriterHeldError where a service has the SQLite file.
    """
    lost(engine, revision)
    if engine.dialect.name != "sqlite":
        _migrate(engine, lambda config: _command().downgrade(config, revision))
        return
    lock = WriterLock(Path(str(engine.url.database)))
    lock.begin()
    try:
        _migrate(engine, lambda config: _command().downgrade(config, revision))
    finally:
        lock.end()
        lock.release()


def _command() -> Any:
    from alembic import command  # noqa: PLC0415 - slow to load, and only a migration needs it

    return command


def _migrate(engine: Engine, run: Callable[[Any], None]) -> None:
    from alembic.config import Config  # noqa: PLC0415 - see above

    with resources.as_file(resources.files("migrations")) as folder, engine.connect() as plain:
        connection = plain.execution_options(**{WRITE: True})
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            config = Config()
            config.set_main_option("script_location", str(folder).replace("%", "%%"))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            run(config)


def prepare(engine: Engine, revisions: tuple[str, ...] = REVISIONS) -> None:
    """Make sure that the schema is the newest: an empty SQLite file is migrated, anything else must be so already.

    Raises SchemaOutdatedError, SchemaUnknownError.
    """
    found = current(engine)
    if found == revisions[-1]:
        return
    if found is None and engine.dialect.name == "sqlite":
        if not inspect(engine).get_table_names():
            upgrade(engine)
            return
        if current(engine) is None:  # or another process migrated it a moment ago
            raise SchemaUnknownError(_shown(engine), "of another program", revisions)
        return
    _refuse_unknown(engine, found, revisions)
    raise SchemaOutdatedError(_shown(engine), found or "none", revisions[-1])


def _refuse_unknown(engine: Engine, found: str | None, revisions: tuple[str, ...]) -> None:
    if found is not None and found not in revisions:
        raise SchemaUnknownError(_shown(engine), found, revisions)


def _shown(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
