"""Rows of turns, written: accept them once, by their idempotency keys, and in order. A turn is never edited."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from memory_app.db.expressions import column_list, columns_of
from memory_app.db.shards import directory_of
from memory_app.db.tables.turns import turns
from memory_app.records.records import NewTurn, Stage, Ticket
from memory_app.turns.redacted import Prepared
from memory_app.turns.rows.sessions import Debounce, LockedSession
from memory_app.turns.rows.stages import STAGE


@dataclass(frozen=True, slots=True)
class KnownKey:
    """What an idempotency key was used for before. ``request_hash`` None: its words are deleted, and nothing is left to
    compare a retry with."""

    request_hash: bytes | None
    ticket: Ticket


# A turn of an earlier release does not say whose it is; its scope does. What was erased is read by the same statement:
# an erasure commits both at once, so a turn is seen in one of the two.
_USES = f"""SELECT t.idempotency_key, t.request_hash, t.id, t.seq, {STAGE} AS stage, CAST(NULL AS bytea) AS erased
    FROM turns t WHERE t.tenant_id = :tenant AND t.idempotency_key = ANY(:keys)
      AND :user = coalesce(t.user_id, (SELECT c.user_id FROM scopes c WHERE c.id = t.scope_id))"""
_ERASED = """SELECT NULL AS idempotency_key, NULL AS request_hash, NULL AS id, NULL AS seq, NULL AS stage,
    e.digest AS erased
    FROM public.erased_turns e WHERE e.tenant_id = :tenant AND e.digest = ANY(CAST(:digests AS bytea[]))"""
_KNOWN_KEYS = text(f"{_USES} UNION ALL {_ERASED}")

_NEW_TURN = columns_of(turns, NewTurn)
_GIVEN = (turns.c.seq, *_NEW_TURN, turns.c.request_hash, turns.c.redacted, turns.c.place)
"""What comes with a turn; the rest of its row follows from where it is stored."""

# One statement for the turns and for when their session is due: accepting is the path that a chat waits for. The due
# time of a session that is stopped, or is in a back-off after a failure, is left alone.
_ACCEPT = text(
    f"""
    WITH moved AS (
        UPDATE sessions s
        SET next_seq = s.next_seq + :n,
            last_activity_at = now(),
            ended_at = NULL,
            pending_since = coalesce(s.pending_since, now()),
            due_at = CASE
                WHEN NOT :extracting OR s.parked_reason IS NOT NULL THEN s.due_at
                WHEN s.failures > 0 AND s.due_at IS NOT NULL THEN s.due_at
                WHEN s.next_seq + :n - 1 - s.extracted_seq >= :after_turns THEN least(s.due_at, now())
                ELSE least(coalesce(s.pending_since, now()) + :max_age, now() + :idle) END
        WHERE s.scope_id = :scope AND s.id = :session
    )
    INSERT INTO turns (tenant_id, scope_id, user_id, session_id, request_id, {column_list(_GIVEN)})
    SELECT :tenant, :scope, :user, :session, CAST(:request AS uuid),
           {column_list(_GIVEN, "t", at="coalesce(t.at, now())")}
    FROM jsonb_populate_recordset(CAST(NULL AS turns), CAST(:turns AS jsonb)) AS t
    ORDER BY t.seq
    RETURNING id, seq
    """
)


def known_keys(
    connection: Connection,
    tenant_id: int,
    *,
    user_id: int,
    keys: Sequence[str],
    digests: Sequence[bytes],
) -> tuple[dict[str, KnownKey], frozenset[bytes]]:
    """Earlier uses of these idempotency keys for this user, and those of the digests whose turns were erased."""
    values = {"tenant": tenant_id, "user": user_id, "keys": list(keys), "digests": list(digests)}
    uses: dict[str, KnownKey] = {}
    erased: set[bytes] = set()
    directory = directory_of(connection)
    found: Iterable[Row[Any]]
    if directory is connection:
        found = connection.execute(_KNOWN_KEYS, values)
    else:
        # What was erased second: an erasure between the two took the turn with it, and is seen then.
        found = (*connection.execute(text(_USES), values), *directory.execute(text(_ERASED), values))
    for row in found:
        if row.erased is not None:
            erased.add(bytes(row.erased))
            continue
        ticket = Ticket(row.id, row.seq, Stage(row.stage), duplicate=True)
        uses[row.idempotency_key] = KnownKey(bytes(row.request_hash) or None, ticket)
    return uses, frozenset(erased)


def accept(
    connection: Connection,
    tenant_id: int,
    session: LockedSession,
    *,
    new_turns: Sequence[Prepared],
    debounce: Debounce | None,
    request_id: UUID | None,
    places: Mapping[UUID, int],
) -> tuple[tuple[UUID, int], ...]:
    """Store turns behind the session's last one; their ids and numbers.

    The session's row must be locked by this transaction. ``debounce`` None means that nothing is extracted from this
    session. ``places`` are those of the turns that these replace, by id.
    """
    rows = [
        {
            **{column.name: getattr(item.turn, column.name) for column in _NEW_TURN},
            "seq": seq,
            "speaker": item.speaker,
            "request_hash": rf"\x{item.digest.hex()}" if item.digest else None,
            "redacted": item.redacted or None,
            "place": None if item.turn.replaces is None else places[item.turn.replaces],
        }
        for seq, item in enumerate(new_turns, start=session.next_seq)
    ]
    values = {
        "tenant": tenant_id,
        "scope": session.scope_id,
        "user": session.user_id,
        "session": session.id,
        "request": request_id,
        "n": len(rows),
        "turns": json.dumps(rows, ensure_ascii=False, default=str),
        "extracting": debounce is not None,
        "after_turns": debounce.after_turns if debounce else 0,
        "max_age": debounce.max_age if debounce else timedelta(0),
        "idle": debounce.idle if debounce else timedelta(0),
    }
    return tuple((row.id, row.seq) for row in connection.execute(_ACCEPT, values))
