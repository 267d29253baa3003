"""Read everything that is stored about a person, an agent or a tenant, row by row.

Rows come from the server in batches of one cursor per scope, so memory does not grow with the export. Numbers of
tenants, scopes, sessions and entities are left out, and so is what is derived (vectors, search terms) unless asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, TextClause, bindparam, select, text

from memory_app.db.shards import shard_of
from memory_app.db.tables.tenancy import tenants
from memory_app.transfer.export_lines import TYPED_TYPES
from memory_app.transfer.rows.snapshots import LIST_QUERIES

# A turn may have 100,000 characters: this many rows are at most some 10 MB.
BATCH = 100
"""Rows fetched at a time."""

_VECTORS = "- 'embedding' - 'embedding_model' - 'keywords' - 'terms'"

LISTS = {
    "session": LIST_QUERIES["sessions"],
    "turn": LIST_QUERIES["turns"],
    "memory": LIST_QUERIES["nodes"],
    "link": LIST_QUERIES["links"],
    "entity": LIST_QUERIES["entities"],
    "mention": LIST_QUERIES["mentions"],
    "evidence": """
        SELECT jsonb_build_object('memory_id', e.memory_id, 'turn_id', e.turn_id) FROM evidence e
        WHERE e.scope_id = :scope ORDER BY e.memory_id, e.turn_id""",
    # Memories of a wider scope that rest on turns of this one. Only their ids: others may have said the rest of them.
    "shared_evidence": """
        SELECT jsonb_build_object('memory_id', e.memory_id, 'turn_id', e.turn_id) FROM evidence e
        WHERE e.turn_scope_id = :scope AND e.scope_id <> :scope ORDER BY e.memory_id, e.turn_id""",
    "feedback": """
        SELECT to_jsonb(f) - 'tenant_id' - 'scope_id' - 'id' FROM feedback f WHERE f.scope_id = :scope ORDER BY f.id""",
    "grant": """
        SELECT jsonb_build_object(
            'to', a.name, 'kinds', to_jsonb(g.kinds), 'until', g.until, 'created_at', g.created_at)
        FROM grants g JOIN scopes c ON c.id = g.to_scope_id JOIN agents a ON a.id = c.agent_id
        WHERE g.scope_id = :scope ORDER BY a.name""",
    "run": """
        SELECT to_jsonb(r) - 'tenant_id' - 'scope_id' - 'session_id' - 'answer' - 'fence' - 'lease_until' - 'due_at'
               - 'starts' - 'failing_since' - 'waits_for_cap' - 'created_xact' - 'finished_xact'
               || jsonb_build_object('session', s.name)
        FROM runs r LEFT JOIN sessions s ON s.scope_id = r.scope_id AND s.id = r.session_id
        WHERE r.scope_id = :scope ORDER BY r.created_at, r.id""",
}
_CHECKPOINTS = """
    SELECT to_jsonb(c) - 'tenant_id' - 'scope_id' || jsonb_build_object('content', {content})
    FROM checkpoints c WHERE c.scope_id = :scope ORDER BY c.id"""
_WITHOUT_VECTORS = f"""c.content || jsonb_build_object('nodes', coalesce((
    SELECT jsonb_agg(n {_VECTORS}) FROM jsonb_array_elements(c.content -> 'nodes') n), '[]'))"""


def _of_scope(*, with_vectors: bool) -> str:
    """SQL for all rows of a scope."""
    content = "c.content" if with_vectors else _WITHOUT_VECTORS
    queries = LISTS | {"checkpoint": _CHECKPOINTS.format(content=content)}
    # `type` says what a line is, so an entity's or a link's own type gets a longer name.
    changes = {
        type: f"- 'type' || jsonb_build_object('{type}_type', q.item -> 'type')" for type in TYPED_TYPES
    }
    if not with_vectors:
        changes |= dict.fromkeys(("turn", "memory"), _VECTORS)
    # One statement for all types: each would cost a cursor of its own, and most scopes are small.
    return " UNION ALL ".join(
        f"SELECT '{type}' AS type, (q.item {changes.get(type, '')})::text AS row FROM ({query}) AS q(item)"
        for type, query in queries.items()
    )


_OF_SCOPE = {choice: text(_of_scope(with_vectors=choice)) for choice in (True, False)}
_NAMED = (
    "(CAST(:agent AS text) IS NULL OR a.name = :agent) AND (CAST(:user AS text) IS NULL OR u.name = :user)"
)
_SCOPES = text(
    f"""
    SELECT c.id, a.name AS agent, u.name AS user,
           jsonb_build_object('is_seeded', c.seeded_at IS NOT NULL, 'created_at', c.created_at)::text AS row
    FROM scopes c JOIN agents a ON a.id = c.agent_id LEFT JOIN users u ON u.id = c.user_id
    WHERE c.tenant_id = :tenant AND {_NAMED} ORDER BY c.id
    """
)
_USERS = text(
    """
    SELECT (to_jsonb(u) - 'id' - 'tenant_id' - 'shard')::text FROM users u
    WHERE u.tenant_id = :tenant AND u.shard = :shard AND (CAST(:user AS text) IS NULL OR u.name = :user)
      AND (CAST(:agent AS text) IS NULL OR EXISTS (
          SELECT FROM scopes c JOIN agents a ON a.id = c.agent_id
          WHERE c.tenant_id = :tenant AND c.user_id = u.id AND a.name = :agent))
    ORDER BY u.id
    """
)
_AGENTS = text(
    """
    SELECT (to_jsonb(a) - 'id' - 'tenant_id')::text FROM agents a
    WHERE a.tenant_id = :tenant AND (CAST(:agent AS text) IS NULL OR a.name = :agent) ORDER BY a.id
    """
)
_USAGE = text(
    "SELECT (to_jsonb(u) - 'tenant_id')::text FROM usage u WHERE u.tenant_id = :tenant ORDER BY day, model"
)
_TENANT = select(tenants.c.name).where(tenants.c.id == bindparam("tenant"))


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope with its names, and its other fields as JSON."""

    id: int
    agent: str
    user: str | None
    row: str


def tenant_name(connection: Connection, tenant_id: int) -> str:
    return str(connection.execute(_TENANT, {"tenant": tenant_id}).scalar_one())


def agents(connection: Connection, tenant_id: int, agent: str | None) -> Iterator[str]:
    """Agents with persona, policy and default memories, as JSON."""
    for row in _streamed(connection, _AGENTS, tenant=tenant_id, agent=agent):
        yield row[0]


def users(connection: Connection, tenant_id: int, *, agent: str | None, user: str | None) -> Iterator[str]:
    """Users of the connection's shard, or those that an agent knows, as JSON."""
    shard = shard_of(connection)
    for row in _streamed(connection, _USERS, tenant=tenant_id, agent=agent, user=user, shard=shard):
        yield row[0]


def usage(connection: Connection, tenant_id: int) -> Iterator[str]:
    """Use and cost of the tenant's language model, by day, as JSON."""
    for row in _streamed(connection, _USAGE, tenant=tenant_id):
        yield row[0]


def scopes(
    connection: Connection, tenant_id: int, *, agent: str | None, user: str | None
) -> Iterator[ScopeRow]:
    """The scopes of the names that are not None."""
    for row in _streamed(connection, _SCOPES, tenant=tenant_id, agent=agent, user=user):
        yield ScopeRow(id=row.id, agent=row.agent, user=row.user, row=row.row)


def rows(connection: Connection, scope_id: int, *, with_vectors: bool) -> Iterator[tuple[str, str]]:
    """Everything in a scope as pairs of type and JSON, type by type."""
    for row in _streamed(connection, _OF_SCOPE[with_vectors], scope=scope_id, ids=None):
        yield row.type, row.row


def _streamed(connection: Connection, statement: TextClause, **values: object) -> Iterator[Row[Any]]:
    """Rows from a cursor on the server, which is closed when nobody asks for more."""
    # Without stream_results psycopg fetches the whole result before the first row is seen.
    options = {"stream_results": True, "yield_per": BATCH}
    with connection.execute(statement, values, execution_options=options) as result:
        yield from result
