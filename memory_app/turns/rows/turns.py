"""Rows of turns, read: by id, by session, and the latest ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Connection, Row, Text, and_, bindparam, or_, select

from memory_app.db.expressions import among
from memory_app.db.tables.turns import sessions, turns
from memory_app.memories.rows.turn_rows import TURNS, read_turn
from memory_app.records.records import HIDDEN, REPLACED, ListedTurn, Turn

# In a window and before a model stands nothing that somebody asked not to be kept.
_HAS_NO_REASON = turns.c.reason.is_(None)
_IS_SHOWN = or_(
    _HAS_NO_REASON,
    turns.c.reason.not_in(HIDDEN),
    and_(bindparam("withheld", type_=Boolean), turns.c.reason != REPLACED),
)
_IS_READ = or_(_HAS_NO_REASON, turns.c.reason.not_in(HIDDEN))
_BY_ID = TURNS.where(among(turns.c.scope_id, "scopes"), among(turns.c.id, "ids"), _IS_SHOWN).order_by(
    turns.c.id
)
_LISTED = select(
    turns.c.id,
    turns.c.idempotency_key,
    turns.c.emotional_tone,
    turns.c.tools_used,
    turns.c.metadata,
    turns.c.redacted,
).where(turns.c.scope_id == bindparam("scope"), among(turns.c.id, "ids"))
"""What a listing shows of a turn beside what `TURNS` reads."""

_SESSION_NAME = bindparam("session", type_=Text)
_LATEST = (
    TURNS.where(
        turns.c.scope_id == bindparam("scope"),
        or_(_SESSION_NAME.is_(None), sessions.c.name == _SESSION_NAME),
        _IS_SHOWN,
    )
    # The ids are UUIDs of version 7, whose order is that of acceptance. A turn's own time may be of any year.
    .order_by(turns.c.id.desc())
    .limit(bindparam("limit"))
)
_LATEST_ENTRIES = (
    select(turns.c.id, turns.c.session_id, turns.c.seq)
    .where(turns.c.scope_id == bindparam("scope"))
    .order_by(turns.c.id.desc())
    .limit(bindparam("limit"))
)
_RANGE = TURNS.where(
    turns.c.scope_id == bindparam("scope"),
    turns.c.session_id == bindparam("session"),
    turns.c.seq.between(bindparam("low"), bindparam("high")),
    turns.c.failed_at.is_(None),
    _IS_READ,
).order_by(turns.c.seq)

_UNINDEXED = (
    TURNS.where(
        among(turns.c.scope_id, "scopes"),
        turns.c.indexed_at.is_(None),
        turns.c.failed_at.is_(None),
        _IS_READ,
    )
    .order_by(turns.c.id.desc())
    .limit(bindparam("limit"))
)


def by_ids(
    connection: Connection, scope_ids: Sequence[int], ids: Iterable[UUID], *, withheld: bool = False
) -> tuple[Turn, ...]:
    """Turns by id, oldest first; ids outside the scopes are simply absent.

    ``withheld``: also turns of which somebody asked that they are not kept.
    """
    values = {"scopes": list(scope_ids), "ids": list(ids), "withheld": withheld}
    rows = connection.execute(_BY_ID, values)
    return in_place([read_turn(row) for row in rows])


def latest(
    connection: Connection, scope_id: int, *, session: str | None, limit: int, withheld: bool = False
) -> tuple[Turn, ...]:
    """The newest turns by acceptance, oldest first. ``withheld`` as for `by_ids`."""
    values = {"scope": scope_id, "session": session, "limit": limit, "withheld": withheld}
    rows = connection.execute(_LATEST, values)
    return in_place([read_turn(row) for row in rows][::-1])


def listed(connection: Connection, scope_id: int, of: Sequence[Turn]) -> tuple[ListedTurn, ...]:
    """These turns with all that their callers gave, in the same order; one that was erased meanwhile is absent."""
    rows = connection.execute(_LISTED, {"scope": scope_id, "ids": [turn.id for turn in of]})
    by_id = {row.id: row for row in rows}
    return tuple(_listed_turn(turn, by_id[turn.id]) for turn in of if turn.id in by_id)


def _listed_turn(turn: Turn, row: Row[*tuple[Any, ...]]) -> ListedTurn:
    return ListedTurn(
        id=turn.id,
        session=turn.session,
        seq=turn.seq,
        role=turn.role,
        speaker=turn.speaker,
        text=turn.text,
        at=turn.at,
        idempotency_key=row.idempotency_key,
        emotional_tone=row.emotional_tone,
        tools_used=row.tools_used,
        metadata=row.metadata,
        redacted=row.redacted or {},
        place=turn.place,
        words_deleted_at=turn.words_deleted_at,
    )


def in_place(of: Sequence[Turn]) -> tuple[Turn, ...]:
    """Turns in the order in which people see them: one that replaced another stands where that one stood.

    Only turns of the same session change places among each other.
    """
    if all(turn.place is None for turn in of):
        return tuple(of)
    by_session: dict[str, list[Turn]] = defaultdict(list)
    for turn in of:
        by_session[turn.session].append(turn)
    shown = {session: iter(sorted(own, key=_place)) for session, own in by_session.items()}
    return tuple(next(shown[turn.session]) for turn in of)


def _place(turn: Turn) -> tuple[int, int]:
    return (turn.seq if turn.place is None else turn.place, turn.seq)


def latest_entries(connection: Connection, scope_id: int, *, limit: int) -> tuple[tuple[UUID, int, int], ...]:
    """Id, session key and seq of the newest turns of a scope, oldest first: what the hot stream is rebuilt from."""
    rows = connection.execute(_LATEST_ENTRIES, {"scope": scope_id, "limit": limit}).all()
    return tuple((row.id, row.session_id, row.seq) for row in reversed(rows))


def unindexed(connection: Connection, scope_ids: Sequence[int], *, limit: int) -> tuple[Turn, ...]:
    """Accepted turns that search cannot find yet, newest first."""
    rows = connection.execute(_UNINDEXED, {"scopes": list(scope_ids), "limit": limit})
    return tuple(read_turn(row) for row in rows)


def between(
    connection: Connection, scope_id: int, session_id: int, *, low: int, high: int
) -> tuple[Turn, ...]:
    """Turns of a session with ``low`` ≤ seq ≤ ``high`` in order, without those that failed or are not to be kept."""
    values = {"scope": scope_id, "session": session_id, "low": low, "high": high}
    return tuple(read_turn(row) for row in connection.execute(_RANGE, values))
