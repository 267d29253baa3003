"""Read the latest turns of a scope or session: from the hot stream where it is whole, else from the table.

A session may be begun afresh, which drops its stream; turns stay in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy import Connection

from memory_app.db.db import steady, transaction
from memory_app.errors import MemoryAppError, NotFound
from memory_app.hot import cache, expression, stream
from memory_app.hot.stream import Listed
from memory_app.records.records import ListedTurn, Turn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import sessions, turns
from memory_app.turns.rows.sessions import SessionRow

log = structlog.get_logger(__name__)


@in_scopes_shard
def latest_turns(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int, of_one_moment: bool = False
) -> tuple[ListedTurn, ...]:
    """The newest turns of the scope's session, oldest first. `NotFound` for an unknown session.

    ``of_one_moment``: else a turn that is replaced while this reads may be missing, and the new one, too.
    """
    opened = steady if of_one_moment else transaction
    with opened(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        session = _need_session(connection, row, scope)
        newest = latest(runtime, connection, row.id, session=session, limit=limit, withheld=True)
        return turns.listed(connection, row.id, newest)


def latest(
    runtime: Runtime,
    connection: Connection,
    scope_id: int,
    *,
    session: SessionRow | None,
    limit: int,
    listed: Listed | None = None,
    withheld: bool = False,
) -> tuple[Turn, ...]:
    """The newest ``limit`` accepted turns, oldest first, indexed or not.

    ``listed`` is the hot stream, if it was read together with more. ``withheld``: also turns that are not to be kept.
    """
    if limit <= 0:
        return ()
    from_stream = _from_stream(
        runtime, connection, scope_id, session=session, limit=limit, listed=listed, withheld=withheld
    )
    if from_stream is not None:
        return from_stream
    name = None if session is None else session.name
    return turns.latest(connection, scope_id, session=name, limit=limit, withheld=withheld)


def _from_stream(
    runtime: Runtime,
    connection: Connection,
    scope_id: int,
    *,
    session: SessionRow | None,
    limit: int,
    listed: Listed | None,
    withheld: bool,
) -> tuple[Turn, ...] | None:
    """None where the stream is away, not whole, or behind the session's row."""
    try:
        entries = listed or runtime.hot.fetch(stream.ask(runtime.hot, scope_id))
        session_id = None if session is None else session.id
        newest = stream.newest_of(runtime.hot, entries, n=limit, session_id=session_id)
        if not newest.is_whole:
            _rebuild(runtime, connection, scope_id, token=newest.token)
            return None
    except MemoryAppError as error:
        log.warning("stream_not_read", error=error.kind)
        return None
    # A turn whose entry was lost, as Redis was away after its commit, would be missing from the window.
    if session is not None and _last_seq(newest.entries) != session.next_seq - 1:
        return None
    # The stream holds ids only, so that Redis never holds what people wrote.
    return turns.by_ids(connection, [scope_id], [entry.id for entry in newest.entries], withheld=withheld)


def _last_seq(entries: Sequence[stream.Entry]) -> int | None:
    return entries[-1].seq if entries else None


def _rebuild(runtime: Runtime, connection: Connection, scope_id: int, *, token: str) -> None:
    entries = turns.latest_entries(connection, scope_id, limit=runtime.settings.hot.stream_turns)
    stream.rebuild(runtime.hot, scope_id, [stream.Entry(*entry) for entry in entries], token=token)


@in_scopes_shard
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
