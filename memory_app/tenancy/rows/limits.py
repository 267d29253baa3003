"""Limits of tenants and keys, and how much is stored of a tenant and of one person."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, text

from memory_app.errors import NotFound
from memory_app.records.limits import Limits, stored_limits
from memory_app.tenancy.rows.names import USER_ID

_OF_TENANT = text("SELECT limits FROM public.tenants WHERE id = :tenant")
_OF_NAMED_TENANT = text("SELECT limits FROM public.tenants WHERE name = :tenant")
# In one statement, so that of two changes at the same time none is lost; null takes a limit away.
_CHANGE_OF_TENANT = text(
    """
    UPDATE public.tenants SET limits = jsonb_strip_nulls(limits || CAST(:changes AS jsonb)) WHERE name = :tenant
    RETURNING limits
    """
)
_SET_OF_KEY = text("SELECT limit_key(:key, CAST(:limits AS jsonb))")
# The numbers of turns have no gaps, so nothing is counted turn by turn. One that was forgotten alone leaves its number.
_TURNS = text("SELECT coalesce(sum(next_seq - 1), 0) FROM sessions WHERE tenant_id = :tenant")
_TURNS_OF_USER = text(
    f"""
    SELECT coalesce(sum(s.next_seq - 1), 0) FROM sessions s
    WHERE s.scope_id IN (SELECT c.id FROM scopes c WHERE c.tenant_id = :tenant AND c.user_id = {USER_ID})
    """
)
_MEMORIES_OF_USER = text(
    f"""
    SELECT count(*) FROM memories m WHERE m.retired_at IS NULL
      AND m.scope_id IN (SELECT c.id FROM scopes c WHERE c.tenant_id = :tenant AND c.user_id = {USER_ID})
    """
)
# The same numbers as above, of all people of the shard at once: for the doctor, not for a call.
_USERS_AT_TURNS = text(
    """
    SELECT count(*) FROM (
        SELECT c.user_id FROM scopes c JOIN sessions s ON s.scope_id = c.id
        WHERE c.tenant_id = :tenant AND c.user_id IS NOT NULL
        GROUP BY c.user_id HAVING sum(s.next_seq - 1) >= :limit) AS people
    """
)
_USERS_AT_MEMORIES = text(
    """
    SELECT count(*) FROM (
        SELECT c.user_id FROM scopes c JOIN memories m ON m.scope_id = c.id AND m.retired_at IS NULL
        WHERE c.tenant_id = :tenant AND c.user_id IS NOT NULL
        GROUP BY c.user_id HAVING count(*) >= :limit) AS people
    """
)


def of_tenant(connection: Connection, tenant_id: int) -> Limits:
    value = connection.execute(_OF_TENANT, {"tenant": tenant_id}).scalar_one_or_none()
    return stored_limits(value or {})


def of_named_tenant(connection: Connection, tenant: str) -> Limits:
    """The limits of any tenant; needs the owner's connection. Raises `NotFound`."""
    row = connection.execute(_OF_NAMED_TENANT, {"tenant": tenant}).one_or_none()
    if row is None:
        raise NotFound(f"tenant {tenant!r}: not known", field="tenant")
    return stored_limits(row.limits)


def change_of_tenant(connection: Connection, tenant: str, changes: Mapping[str, int | None]) -> Limits:
    """Change limits of any tenant by name, None takes one away; all that it has then. Needs the owner's connection.

    Raises `NotFound`.
    """
    values = {"tenant": tenant, "changes": json.dumps(dict(changes))}
    row = connection.execute(_CHANGE_OF_TENANT, values).one_or_none()
    if row is None:
        raise NotFound(f"tenant {tenant!r}: not known", field="tenant")
    return stored_limits(row.limits)


def set_of_key(connection: Connection, key_id: int, limits: Limits) -> None:
    """The limits of a key of the transaction's tenant. Raises `NotFound`."""
    values = {"key": key_id, "limits": json.dumps(limits.as_dict())}
    if connection.execute(_SET_OF_KEY, values).scalar_one() is None:
        raise NotFound(f"key {key_id}: no such key; list them with `memory keys list`", field="id")


def turns(connection: Connection, tenant_id: int) -> int:
    """Stored turns of the tenant in this shard."""
    return int(connection.execute(_TURNS, {"tenant": tenant_id}).scalar_one())


def turns_of_user(connection: Connection, tenant_id: int, user: str) -> int:
    return int(connection.execute(_TURNS_OF_USER, {"tenant": tenant_id, "user": user}).scalar_one())


def memories_of_user(connection: Connection, tenant_id: int, user: str) -> int:
    """Current memories of a person with all agents."""
    return int(connection.execute(_MEMORIES_OF_USER, {"tenant": tenant_id, "user": user}).scalar_one())


def users_at_quota(connection: Connection, tenant_id: int, limits: Limits) -> dict[str, int]:
    """How many people of this shard have as much as they may, by the name of the quota; without quotas that are not
    set."""
    counts: dict[str, int] = {}
    for name, limit, statement in (
        ("user_turns", limits.user_turns, _USERS_AT_TURNS),
        ("user_memories", limits.user_memories, _USERS_AT_MEMORIES),
    ):
        if limit is not None:
            values = {"tenant": tenant_id, "limit": limit}
            counts[name] = connection.execute(statement, values).scalar_one()
    return counts
