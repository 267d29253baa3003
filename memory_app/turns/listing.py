"""List what a scope holds: sessions, latest turns, entities, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError, NotFound
from memory_app.hot import cache, expression, stream
from memory_app.memories import capacity
from memory_app.memories.rows import entities, memories
from memory_app.memories.rows.entities import Entity
from memory_app.records.records import ListedTurn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.turns.rows import counts, sessions, turns
from memory_app.turns.rows.counts import ScopeCounts
from memory_app.turns.rows.sessions import SessionRow
from memory_app.turns.stream import latest

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a scope, and its ceiling: most memories and most links."""

    memories: Mapping[str, int]
    rows: ScopeCounts
    max_memories: int
    max_links: int


def latest_turns(runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int) -> tuple[ListedTurn, ...]:
    """The newest turns of the scope's session, oldest first. `NotFound` for an unknown session."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        session = _need_session(connection, row, scope)
        newest = latest(runtime, connection, row.id, session=session, limit=limit)
        return turns.listed(connection, row.id, newest)


def list_sessions(
    runtime: Runtime, tenant_id: int, scope: Scope, *, active: bool | None, limit: int
) -> tuple[SessionRow, ...]:
    """Sessions, latest activity first; ``active`` tells those not yet ended from the others."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return sessions.listed(connection, row.id, active=active, limit=limit)


def list_entities(runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int) -> tuple[Entity, ...]:
    """Who and what is talked about, most mentioned first."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return entities.listed(connection, row.visible, limit=limit)


def stats(runtime: Runtime, tenant_id: int, scope: Scope) -> Stats:
    """How much the scope holds and how much it may hold."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        kinds = memories.counts(connection, [row.id])
        rows = counts.of_scopes(connection, [row.id])
    ceiling = capacity.ceiling_of(runtime, parse_policy(row.policy))
    return Stats(
        memories=kinds,
        rows=rows,
        max_memories=ceiling.memories,
        max_links=ceiling.links,
    )


def clear_hot(runtime: Runtime, tenant_id: int, scope: Scope) -> None:
    """Begin the session afresh: drop the stream and the cached context. No knowledge is lost.

    `NotFound` for an unknown session. Without Redis there is nothing to drop.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        session = _need_session(connection, row, scope)
    try:
        _clear(runtime, row, session)
    except MemoryAppError as error:
        log.warning("hot_not_cleared", error=error.kind)


def _clear(runtime: Runtime, row: ScopeRow, session: SessionRow) -> None:
    stream.clear(runtime.hot, row.id)
    cache.drop(runtime.hot, row.id)
    expression.restart_session(runtime.hot, row.id, session_id=session.id, at=session.now)


def _need_session(connection: Connection, row: ScopeRow, scope: Scope) -> SessionRow:
    session = None if scope.session is None else sessions.find(connection, row.id, scope.session)
    if session is None:
        raise NotFound(f"no session {scope.session!r} of this agent and user", field="session")
    return session
