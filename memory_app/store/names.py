"""From the names a caller gives to the compact keys that rows carry. The only place that resolves a scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from memory_app.domain.scope import Scope
from memory_app.errors import NotFound


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """Keys and what else is read with them. ``visible`` are the scope ids a question in this scope may look at."""

    id: int
    agent_id: int
    user_id: int | None
    time_zone: str
    policy: dict[str, Any]
    persona: dict[str, Any] | None
    visible: tuple[int, ...]


_FIND = text(
    """
    SELECT c.id, c.agent_id, c.user_id, coalesce(u.time_zone, 'UTC') AS time_zone, a.policy, a.persona,
           ARRAY(SELECT v.id FROM scopes v
                 WHERE v.tenant_id = c.tenant_id AND v.agent_id = c.agent_id
                   AND (v.id = c.id OR v.user_id IS NULL) ORDER BY v.id) AS visible
    FROM agents a
    LEFT JOIN users u ON u.tenant_id = a.tenant_id AND u.name = :user
    JOIN scopes c ON c.tenant_id = a.tenant_id AND c.agent_id = a.id AND c.user_id IS NOT DISTINCT FROM u.id
    WHERE a.tenant_id = :tenant AND a.name = :agent AND (u.id IS NOT NULL OR CAST(:user AS text) IS NULL)
    """
)

_ENSURE_AGENT = text("INSERT INTO agents (tenant_id, name) VALUES (:tenant, :agent) ON CONFLICT DO NOTHING")
_ENSURE_USER = text("INSERT INTO users (tenant_id, name) VALUES (:tenant, :user) ON CONFLICT DO NOTHING")
_ENSURE_SCOPE = text(
    """
    INSERT INTO scopes (tenant_id, agent_id, user_id)
    SELECT a.tenant_id, a.id, u.id
    FROM agents a LEFT JOIN users u ON u.tenant_id = a.tenant_id AND u.name = :user
    WHERE a.tenant_id = :tenant AND a.name = :agent
    ON CONFLICT DO NOTHING
    RETURNING id
    """
)


def find_scope(connection: Connection, tenant_id: int, scope: Scope) -> ScopeRow | None:
    """The scope of an agent and a user (or of the agent alone), or None when nothing was ever stored for it."""
    row = connection.execute(_FIND, {"tenant": tenant_id, "agent": scope.agent, "user": scope.user}).one_or_none()
    if row is None:
        return None
    return ScopeRow(
        row.id, row.agent_id, row.user_id, row.time_zone, dict(row.policy), row.persona, tuple(row.visible)
    )


def need_scope(connection: Connection, tenant_id: int, scope: Scope) -> ScopeRow:
    """Like `find_scope`; `NotFound` naming the agent or user instead of None."""
    row = find_scope(connection, tenant_id, scope)
    if row is None:
        about = f"agent {scope.agent!r}" + (f" and user {scope.user!r}" if scope.user else "")
        raise NotFound(f"nothing is stored for {about}; record a turn or remember a statement first", field="agent")
    return row


def ensure_scope(connection: Connection, tenant_id: int, scope: Scope) -> tuple[ScopeRow, bool]:
    """The scope, made when it is new; and whether it is new to this call."""
    found = find_scope(connection, tenant_id, scope)
    if found is not None:
        return found, False
    names = {"tenant": tenant_id, "agent": scope.agent, "user": scope.user}
    connection.execute(_ENSURE_AGENT, names)
    if scope.user is not None:
        connection.execute(_ENSURE_USER, names)
    created = connection.execute(_ENSURE_SCOPE, names).one_or_none() is not None
    return need_scope(connection, tenant_id, scope), created


def lock_scope(connection: Connection, tenant_id: int, scope_id: int) -> bool:
    """Hold the scope's row until the end of the transaction: one writer of memories at a time.

    False when the scope is gone, which is how a late worker learns that the person was forgotten.
    """
    statement = text("SELECT id FROM scopes WHERE tenant_id = :tenant AND id = :scope FOR NO KEY UPDATE")
    return connection.execute(statement, {"tenant": tenant_id, "scope": scope_id}).one_or_none() is not None
