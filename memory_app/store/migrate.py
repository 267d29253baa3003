"""Bring a database to the newest schema, as its owner."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

import migrations
from memory_app.store.db import translated

MIGRATIONS = Path(migrations.__file__).parent

ADVISORY_LOCK = 0x6D656D6F7279
"""Key of the advisory lock that migrators queue on ("memory" in ASCII)."""


def upgrade(owner_url: str, app_url: str) -> str:
    """Migrate and give the application's role the password that ``app_url`` carries; the new revision.

    Several at once queue on an advisory lock. Raises `StoreUnavailable` when the server is away.
    """
    config = _config()
    with translated(), create_engine(owner_url, poolclass=NullPool).connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
        password = make_url(app_url).password
        if password:
            statement = sql.SQL("ALTER ROLE memory_app PASSWORD {}").format(sql.Literal(password))
            # Under the migrators' lock, as Postgres refuses two changes of a role at the same moment.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            connection.exec_driver_sql(statement.as_string())
            connection.commit()
    return newest()


def newest() -> str:
    """The revision this code expects."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current(owner_url: str) -> str | None:
    """The revision a database has, or None when it was never migrated."""
    with translated(), create_engine(owner_url, poolclass=NullPool).connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
