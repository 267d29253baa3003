"""Bring a database to the newest schema, as its owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

import migrations
from memory_app.store import app_role
from memory_app.store.db import connect_owner, translated

MIGRATIONS = Path(migrations.__file__).parent


def upgrade(owner_url: str, app_url: str, session_defaults: Mapping[str, str]) -> str:
    """Migrate, give the application's role the password that ``app_url`` carries and its defaults; the new revision.

    All of it or nothing. Several at once queue on an advisory lock. Raises `StoreUnavailable`, and `Misconfigured`
    behind a pooler that shares server processes.
    """
    config = _config()
    engine = connect_owner(owner_url, statement_timeout_ms=0)
    try:
        with translated(), engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            password = make_url(app_url).password
            if password:
                app_role.write_password(connection, password)
            app_role.write_defaults(connection, session_defaults)
    finally:
        engine.dispose()
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
