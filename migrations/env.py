"""Alembic's entry: one transaction, one migrator at a time, and no waiting for ever on a lock."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

from memory_app.store.migrate import ADVISORY_LOCK
from memory_app.store.tables import metadata


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=False)
    with context.begin_transaction():
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        connection.execute(text("SET LOCAL statement_timeout = '10min'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        context.run_migrations()


run(context.config.attributes["connection"])
