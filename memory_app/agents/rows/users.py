"""Users: the people remembered, and the time zone in which they speak."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from memory_app.tenancy.rows.names import ZONE


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user of the tenant; ``time_zone`` is the one that counts, ``zone_is_set`` whether somebody set it."""

    name: str
    time_zone: str
    zone_is_set: bool
    created_at: datetime


_READ = text(
    f"""
    SELECT u.name, {ZONE} AS time_zone, u.zone_is_set OR u.time_zone <> 'UTC' AS zone_is_set, u.created_at
    FROM users u WHERE u.tenant_id = :tenant AND u.name = :user
    """
)


def read(connection: Connection, tenant_id: int, user: str) -> UserRow | None:
    row = connection.execute(_READ, {"tenant": tenant_id, "user": user}).one_or_none()
    return None if row is None else UserRow(**row._mapping)
