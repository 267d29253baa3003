"""Count and read what is stored about one person, scope by scope. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.forget.rows.persons import TABLES


@dataclass(frozen=True, slots=True)
class ScopeOf:
    """An agent that knows the person, and since when."""

    id: int
    agent: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """A current memory."""

    id: UUID
    kind: str
    text: str
    origin: str
    stored_at: datetime


_SCOPES = text(
    """
    SELECT c.id, a.name AS agent, c.created_at FROM scopes c
    JOIN agents a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
    WHERE c.tenant_id = :tenant
      AND c.user_id = (SELECT u.id FROM users u WHERE u.tenant_id = :tenant AND u.name = :user)
    ORDER BY a.name
    """
)
_COUNTS = text(
    " UNION ALL ".join(
        f"SELECT '{table}' AS name, count(*) AS rows FROM {table} WHERE tenant_id = :tenant AND scope_id = :scope"
        for table in TABLES
    )
)
_PERIOD = text("SELECT min(at) AS first_at, max(at) AS last_at FROM turns WHERE scope_id = :scope")
_HELD = text(
    """
    SELECT id, kind, text, origin, stored_at FROM memories
    WHERE scope_id = :scope AND retired_at IS NULL ORDER BY kind, stored_at DESC, id DESC LIMIT :limit
    """
)
_REDACTED = text(
    """
    SELECT r.key AS kind, sum(r.value::int) AS parts FROM turns t, jsonb_each_text(t.redacted) r
    WHERE t.scope_id = :scope AND t.redacted IS NOT NULL GROUP BY r.key ORDER BY r.key
    """
)
_LABELS = text(
    "SELECT label FROM entities WHERE scope_id = :scope ORDER BY last_seen DESC, id DESC LIMIT :limit"
)
_ELSEWHERE = text(
    """
    SELECT count(DISTINCT (scope_id, memory_id)) FROM evidence
    WHERE turn_scope_id = ANY(:scopes) AND scope_id <> ALL(:scopes)
    """
)


def scopes(connection: Connection, tenant_id: int, user: str) -> tuple[ScopeOf, ...]:
    """The agents that know the person, in this shard."""
    return tuple(
        ScopeOf(**row._mapping) for row in connection.execute(_SCOPES, {"tenant": tenant_id, "user": user})
    )


def counts(connection: Connection, tenant_id: int, scope_id: int) -> dict[str, int]:
    """Rows by table; tables without any are left out."""
    rows = connection.execute(_COUNTS, {"tenant": tenant_id, "scope": scope_id})
    return {row.name: row.rows for row in rows if row.rows}


def period(connection: Connection, scope_id: int) -> tuple[datetime | None, datetime | None]:
    """When the first and the last turn was said; None without any."""
    row = connection.execute(_PERIOD, {"scope": scope_id}).one()
    return row.first_at, row.last_at


def redacted(connection: Connection, scope_id: int) -> dict[str, int]:
    """Private parts that were taken out of turns before they were stored, by kind."""
    return {row.kind: int(row.parts) for row in connection.execute(_REDACTED, {"scope": scope_id})}


def held(connection: Connection, scope_id: int, *, limit: int) -> tuple[Held, ...]:
    """Current memories, by kind, newest first."""
    rows = connection.execute(_HELD, {"scope": scope_id, "limit": limit})
    return tuple(Held(**row._mapping) for row in rows)


def labels(connection: Connection, scope_id: int, *, limit: int) -> tuple[str, ...]:
    """Who and what the person spoke of, the latest first."""
    return tuple(connection.execute(_LABELS, {"scope": scope_id, "limit": limit}).scalars())


def memories_elsewhere(connection: Connection, scope_ids: Sequence[int]) -> int:
    """Memories for all users of an agent that rest on something the person said."""
    return int(connection.execute(_ELSEWHERE, {"scopes": list(scope_ids)}).scalar_one())
