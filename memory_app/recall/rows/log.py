"""The turns around those that bear on a query, and what is no longer held of what they say; one statement for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.literals import literals
from memory_app.records.records import HIDDEN, HISTORICAL, Role, Turn

# The texts of the turns that the caller has are not sent again: an answer of an assistant may be pages long.
_SURROUNDINGS = text(
    f"""
    WITH hits AS (
        SELECT t.scope_id, t.id, t.session_id, t.seq FROM turns t
        WHERE t.scope_id = ANY(:scopes) AND t.id = ANY(:ids)
    ), around AS (
        SELECT t.scope_id, t.id, t.session_id FROM hits h
        JOIN turns t ON t.scope_id = h.scope_id AND t.session_id = h.session_id
            AND t.seq = ANY(ARRAY[h.seq - 1, h.seq + 1])
        WHERE h.id = ANY(:centres) AND t.failed_at IS NULL
          AND (t.reason IS NULL OR t.reason NOT IN ({literals(HIDDEN)}))
          AND (CAST(:recorded_after AS timestamptz) IS NULL OR t.accepted_at >= :recorded_after)
        UNION SELECT scope_id, id, session_id FROM hits
    )
    SELECT t.id, s.name AS session, t.seq, t.role, t.speaker,
        CASE WHEN t.id <> ALL(:ids) THEN t.text END AS words, t.at,
        (SELECT m.text FROM evidence e JOIN memories m ON m.scope_id = e.scope_id AND m.id = e.memory_id
         WHERE e.turn_scope_id = t.scope_id AND e.turn_id = t.id
           AND (m.valid_until <= now() OR m.retired_reason IN ({literals(HISTORICAL)}))
         ORDER BY m.importance DESC, m.id LIMIT 1) AS past
    FROM around a JOIN turns t ON t.scope_id = a.scope_id AND t.id = a.id
    JOIN sessions s ON s.scope_id = a.scope_id AND s.id = a.session_id
    """
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``neighbours`` are the turns beside the centres, by session and place; ``past`` is by turn what was once held of
    it and is no longer, in the words of the memory."""

    neighbours: dict[tuple[str, int], Turn]
    past: dict[UUID, str]


def surroundings(
    connection: Connection,
    scope_ids: Sequence[int],
    ids: Sequence[UUID],
    *,
    centres: Sequence[UUID],
    recorded_after: datetime | None = None,
) -> Surroundings:
    """Read the turns beside ``centres``, which are some of ``ids``, and what of all these is past.

    Turns accepted before ``recorded_after`` are no neighbours.
    """
    values = {
        "scopes": list(scope_ids),
        "ids": list(ids),
        "centres": list(centres),
        "recorded_after": recorded_after,
    }
    neighbours: dict[tuple[str, int], Turn] = {}
    past: dict[UUID, str] = {}
    for id, session, seq, role, speaker, words, at, past_text in connection.execute(_SURROUNDINGS, values):
        if past_text is not None:
            past[id] = past_text
        if words is not None:
            neighbours[session, seq] = Turn(
                id=id, session=session, seq=seq, role=Role(role), speaker=speaker, text=words, at=at
            )
    return Surroundings(neighbours, past)
