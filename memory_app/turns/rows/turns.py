"""Rows of turns: accept them once and in order, claim them for indexing, read them by id and by session.

A turn is never edited.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Text, bindparam, func, null, or_, select, text, update

from memory_app.db.expressions import among, column_list, columns_of
from memory_app.db.tables.turns import sessions, turns
from memory_app.db.vectors import sparse_text, terms_text, vector_text
from memory_app.memories.rows.turn_rows import TURNS, read_turn
from memory_app.records.kinds import question_kinds
from memory_app.records.records import ListedTurn, NewTurn, Stage, Ticket, Turn
from memory_app.turns.rows.sessions import Debounce, LockedSession


@dataclass(frozen=True, slots=True)
class KnownKey:
    """What an idempotency key was used for before."""

    request_hash: bytes
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A turn lent for indexing; ``starts`` counts this start."""

    tenant_id: int
    scope_id: int
    id: UUID
    starts: int


@dataclass(frozen=True, slots=True)
class IndexedTurn:
    """What search reads of a turn: its vector, the document side of its keyword score, the bits of `Trait`."""

    scope_id: int
    id: UUID
    embedding: Sequence[float]
    keywords: dict[int, float]
    traits: int


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


_STAGE = f"""CASE WHEN t.failed_at IS NOT NULL THEN '{Stage.FAILED}'
         WHEN t.indexed_at IS NULL THEN '{Stage.ACCEPTED}'
         WHEN t.extracted_at IS NULL THEN '{Stage.INDEXED}' ELSE '{Stage.EXTRACTED}' END"""

_KNOWN_KEYS = text(
    f"""SELECT t.idempotency_key, t.request_hash, t.id, t.seq, {_STAGE} AS stage
    FROM turns t WHERE t.tenant_id = :tenant AND t.idempotency_key = ANY(:keys)"""
)

_NEW_TURN = columns_of(turns, NewTurn)
_GIVEN = (turns.c.seq, *_NEW_TURN, turns.c.request_hash)
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
    INSERT INTO turns (tenant_id, scope_id, session_id, {column_list(_GIVEN)})
    SELECT :tenant, :scope, :session, {column_list(_GIVEN, "t", at="coalesce(t.at, now())")}
    FROM jsonb_populate_recordset(CAST(NULL AS turns), CAST(:turns AS jsonb)) AS t
    ORDER BY t.seq
    RETURNING id, seq
    """
)

_CLAIM = text("SELECT tenant_id, scope_id, id, starts FROM claim_turns(:batch, :lease)")

_BY_ID = TURNS.where(among(turns.c.scope_id, "scopes"), among(turns.c.id, "ids")).order_by(turns.c.id)
_LISTED_FIELDS = select(
    turns.c.id, *(turns.c[field.name] for field in fields(ListedTurn)[len(fields(Turn)) :])
).where(turns.c.scope_id == bindparam("scope"), among(turns.c.id, "ids"))
"""What a listing shows of a turn beside what `TURNS` reads."""
_SESSION_NAME = bindparam("session", type_=Text)
_LATEST = (
    TURNS.where(
        turns.c.scope_id == bindparam("scope"),
        or_(_SESSION_NAME.is_(None), sessions.c.name == _SESSION_NAME),
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
).order_by(turns.c.seq)

# Only where the turn is not indexed yet: a worker whose lease ran out may come second, and must count nothing twice.
_INDEX = text(
    """
    UPDATE turns t
    SET indexed_at = now(), lease_until = NULL, failures = 0, embedding_model = :model,
        embedding = CAST(v.embedding AS halfvec), keywords = CAST(v.keywords AS sparsevec),
        terms = CAST(v.terms AS integer[]), traits = v.traits
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[]), CAST(:embeddings AS text[]),
                CAST(:keywords AS text[]), CAST(:terms AS text[]), CAST(:traits AS smallint[]))
         AS v(scope_id, id, embedding, keywords, terms, traits)
    WHERE t.scope_id = v.scope_id AND t.id = v.id AND t.indexed_at IS NULL
    RETURNING t.scope_id, t.id
    """
)
# More starts than at the claim are those of later workers: they stay counted, and the last one's lease goes on. Fewer:
# somebody explained this start already.
_POSTPONE = text(
    """
    UPDATE turns t
    SET starts = t.starts - v.starts, failures = t.failures + 1,
        lease_until = CASE WHEN t.starts > v.starts THEN t.lease_until ELSE now() + CAST(:wait AS interval) END
    FROM unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[]), CAST(:starts AS smallint[])) AS v(scope_id, id, starts)
    WHERE t.scope_id = v.scope_id AND t.id = v.id AND t.indexed_at IS NULL AND t.failed_at IS NULL
      AND t.starts >= v.starts
    """
)
_FAIL = (
    update(turns)
    .where(turns.c.scope_id == bindparam("scope"), among(turns.c.id, "ids"), turns.c.failed_at.is_(None))
    .values(failed_at=func.now(), lease_until=null())
    .returning(turns.c.id)
)
_EXTRACTED = text(
    """UPDATE turns t SET extracted_at = now(), reason = v.reason
    FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS v(id, reason)
    WHERE t.scope_id = :scope AND t.id = v.id"""
)
_TICKET = text(
    f"""
    SELECT t.id, t.scope_id, s.name, t.seq, {_STAGE} AS stage, t.accepted_at,
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
_UNINDEXED = (
    TURNS.where(among(turns.c.scope_id, "scopes"), turns.c.indexed_at.is_(None), turns.c.failed_at.is_(None))
    .order_by(turns.c.id.desc())
    .limit(bindparam("limit"))
)
_FAILED = text(
    """
    SELECT t.id, a.name AS agent, u.name AS user, s.name AS session, t.seq, t.accepted_at, t.failed_at,
           t.failed_reason AS reason, t.starts + t.failures AS attempts, t.indexed_at IS NOT NULL AS is_indexed
    FROM turns t
    JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    JOIN scopes c ON c.id = t.scope_id JOIN agents a ON a.id = c.agent_id JOIN users u ON u.id = c.user_id
    WHERE t.failed_at IS NOT NULL AND t.extracted_at IS NULL
      AND (CAST(:before AS uuid) IS NULL OR t.id < :before)
    ORDER BY t.id DESC LIMIT :limit
    """
)
_SETTLE = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), turns.c.failed_at.is_not(None), turns.c.extracted_at.is_(None))
    .returning(turns.c.scope_id, turns.c.session_id, turns.c.seq)
)
"""Change a turn that was set aside, unless it was replayed or discarded already."""
# Due from now on, not since it was accepted: nobody was late.
_REPLAY = _SETTLE.values(failed_at=null(), failed_reason=null(), starts=0, failures=0, lease_until=func.now())
_DISCARD = _SETTLE.values(extracted_at=func.now())


# A few at a time, and without those that somebody holds: indexing of new turns goes on meanwhile.
_LAPSE = text(
    """
    WITH old AS MATERIALIZED (
        SELECT t.id, t.terms FROM turns t
        WHERE t.scope_id = :scope AND t.keywords IS NOT NULL AND t.accepted_at < now() - CAST(:age AS interval)
        ORDER BY t.accepted_at LIMIT :most FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE turns t SET embedding = NULL, embedding_model = NULL, keywords = NULL, terms = NULL
    FROM old WHERE t.scope_id = :scope AND t.id = old.id RETURNING old.terms
    """
)
_OLDEST_SEARCHED = (
    select(turns.c.accepted_at)
    .where(turns.c.scope_id == bindparam("scope"), turns.c.keywords.is_not(None))
    .order_by(turns.c.accepted_at)
    .limit(1)
)


def known_keys(connection: Connection, tenant_id: int, keys: Sequence[str]) -> dict[str, KnownKey]:
    """Earlier uses of these idempotency keys by this tenant."""
    rows = connection.execute(_KNOWN_KEYS, {"tenant": tenant_id, "keys": list(keys)})
    return {
        row.idempotency_key: KnownKey(
            bytes(row.request_hash), Ticket(row.id, row.seq, Stage(row.stage), duplicate=True)
        )
        for row in rows
    }


def accept(
    connection: Connection,
    tenant_id: int,
    session: LockedSession,
    *,
    new_turns: Sequence[tuple[NewTurn, str, bytes | None]],
    debounce: Debounce | None,
) -> tuple[tuple[UUID, int], ...]:
    """Store turns (each with its speaker and request hash) behind the session's last one; their ids and numbers.

    The session's row must be locked by this transaction. ``debounce`` None means that nothing is extracted from this
    session.
    """
    rows = [
        {
            **{column.name: getattr(turn, column.name) for column in _NEW_TURN},
            "seq": seq,
            "speaker": speaker,
            "request_hash": rf"\x{request_hash.hex()}" if request_hash else None,
        }
        for seq, (turn, speaker, request_hash) in enumerate(new_turns, start=session.next_seq)
    ]
    values = {
        "tenant": tenant_id,
        "scope": session.scope_id,
        "session": session.id,
        "n": len(rows),
        "turns": json.dumps(rows, ensure_ascii=False, default=str),
        "extracting": debounce is not None,
        "after_turns": debounce.after_turns if debounce else 0,
        "max_age": debounce.max_age if debounce else timedelta(0),
        "idle": debounce.idle if debounce else timedelta(0),
    }
    return tuple((row.id, row.seq) for row in connection.execute(_ACCEPT, values))


def claim(connection: Connection, *, batch: int, lease: timedelta) -> tuple[ClaimedTurn, ...]:
    """Borrow unindexed turns of any session and tenant; counts a start for each."""
    rows = connection.execute(_CLAIM, {"batch": batch, "lease": lease})
    return tuple(ClaimedTurn(*row) for row in rows)


def by_ids(connection: Connection, scope_ids: Sequence[int], ids: Iterable[UUID]) -> tuple[Turn, ...]:
    """Turns by id, oldest first; ids outside the scopes are simply absent."""
    rows = connection.execute(_BY_ID, {"scopes": list(scope_ids), "ids": list(ids)})
    return tuple(read_turn(row) for row in rows)


def latest(connection: Connection, scope_id: int, *, session: str | None, limit: int) -> tuple[Turn, ...]:
    """The newest turns by acceptance, oldest first."""
    rows = connection.execute(_LATEST, {"scope": scope_id, "session": session, "limit": limit})
    return tuple(reversed([read_turn(row) for row in rows]))


def listed(connection: Connection, scope_id: int, of: Sequence[Turn]) -> tuple[ListedTurn, ...]:
    """These turns with all that their callers gave, in the same order; one that was erased meanwhile is absent."""
    rows = connection.execute(_LISTED_FIELDS, {"scope": scope_id, "ids": [turn.id for turn in of]})
    beside = {row.id: row._mapping for row in rows}
    return tuple(
        ListedTurn(**{field.name: getattr(turn, field.name) for field in fields(Turn)} | {**beside[turn.id]})
        for turn in of
        if turn.id in beside
    )


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
    """Turns of a session with ``low`` ≤ seq ≤ ``high`` in order, without those that failed."""
    values = {"scope": scope_id, "session": session_id, "low": low, "high": high}
    return tuple(read_turn(row) for row in connection.execute(_RANGE, values))


def index(connection: Connection, indexed: Sequence[IndexedTurn], *, model: str) -> set[UUID]:
    """Write vectors; the ids that were not indexed before, so that a second worker counts nothing twice."""
    values = {
        "model": model,
        "scopes": [turn.scope_id for turn in indexed],
        "ids": [turn.id for turn in indexed],
        "embeddings": [vector_text(turn.embedding) for turn in indexed],
        "keywords": [sparse_text(turn.keywords) for turn in indexed],
        "terms": [terms_text(turn.keywords) for turn in indexed],
        "traits": [int(turn.traits) for turn in indexed],
    }
    return {row.id for row in connection.execute(_INDEX, values)}


def postpone(connection: Connection, claimed: Sequence[ClaimedTurn], wait: timedelta) -> None:
    """Give claimed turns back after a handled error; its start is explained, so it no longer counts."""
    values = {
        "scopes": [turn.scope_id for turn in claimed],
        "ids": [turn.id for turn in claimed],
        "starts": [turn.starts for turn in claimed],
        "wait": wait,
    }
    connection.execute(_POSTPONE, values)


def fail(connection: Connection, scope_id: int, ids: Sequence[UUID], *, reason: str) -> tuple[UUID, ...]:
    """Set turns aside with a reason; the ids that were not failed before."""
    rows = connection.execute(_FAIL, {"scope": scope_id, "ids": list(ids), "failed_reason": reason})
    return tuple(row.id for row in rows)


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


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that was set aside, without its text: where it stands, since when, why, and in which stage."""

    id: UUID
    agent: str
    user: str
    session: str
    seq: int
    accepted_at: datetime
    failed_at: datetime
    reason: str
    attempts: int
    is_indexed: bool


def failed(connection: Connection, *, limit: int, before: UUID | None) -> tuple[FailedTurn, ...]:
    """Turns of this tenant that wait for a replay or a discard, newest first."""
    rows = connection.execute(_FAILED, {"limit": limit, "before": before})
    return tuple(FailedTurn(**row._mapping) for row in rows)


def replay(connection: Connection, turn_id: UUID) -> tuple[int, int, int] | None:
    """Take back the failure; the turn's (scope, session, seq), or None when it had not failed."""
    row = connection.execute(_REPLAY, {"turn": turn_id}).one_or_none()
    return None if row is None else (row.scope_id, row.session_id, row.seq)


def discard(connection: Connection, turn_id: UUID) -> tuple[int, int, int] | None:
    """Close a failed turn without effects; its (scope, session, seq), or None when it had not failed."""
    row = connection.execute(_DISCARD, {"turn": turn_id}).one_or_none()
    return None if row is None else (row.scope_id, row.session_id, row.seq)


def lapse(connection: Connection, scope_id: int, *, age: timedelta, most: int) -> list[tuple[int, ...]]:
    """Delete the search columns of turns accepted longer ago than ``age``; the terms that each of them had."""
    rows = connection.execute(_LAPSE, {"scope": scope_id, "age": age, "most": most})
    return [tuple(row.terms or ()) for row in rows]


def oldest_searched(connection: Connection, scope_id: int) -> datetime | None:
    """When the oldest turn that search can find was accepted."""
    return connection.execute(_OLDEST_SEARCHED, {"scope": scope_id}).scalar_one_or_none()


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
