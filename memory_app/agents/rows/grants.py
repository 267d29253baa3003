"""Grants: what a person lets one agent recall of what another knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.tenancy.rows.names import USER_ID


@dataclass(frozen=True, slots=True)
class Grant:
    """``to`` may recall memories of ``kinds`` that ``agent`` has of the user, before ``until``; None: until it is
    revoked. ``is_active``: it has not run out."""

    agent: str
    to: str
    kinds: tuple[str, ...]
    until: datetime | None
    created_at: datetime
    is_active: bool


@dataclass(frozen=True, slots=True)
class ReceivedGrant:
    """A scope that another one may recall memories of, and the agent that it is of."""

    scope_id: int
    agent: str
    kinds: tuple[str, ...]


_IS_ACTIVE = "(g.until IS NULL OR g.until > now())"
# Each recall asks, and mostly nothing is granted: a join could be planned by way of all scopes.
_RECEIVED = text(
    f"""
    SELECT g.scope_id, g.kinds,
        (SELECT a.name FROM scopes c JOIN agents a ON a.id = c.agent_id WHERE c.id = g.scope_id) AS agent
    FROM grants g
    WHERE g.to_scope_id = :scope AND {_IS_ACTIVE}
    ORDER BY agent
    """
)
HAS_RECEIVED = "EXISTS (SELECT FROM grants g WHERE g.to_scope_id = :scope)"
"""Whether it is worth asking for what the scope received, as a part of a statement. Nobody who is bound to an agent may
know by it."""

_LIST = text(
    f"""
    SELECT a.name AS agent, t.name AS "to", g.kinds, g.until, g.created_at, {_IS_ACTIVE} AS is_active
    FROM scopes c
    JOIN agents a ON a.id = c.agent_id
    JOIN grants g ON g.scope_id = c.id
    JOIN scopes r ON r.id = g.to_scope_id
    JOIN agents t ON t.id = r.agent_id
    WHERE c.tenant_id = :tenant AND c.user_id = {USER_ID}
      AND (CAST(:agent AS text) IS NULL OR :agent IN (a.name, t.name))
    ORDER BY a.name, t.name
    """
)
_COUNT = text(
    "SELECT count(*) FROM grants WHERE tenant_id = :tenant AND to_scope_id = :to AND scope_id <> :scope"
)
# From the rows of both scopes, so that one which is gone meanwhile is no error of a foreign key.
_PUT = text(
    """
    INSERT INTO grants (tenant_id, scope_id, to_scope_id, kinds, until)
    SELECT f.tenant_id, f.id, t.id, CAST(:kinds AS text[]), :until
    FROM scopes f JOIN scopes t ON t.tenant_id = f.tenant_id AND t.user_id = f.user_id
    WHERE f.tenant_id = :tenant AND f.id = :scope AND t.id = :to
    ON CONFLICT (scope_id, to_scope_id) DO UPDATE
        SET kinds = excluded.kinds, until = excluded.until, created_at = excluded.created_at
    """
)
_DELETE = text(
    """
    DELETE FROM grants g USING scopes r JOIN agents t ON t.id = r.agent_id
    WHERE g.tenant_id = :tenant AND g.scope_id = :scope AND r.id = g.to_scope_id
      AND (CAST(:to AS text) IS NULL OR t.name = :to)
    """
)
_SOURCE = text(
    f"""
    SELECT a.name AS agent FROM grants g
    JOIN scopes c ON c.id = g.scope_id
    JOIN agents a ON a.id = c.agent_id
    JOIN memories m ON m.scope_id = g.scope_id AND m.kind = ANY(g.kinds) AND m.retired_at IS NULL
    WHERE g.tenant_id = :tenant AND g.to_scope_id = :to AND m.id = CAST(:memory AS uuid) AND {_IS_ACTIVE}
    """
)


def received(connection: Connection, scope_id: int) -> tuple[ReceivedGrant, ...]:
    """What this scope may recall of others at this moment."""
    rows = connection.execute(_RECEIVED, {"scope": scope_id})
    return tuple(ReceivedGrant(row.scope_id, row.agent, tuple(row.kinds)) for row in rows)


def listed(
    connection: Connection, tenant_id: int, user: str, *, agent: str | None = None
) -> tuple[Grant, ...]:
    """The grants of a person, or those from and to one agent; those that have run out, too."""
    rows = connection.execute(_LIST, {"tenant": tenant_id, "user": user, "agent": agent})
    return tuple(Grant(**{**row, "kinds": tuple(row["kinds"])}) for row in rows.mappings())


def count_others(connection: Connection, tenant_id: int, *, scope_id: int, to_scope_id: int) -> int:
    """How many other scopes than this one may be recalled by ``to_scope_id``."""
    values = {"tenant": tenant_id, "scope": scope_id, "to": to_scope_id}
    return int(connection.execute(_COUNT, values).scalar_one())


def put(
    connection: Connection,
    tenant_id: int,
    *,
    scope_id: int,
    to_scope_id: int,
    kinds: Sequence[str],
    until: datetime | None,
) -> bool:
    """Set a grant, in the place of one that was there. False where the scopes are not (or no longer) of one person."""
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "to": to_scope_id,
        "kinds": list(kinds),
        "until": until,
    }
    return bool(connection.execute(_PUT, values).rowcount)


def delete(connection: Connection, tenant_id: int, *, scope_id: int, to: str | None) -> int:
    """Delete the grant of a scope to an agent, or all of its grants; how many there were."""
    return connection.execute(_DELETE, {"tenant": tenant_id, "scope": scope_id, "to": to}).rowcount


def source(connection: Connection, tenant_id: int, *, to_scope_id: int, memory_id: UUID) -> str | None:
    """The agent whose current memory it is, if this scope may recall it now."""
    values = {"tenant": tenant_id, "to": to_scope_id, "memory": memory_id}
    return connection.execute(_SOURCE, values).scalar_one_or_none()
