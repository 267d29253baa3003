"""Statements of retention: what of a scope is older than a limit, and how its words go. The scope's row must be locked
by whoever changes anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.forget.rows.erase import TurnRow
from memory_app.records.records import WORDS_DELETED, Retirement

# Nothing that was accepted is lost before it took effect: a turn waits for the index, and for extraction where its
# agent extracts. One that failed has come to its end.
_IS_DONE = """(t.failed_at IS NOT NULL
    OR t.indexed_at IS NOT NULL AND (t.extracted_at IS NOT NULL OR NOT CAST(:extracting AS boolean)))"""
# A few at a time, and without those that somebody holds. The role stands in place of the speaker, since a name is
# required there. A failed turn can be replayed no more, so it is settled as by a discard.
_DELETE_WORDS = text(
    f"""
    WITH old AS MATERIALIZED (
        SELECT t.id, t.session_id, t.seq, t.speaker, t.text, t.idempotency_key, t.request_hash, t.terms,
               t.failed_at IS NOT NULL AND t.extracted_at IS NULL AS was_failed
        FROM turns t
        WHERE t.scope_id = :scope AND t.words_deleted_at IS NULL
          AND t.accepted_at < now() - CAST(:age AS interval) AND {_IS_DONE}
        ORDER BY t.accepted_at LIMIT :most FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE turns t
    SET words_deleted_at = now(), reason = :reason, text = '', speaker = t.role, emotional_tone = NULL,
        tools_used = '{{}}', metadata = '{{}}', redacted = NULL, embedding = NULL, embedding_model = NULL,
        keywords = NULL, terms = NULL, traits = 0,
        extracted_at = CASE WHEN old.was_failed THEN now() ELSE t.extracted_at END
    FROM old WHERE t.scope_id = :scope AND t.id = old.id RETURNING old.*
    """
)
# The hash is one of the words, which could be found by trying.
_HIDE_KEYS = text(
    r"""
    UPDATE turns t SET idempotency_key = v.key, request_hash = '\x'
    FROM unnest(CAST(:ids AS uuid[]), CAST(:keys AS text[])) AS v(id, key)
    WHERE t.scope_id = :scope AND t.id = v.id
    """
)
_DROP_NOTES = text(
    "UPDATE feedback SET note = NULL WHERE scope_id = :scope AND turn_id = ANY(:ids) AND note IS NOT NULL"
)
_NEXT_TURN = text(
    """SELECT min(t.accepted_at) + CAST(:age AS interval) FROM turns t
    WHERE t.scope_id = :scope AND t.words_deleted_at IS NULL"""
)
_LIMITS = "unnest(CAST(:kinds AS text[]), CAST(:days AS integer[])) AS v(kind, days)"
# A row that was merged goes with the one that it is a part of, which was confirmed since.
_IS_OLD = f"""m.confirmed_at < now() - make_interval(days => v.days)
    AND (m.retired_reason IS DISTINCT FROM '{Retirement.MERGED}' OR m.successor IS NULL)"""
_OLD_MEMORIES = text(
    f"""SELECT m.id FROM memories m JOIN {_LIMITS} USING (kind)
    WHERE m.scope_id = :scope AND {_IS_OLD} ORDER BY m.id"""
)
_OLD_WITH_PARTS = text(
    f"""
    WITH RECURSIVE gone AS (
        SELECT m.id, m.kind FROM memories m JOIN {_LIMITS} USING (kind)
        WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND {_IS_OLD}
        UNION
        SELECT p.id, p.kind FROM gone g JOIN memories p ON p.scope_id = :scope AND p.successor = g.id
          AND p.retired_reason = '{Retirement.MERGED}'
    )
    SELECT id, kind FROM gone ORDER BY id
    """
)
_KINDS = text("SELECT id, kind FROM memories WHERE scope_id = :scope AND id = ANY(:ids)")
_NEXT_MEMORY = text(
    f"""SELECT min(m.confirmed_at + make_interval(days => v.days)) FROM memories m JOIN {_LIMITS} USING (kind)
    WHERE m.scope_id = :scope
      AND (m.retired_reason IS DISTINCT FROM '{Retirement.MERGED}' OR m.successor IS NULL)"""
)
# What is left of a run can still be undone; with an image of a row that is gone, none of it could.
_DROP_IMAGES = text(
    """
    DELETE FROM images i WHERE i.scope_id = :scope AND (
        i.row_key ->> 'id' = ANY(:ids) OR i.row_key ->> 'memory_id' = ANY(:ids)
        OR i.row_key ->> 'source_id' = ANY(:ids) OR i.row_key ->> 'target_id' = ANY(:ids)
        OR i.before ->> 'successor' = ANY(:ids))
    """
)


@dataclass(frozen=True, slots=True)
class OldTurn(TurnRow):
    """A turn as it was before its words went. ``terms`` are None where it was not searched; ``was_failed``: it had been
    set aside, and its session may have stopped for it."""

    terms: Sequence[int] | None
    was_failed: bool


def delete_words(
    connection: Connection, scope_id: int, *, age: timedelta, extracting: bool, limit: int
) -> tuple[OldTurn, ...]:
    """Delete the words of turns accepted longer ago than ``age`` whose work is done; how they were before.

    ``extracting``: the agent extracts, so that a turn is not done before it is extracted.
    """
    values = {
        "scope": scope_id,
        "age": age,
        "extracting": extracting,
        "most": limit,
        "reason": WORDS_DELETED,
    }
    return tuple(OldTurn(**row._mapping) for row in connection.execute(_DELETE_WORDS, values))


def hide_keys(connection: Connection, scope_id: int, keys: Mapping[UUID, str]) -> None:
    """Put what stands for it in place of each turn's idempotency key, by the id of the turn."""
    if keys:
        values = {"scope": scope_id, "ids": list(keys), "keys": list(keys.values())}
        connection.execute(_HIDE_KEYS, values)


def drop_notes(connection: Connection, scope_id: int, turn_ids: Sequence[UUID]) -> None:
    """Delete what people wrote about these turns; their ratings stay."""
    connection.execute(_DROP_NOTES, {"scope": scope_id, "ids": list(turn_ids)})


def next_turn(connection: Connection, scope_id: int, *, age: timedelta) -> datetime | None:
    """When the next turn is as old as that; in the past where one is whose work is not done."""
    at: datetime | None = connection.execute(_NEXT_TURN, {"scope": scope_id, "age": age}).scalar_one()
    return at


def old_memories(connection: Connection, scope_id: int, *, days: Mapping[str, int]) -> tuple[UUID, ...]:
    """Memories that were confirmed longer ago than the limit of their kind, retired ones too. Reads the whole scope."""
    if not days:
        return ()
    return tuple(connection.execute(_OLD_MEMORIES, {"scope": scope_id, **_limits(days)}).scalars())


def with_parts(
    connection: Connection, scope_id: int, ids: Sequence[UUID], *, days: Mapping[str, int]
) -> dict[UUID, str]:
    """Those of ``ids`` that are still older than their limit, and the rows merged into them: the kind of each."""
    values = {"scope": scope_id, "ids": list(ids), **_limits(days)}
    return {row.id: row.kind for row in connection.execute(_OLD_WITH_PARTS, values)}


def kinds_of(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, str]:
    return {row.id: row.kind for row in connection.execute(_KINDS, {"scope": scope_id, "ids": list(ids)})}


def next_memory(connection: Connection, scope_id: int, *, days: Mapping[str, int]) -> datetime | None:
    """When the next memory is as old as the limit of its kind."""
    if not days:
        return None
    at: datetime | None = connection.execute(_NEXT_MEMORY, {"scope": scope_id, **_limits(days)}).scalar_one()
    return at


def drop_images(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Delete the images that jobs keep of memories which are deleted, and of what is tied to them."""
    connection.execute(_DROP_IMAGES, {"scope": scope_id, "ids": list(map(str, ids))})


def _limits(days: Mapping[str, int]) -> dict[str, Any]:
    return {"kinds": list(days), "days": list(days.values())}
