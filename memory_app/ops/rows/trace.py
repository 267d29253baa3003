"""Queries that follow a piece of work through turns, runs and memories by their ids. No text is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.expressions import column_list
from memory_app.db.tables.memories import memories
from memory_app.db.tables.turns import turns
from memory_app.records.run import RunName

LIMIT = 500
"""Most rows of one sort."""


@dataclass(frozen=True, slots=True)
class TracedTurn:
    """A turn: where it stands, who brought and indexed it, and when it reached each stage."""

    id: UUID
    scope_id: int
    session_id: int
    agent: str
    user: str
    session: str
    seq: int
    request_id: UUID | None
    index_task_id: UUID | None
    accepted_at: datetime
    indexed_at: datetime | None
    extracted_at: datetime | None
    failed_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run: who asked for it and did it last, when, and how it ended."""

    id: UUID
    name: str
    state: str
    scope_id: int | None
    session_id: int | None
    from_seq: int | None
    to_seq: int | None
    request_id: UUID | None
    task_id: UUID | None
    attempts: int
    model: str | None
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class TracedMemory:
    """A memory: the run that wrote it, when it was stored, and when and why it was retired."""

    id: UUID
    scope_id: int
    kind: str
    run_id: UUID | None
    stored_at: datetime
    retired_at: datetime | None
    retired_reason: str | None
    successor: UUID | None


_OWN = (
    turns.c.id,
    turns.c.scope_id,
    turns.c.session_id,
    turns.c.seq,
    turns.c.request_id,
    turns.c.index_task_id,
    turns.c.accepted_at,
    turns.c.indexed_at,
    turns.c.extracted_at,
    turns.c.failed_at,
)
_TURNS = f"""
    SELECT {column_list(_OWN, "t")}, coalesce(t.failed_reason, t.reason) AS reason,
           a.name AS agent, u.name AS user, s.name AS session
    FROM turns t JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    JOIN scopes c ON c.id = t.scope_id JOIN agents a ON a.id = c.agent_id JOIN users u ON u.id = c.user_id
"""
_TURNS_BY_ID = text(
    f"""{_TURNS} WHERE t.id = :id OR t.request_id = :id OR t.index_task_id = :id
    ORDER BY t.id LIMIT {LIMIT}"""
)
_TURNS_OF_MEMORIES = text(
    f"""{_TURNS} WHERE (t.scope_id, t.id) IN (
        SELECT e.turn_scope_id, e.turn_id FROM evidence e
        JOIN unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[])) AS v(scope_id, id)
          ON e.scope_id = v.scope_id AND e.memory_id = v.id)
    ORDER BY t.id LIMIT {LIMIT}"""
)
_TURNS_OF_RUNS = text(
    f"""{_TURNS} JOIN unnest(CAST(:scopes AS bigint[]), CAST(:sessions AS bigint[]), CAST(:low AS integer[]),
                             CAST(:high AS integer[])) AS v(scope_id, session_id, low, high)
      ON t.scope_id = v.scope_id AND t.session_id = v.session_id AND t.seq BETWEEN v.low AND v.high
    ORDER BY t.id LIMIT {LIMIT}"""
)

_RUNS = """
    SELECT r.id, r.name, r.state, r.scope_id, r.session_id, r.from_seq, r.to_seq, r.request_id, r.task_id, r.attempts,
           coalesce(r.report #>> '{made,model}', r.model) AS model, r.reason,
           r.created_at, r.started_at, r.finished_at
    FROM runs r
"""
_RUNS_BY_ID = text(
    f"""{_RUNS} WHERE r.id = ANY(:ids) OR r.request_id = ANY(:ids) OR r.task_id = ANY(:ids)
    ORDER BY r.id LIMIT {LIMIT}"""
)
_RUNS_OF_TURNS = text(
    f"""{_RUNS} WHERE r.name = '{RunName.EXTRACT}' AND EXISTS (
        SELECT FROM unnest(CAST(:scopes AS bigint[]), CAST(:sessions AS bigint[]), CAST(:seqs AS integer[]))
            AS v(scope_id, session_id, seq)
        WHERE r.scope_id = v.scope_id AND r.session_id = v.session_id AND v.seq BETWEEN r.from_seq AND r.to_seq)
      AND r.scope_id = ANY(:scopes) AND r.session_id = ANY(:sessions)
    ORDER BY r.id LIMIT {LIMIT}"""
)

_COLUMNS = column_list(
    (
        memories.c.id,
        memories.c.scope_id,
        memories.c.kind,
        memories.c.run_id,
        memories.c.stored_at,
        memories.c.retired_at,
        memories.c.retired_reason,
        memories.c.successor,
    ),
    "m",
)
_MEMORY = text(f"SELECT {_COLUMNS} FROM memories m WHERE m.id = :id")
_MEMORIES_OF_TURNS = text(
    f"""SELECT {_COLUMNS} FROM memories m WHERE (m.scope_id, m.id) IN (
        SELECT e.scope_id, e.memory_id FROM evidence e
        JOIN unnest(CAST(:scopes AS bigint[]), CAST(:ids AS uuid[])) AS v(scope_id, id)
          ON e.turn_scope_id = v.scope_id AND e.turn_id = v.id)
    ORDER BY m.id LIMIT {LIMIT}"""
)
_MEMORIES_OF_RUNS = text(
    f"SELECT {_COLUMNS} FROM memories m WHERE m.run_id = ANY(:ids) ORDER BY m.id LIMIT {LIMIT}"
)


def turns_by_id(connection: Connection, id: UUID) -> tuple[TracedTurn, ...]:
    """The turn of this id, and the turns that the request or task of this id brought or indexed."""
    return tuple(TracedTurn(**row._mapping) for row in connection.execute(_TURNS_BY_ID, {"id": id}))


def turns_of_memories(connection: Connection, rows: Sequence[TracedMemory]) -> tuple[TracedTurn, ...]:
    """The turns that memories rest on."""
    values = {"scopes": [row.scope_id for row in rows], "ids": [row.id for row in rows]}
    return tuple(TracedTurn(**row._mapping) for row in connection.execute(_TURNS_OF_MEMORIES, values))


def turns_of_runs(connection: Connection, rows: Sequence[TracedRun]) -> tuple[TracedTurn, ...]:
    """The turns that extractions read."""
    extractions = [row for row in rows if row.name == RunName.EXTRACT]
    values = {
        "scopes": [row.scope_id for row in extractions],
        "sessions": [row.session_id for row in extractions],
        "low": [row.from_seq for row in extractions],
        "high": [row.to_seq for row in extractions],
    }
    return tuple(TracedTurn(**row._mapping) for row in connection.execute(_TURNS_OF_RUNS, values))


def runs_by_id(connection: Connection, ids: Sequence[UUID]) -> tuple[TracedRun, ...]:
    """The runs of these ids, and those that the requests or tasks of these ids asked for or did."""
    return tuple(TracedRun(**row._mapping) for row in connection.execute(_RUNS_BY_ID, {"ids": list(ids)}))


def runs_of_turns(connection: Connection, rows: Sequence[TracedTurn]) -> tuple[TracedRun, ...]:
    """The extractions that read turns."""
    values = {
        "scopes": [row.scope_id for row in rows],
        "sessions": [row.session_id for row in rows],
        "seqs": [row.seq for row in rows],
    }
    return tuple(TracedRun(**row._mapping) for row in connection.execute(_RUNS_OF_TURNS, values))


def memory(connection: Connection, id: UUID) -> tuple[TracedMemory, ...]:
    """The memory of this id, or nothing."""
    return tuple(TracedMemory(**row._mapping) for row in connection.execute(_MEMORY, {"id": id}))


def memories_of_turns(connection: Connection, rows: Sequence[TracedTurn]) -> tuple[TracedMemory, ...]:
    """The memories that rest on turns."""
    values = {"scopes": [row.scope_id for row in rows], "ids": [row.id for row in rows]}
    return tuple(TracedMemory(**row._mapping) for row in connection.execute(_MEMORIES_OF_TURNS, values))


def memories_of_runs(connection: Connection, rows: Sequence[TracedRun]) -> tuple[TracedMemory, ...]:
    """The memories that runs wrote."""
    values = {"ids": [row.id for row in rows]}
    return tuple(TracedMemory(**row._mapping) for row in connection.execute(_MEMORIES_OF_RUNS, values))
