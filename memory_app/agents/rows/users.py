"""Users: the people remembered, and the time zone in which they speak."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from memory_app.db.locks import locking
from memory_app.tenancy.rows.names import ZONE


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user of the tenant; ``time_zone`` is the one that counts, ``zone_is_set`` whether somebody set it.

    ``label`` is what the app calls them, ``aliases`` are further names of theirs.
    """

    name: str
    label: str | None
    aliases: tuple[str, ...]
    time_zone: str
    zone_is_set: bool
    created_at: datetime


_READ = text(
    f"""
    SELECT u.name, u.label, u.aliases, {ZONE} AS time_zone,
        u.zone_is_set OR u.time_zone <> 'UTC' AS zone_is_set, u.created_at
    FROM users u WHERE u.tenant_id = :tenant AND u.name = :user
    """
)

_LOCKED = locking("user", text(f"{_READ.text} FOR NO KEY UPDATE OF u"))
_SCOPES = text(
    """
    SELECT c.id FROM scopes c
    WHERE c.tenant_id = :tenant AND c.user_id = (SELECT id FROM users WHERE tenant_id = :tenant AND name = :user)
    ORDER BY c.id
    """
)


def read(connection: Connection, tenant_id: int, user: str) -> UserRow | None:
    row = connection.execute(_READ, {"tenant": tenant_id, "user": user}).one_or_none()
    return None if row is None else UserRow(**{**row._mapping, "aliases": tuple(row.aliases)})


def lock(connection: Connection, tenant_id: int, user: str) -> UserRow:
    """The user, who must be there, held until the end of the transaction."""
    row = connection.execute(_LOCKED, {"tenant": tenant_id, "user": user}).one()
    return UserRow(**{**row._mapping, "aliases": tuple(row.aliases)})


def scope_ids(connection: Connection, tenant_id: int, user: str) -> tuple[int, ...]:
    """The scopes of a user with all agents, in the order in which they are locked."""
    return tuple(connection.execute(_SCOPES, {"tenant": tenant_id, "user": user}).scalars())
