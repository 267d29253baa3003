"""Users: read and set the time zone in which their "yesterday" is meant."""

from __future__ import annotations

from functools import partial

from memory_app.agents.rows import users
from memory_app.agents.rows.users import UserRow
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import InvalidInput, NotFound
from memory_app.language.zones import find_zone
from memory_app.records.scope import check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_users_shard


def user(runtime: Runtime, tenant_id: int, name: str) -> UserRow:
    """The user; `NotFound` for one of whom nothing was ever stored."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        row = users.read(connection, tenant_id, check_name(name, field="user"))
    if row is None:
        raise NotFound(f"no user {name!r}; PATCH makes one, and so does their first turn", field="user")
    return row


def set_time_zone(runtime: Runtime, tenant_id: int, name: str, *, zone: str | None) -> UserRow:
    """Set the zone of a user, who is made when new. None takes it back: then the offset of their times counts.

    Raises `InvalidInput` for a zone that does not exist.
    """
    check_name(name, field="user")
    if zone is not None and find_zone(zone) is None:
        raise InvalidInput(
            "time_zone: there is no such zone; name one as Europe/Lisbon, or an offset as +09:00",
            field="time_zone",
        )
    in_users_shard(runtime, tenant_id, name, partial(_set, tenant_id=tenant_id, name=name, zone=zone))
    return user(runtime, tenant_id, name)


def _set(runtime: Runtime, *, tenant_id: int, name: str, zone: str | None) -> None:
    with transaction(runtime.engine, tenant_id) as connection:
        names.ensure_user(connection, tenant_id, name)
        names.set_time_zone(connection, tenant_id, user=name, zone=zone or "UTC", is_set=zone is not None)
