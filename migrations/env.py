"""Alembic's entry: run the revisions in the transaction of `memory_app.db.migrate`."""

from __future__ import annotations

from alembic import context

from memory_app.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=context.config.attributes["schema"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
