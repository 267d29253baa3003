"""Alembic's entry: one transaction, one migrator at a time, and no waiting for ever on a lock."""

from __future__ import annotations

from pathlib import Path

from alembic import context
from sqlalchemy import Connection, text

from memory_app.store.tables import metadata

ADVISORY_LOCK = 0x6D656D6F7279
"""Key of the advisory lock that migrators queue on ("memory" in ASCII)."""

FOLDER = Path(__file__).parent

_VECTOR_SCHEMA = text(
    """SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'"""
)


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=False)
    with context.begin_transaction():
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        connection.execute(text("SET LOCAL statement_timeout = '10min'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        schemas = ", ".join(dict.fromkeys(["public", _vector_schema(connection), "pg_temp"]))
        connection.execute(text(f"SET LOCAL search_path = {schemas}"))
        _apply(connection, "base.sql")
        context.run_migrations()
        tables = ",".join([*metadata.tables, "alembic_version"])
        connection.execute(text("SELECT set_config('memory.tables', :tables, true)"), {"tables": tables})
        _apply(connection, "access.sql")


def _vector_schema(connection: Connection) -> str:
    """Where the types of pgvector are; made in ``public`` unless they are elsewhere already."""
    schema = connection.execute(_VECTOR_SCHEMA).scalar_one_or_none()
    if schema is None:
        connection.execute(text("CREATE EXTENSION vector SCHEMA public"))
        return "public"
    return str(schema)


def _apply(connection: Connection, name: str) -> None:
    script = (FOLDER / name).read_text(encoding="utf-8")
    connection.exec_driver_sql(script.replace("%", "%%"))


run(context.config.attributes["connection"])
