"""The stage that a turn is in: its ticket, and the note that extraction is through with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.records.kinds import question_kinds
from memory_app.records.records import REPLACED, Stage


@dataclass(frozen=True, slots=True)
class TicketRow:
    """The state of a turn. ``reason`` says why no memory came of it, or why it failed; ``waiting_for`` says what a turn
    that is neither extracted nor failed waits for.

    ``attempts`` counts how often a worker began with it: to index it, and while it waits for extraction, with its
    session too.
    """

    id: UUID
    scope_id: int
    session: str
    seq: int
    stage: Stage
    accepted_at: datetime
    reason: str | None
    attempts: int
    failures: int
    memory_ids: tuple[UUID, ...]
    waiting_for: str | None = None


STAGE = f"""CASE WHEN t.failed_at IS NOT NULL THEN '{Stage.FAILED}'
         WHEN t.indexed_at IS NULL THEN '{Stage.ACCEPTED}'
         WHEN t.extracted_at IS NULL THEN '{Stage.INDEXED}' ELSE '{Stage.EXTRACTED}' END"""
"""The stage of a turn, in a statement that names its table ``t``."""

_EXTRACTED = text(
    f"""UPDATE turns t
    SET extracted_at = now(), reason = CASE WHEN t.reason = '{REPLACED}' THEN t.reason ELSE v.reason END
    FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS v(id, reason)
    WHERE t.scope_id = :scope AND t.id = v.id"""
)
_TICKET = text(
    f"""
    SELECT t.id, t.scope_id, s.name, t.seq, {STAGE} AS stage, t.accepted_at,
           coalesce(t.failed_reason, t.reason) AS reason, t.failures, t.starts + t.failures
               + CASE WHEN t.indexed_at IS NULL OR t.extracted_at IS NOT NULL OR t.failed_at IS NOT NULL THEN 0
                      ELSE s.starts + s.failures END AS attempts,
           ARRAY(SELECT e.memory_id FROM evidence e
                 JOIN memories m ON m.scope_id = e.scope_id AND m.id = e.memory_id AND m.kind <> ALL(:questions)
                 WHERE e.turn_scope_id = t.scope_id AND e.turn_id = t.id ORDER BY e.memory_id) AS memory_ids
    FROM turns t JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    WHERE t.id = :id
    """
)


def mark_extracted(connection: Connection, scope_id: int, reasons: dict[UUID, str | None]) -> None:
    """Note that extraction is through with these turns, and why where nothing came of one."""
    # In the order in which the indexer locks them, so that the two cannot wait for each other.
    ordered = sorted(reasons.items())
    values = {
        "scope": scope_id,
        "ids": [id for id, _ in ordered],
        "reasons": [reason for _, reason in ordered],
    }
    connection.execute(_EXTRACTED, values)


def ticket(connection: Connection, turn_id: UUID) -> TicketRow | None:
    """The state of one turn of this tenant."""
    row = connection.execute(_TICKET, {"id": turn_id, "questions": list(question_kinds())}).one_or_none()
    if row is None:
        return None
    return TicketRow(
        id=row.id,
        scope_id=row.scope_id,
        session=row.name,
        seq=row.seq,
        stage=Stage(row.stage),
        accepted_at=row.accepted_at,
        reason=row.reason,
        attempts=row.attempts,
        failures=row.failures,
        memory_ids=tuple(row.memory_ids),
    )
