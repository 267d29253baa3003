"""The schema of the database and what its roles are given, as the settings say."""

from __future__ import annotations

from memory_app.db import app_role, migrate
from memory_app.db.catalog import Difference
from memory_app.settings import Settings
from memory_app.tenancy.access import owner_url


def upgrade(settings: Settings) -> str:
    """Bring the database to the newest schema, as its owner, and give the application's role its password and its
    defaults; the new revision. Raises `Misconfigured` without an owner's address, `StoreUnavailable`."""
    return migrate.upgrade(
        owner_url(settings), settings.database.url.get_secret_value(), session_defaults(settings)
    )


def add_shards(settings: Settings, count: int) -> tuple[int, ...]:
    """Make shards for new users, as the owner of the database; their numbers. Raises as `upgrade`, and `Conflict`."""
    return migrate.add_shards(owner_url(settings), count)


def differences(settings: Settings) -> tuple[tuple[int, Difference], ...]:
    """What each shard has otherwise than this release expects, as its owner sees it, with the shard's number."""
    return migrate.differences(owner_url(settings))


def session_defaults(settings: Settings) -> dict[str, str]:
    """How sessions of the application's role behave: server setting → value."""
    database = settings.database
    return app_role.session_defaults(
        statement_timeout_ms=database.statement_timeout_ms,
        lock_timeout_ms=database.lock_timeout_ms,
        idle_transaction_timeout_ms=database.idle_transaction_timeout_ms,
        search_candidates=settings.recall.candidates,
    )
