"""Alembic's environment. `ledger.store.migrate` runs it on a connection whose transaction it holds."""

from __future__ import annotations

from alembic import context

from ledger.store.schema import metadata


def run() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        # SQLite rolls DDL back too, once BEGIN is ours and not the driver's.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
