"""Read the latest turns of a scope or session: from the hot stream where it is whole, else from the table."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy import Connection

from memory_app.errors import MemoryAppError
from memory_app.hot import stream
from memory_app.hot.stream import Listed
from memory_app.records.records import Turn
from memory_app.runtime import Runtime
from memory_app.turns.rows import turns
from memory_app.turns.rows.sessions import SessionRow

log = structlog.get_logger(__name__)


def latest(
    runtime: Runtime,
    connection: Connection,
    scope_id: int,
    *,
    session: SessionRow | None,
    limit: int,
    listed: Listed | None = None,
) -> tuple[Turn, ...]:
    """The newest ``limit`` accepted turns, oldest first, indexed or not. ``listed`` is the hot stream, if it was read
    together with more."""
    if limit <= 0:
        return ()
    from_stream = _from_stream(runtime, connection, scope_id, session=session, limit=limit, listed=listed)
    if from_stream is not None:
        return from_stream
    name = None if session is None else session.name
    return turns.latest(connection, scope_id, session=name, limit=limit)


def _from_stream(
    runtime: Runtime,
    connection: Connection,
    scope_id: int,
    *,
    session: SessionRow | None,
    limit: int,
    listed: Listed | None,
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
    return turns.by_ids(connection, [scope_id], [entry.id for entry in newest.entries])


def _last_seq(entries: Sequence[stream.Entry]) -> int | None:
    return entries[-1].seq if entries else None


def _rebuild(runtime: Runtime, connection: Connection, scope_id: int, *, token: str) -> None:
    entries = turns.latest_entries(connection, scope_id, limit=runtime.settings.hot.stream_turns)
    stream.rebuild(runtime.hot, scope_id, [stream.Entry(*entry) for entry in entries], token=token)
