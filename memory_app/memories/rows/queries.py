"""The query graph in the store: which turn answered a question, and which questions are like another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, text

from memory_app.db.expressions import among
from memory_app.db.tables.memories import memories
from memory_app.db.vectors import vector_text
from memory_app.records.kinds import question_kinds

# Only the first answer after a question counts; what the assistant adds later answers nothing of its own.
_ANSWERED = text(
    """
    INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
    SELECT DISTINCT a.tenant_id, m.scope_id, m.id, a.scope_id, a.id
    FROM turns a
    JOIN LATERAL (
        SELECT q.id, q.seq FROM turns q
        WHERE q.scope_id = a.scope_id AND q.session_id = a.session_id AND q.seq < a.seq AND q.role = 'user'
        ORDER BY q.seq DESC LIMIT 1) asked ON true
    JOIN evidence e ON e.turn_scope_id = a.scope_id AND e.turn_id = asked.id AND e.scope_id = a.scope_id
    JOIN memories m ON m.scope_id = e.scope_id AND m.id = e.memory_id AND m.kind = ANY(:kinds)
    WHERE a.scope_id = :scope AND a.id = ANY(:turns) AND a.role = 'assistant'
      AND NOT EXISTS (SELECT FROM turns b WHERE b.scope_id = a.scope_id AND b.session_id = a.session_id
                      AND b.role = 'assistant' AND b.seq > asked.seq AND b.seq < a.seq)
    ON CONFLICT DO NOTHING
    """
)
_SIMILAR = text(
    """
    SELECT m.id, m.text, m.canonical_key, s.name AS session, m.repeat_count, m.last_seen,
           coalesce(s.name = :session, false) AS in_session,
           1 - (m.embedding <=> CAST(:vector AS halfvec)) AS similarity
    FROM memories m LEFT JOIN sessions s ON s.scope_id = m.scope_id AND s.id = m.session_id
    WHERE m.scope_id = :scope AND m.kind = ANY(:kinds) AND m.retired_at IS NULL AND m.embedding_model = :model
    ORDER BY 1 - (m.embedding <=> CAST(:vector AS halfvec))
             + CASE WHEN coalesce(s.name = :session, false) THEN :bias ELSE 0 END DESC, m.id
    LIMIT :limit
    """
)
_RECENT = (
    select(memories.c.text)
    .where(
        memories.c.scope_id == bindparam("scope"),
        among(memories.c.kind, "kinds"),
        memories.c.retired_at.is_(None),
    )
    .order_by(memories.c.last_seen.desc(), memories.c.id.desc())
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class Similar:
    """A question like the one asked. ``similarity`` is a cosine; ``in_session``: of the session going on."""

    id: UUID
    text: str
    canonical_key: str
    session: str | None
    repeat_count: int
    last_seen: datetime
    in_session: bool
    similarity: float


def link_answers(connection: Connection, scope_id: int, turn_ids: Sequence[UUID]) -> None:
    """Let each question rest also on the assistant's turn that came next, where that is among ``turn_ids``."""
    if turn_ids:
        connection.execute(
            _ANSWERED, {"scope": scope_id, "kinds": list(question_kinds()), "turns": list(turn_ids)}
        )


def similar(
    connection: Connection,
    scope_id: int,
    *,
    vector: Sequence[float],
    model: str,
    session: str | None,
    bias: float,
    limit: int,
) -> tuple[Similar, ...]:
    """Current questions of the scope, most similar first; those of ``session`` count ``bias`` more."""
    values = {
        "scope": scope_id,
        "kinds": list(question_kinds()),
        "vector": vector_text(vector),
        "model": model,
        "session": session,
        "bias": bias,
        "limit": limit,
    }
    return tuple(Similar(**row._mapping) for row in connection.execute(_SIMILAR, values))


def recent(connection: Connection, scope_id: int, *, limit: int) -> tuple[str, ...]:
    """Texts of the questions asked last."""
    values = {"scope": scope_id, "kinds": list(question_kinds()), "limit": limit}
    return tuple(connection.execute(_RECENT, values).scalars())
