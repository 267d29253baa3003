"""Memories: written by the one write path, read by every listing. A text is never edited; only counters move."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Connection,
    DateTime,
    Interval,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    text,
    update,
)

from memory_app.db.expressions import among, before_if_given, column_list, many
from memory_app.db.tables.memories import memories
from memory_app.memories.rows import evidence
from memory_app.memories.rows.memory_rows import (
    INSERTED_COLUMNS,
    IS_CURRENT,
    MEMORIES,
    REPEATED_COLUMNS,
    NewMemory,
    ScopedMemory,
    memory_of,
    statement_values,
    values_of,
)
from memory_app.records.kinds import material_kinds
from memory_app.records.records import Memory, MemoryRow, Retirement

# The ids are made first and once, since RETURNING promises no order and `new_id()` gives another one at each call.
_INSERT = text(
    f"""
    WITH given AS MATERIALIZED (
        SELECT new_id() AS new_id, v.* FROM jsonb_populate_recordset(
            CAST(NULL AS memories), CAST(:rows AS jsonb)) WITH ORDINALITY AS v
        ORDER BY v.ordinality
    ), stored AS (
        INSERT INTO memories (id, tenant_id, scope_id, {column_list(INSERTED_COLUMNS)})
        SELECT v.new_id, :tenant, :scope, {column_list(INSERTED_COLUMNS, "v")}
        FROM given v ORDER BY v.ordinality
    )
    SELECT new_id FROM given ORDER BY ordinality
    """
)
# The copy keeps everything but its interval; it is a row of its own from now on.
_RESUMED_COLUMNS = column_list(
    column for column in INSERTED_COLUMNS if column.name not in {"valid_from", "valid_until", "created_at"}
)

# Vectors of two models cannot be compared, and a merged row is as near as the farthest statement behind it.
_PAIRS = text(
    f"""
    WITH RECURSIVE behind AS (
        SELECT g.number, m.id AS top, m.id, m.embedding, m.embedding_model
        FROM unnest(CAST(:ids AS uuid[]), CAST(:groups AS integer[])) AS g(id, number)
        JOIN memories m ON m.scope_id = :scope AND m.id = g.id
        UNION ALL
        SELECT b.number, b.top, p.id, p.embedding, p.embedding_model FROM behind b
        JOIN memories p ON p.scope_id = :scope AND p.successor = b.id AND p.retired_reason = '{Retirement.MERGED}'
    )
    SELECT a.top AS first, b.top AS second, min(1 - (a.embedding <=> b.embedding)) AS similarity
    FROM behind a
    JOIN behind b ON b.number = a.number AND b.top > a.top AND b.embedding_model = a.embedding_model
    GROUP BY a.top, b.top
    """
)
_REINFORCE = text(
    f"""
    UPDATE memories m SET {", ".join(f"{column.name} = v.{column.name}" for column in REPEATED_COLUMNS)}
    FROM jsonb_populate_record(CAST(NULL AS memories), CAST(:row AS jsonb)) AS v
    WHERE m.scope_id = :scope AND m.id = :id
    """
)
# What ends in the future is current until then; the end never comes before the beginning, which a CHECK refuses.
_CUT = text(
    f"""
    UPDATE memories SET valid_until = greatest(CAST(:at AS timestamptz), valid_from),
        retired_at = CASE WHEN :at <= now() THEN coalesce(retired_at, now()) ELSE retired_at END,
        retired_reason = CASE WHEN :at <= now() THEN coalesce(retired_reason, '{Retirement.SUPERSEDED}')
                              ELSE retired_reason END
    WHERE scope_id = :scope AND id = :id
    """
)
_RESUME = text(
    f"""
    INSERT INTO memories (tenant_id, scope_id, valid_from, valid_until, {_RESUMED_COLUMNS})
    SELECT tenant_id, scope_id, :valid_from, CAST(:valid_until AS timestamptz), {_RESUMED_COLUMNS}
    FROM memories WHERE scope_id = :scope AND id = :id
    RETURNING id
    """
)
_UNTIL = bindparam("until", type_=DateTime(timezone=True))
_RETIRE = (
    update(memories)
    .where(
        memories.c.scope_id == bindparam("scope"),
        among(memories.c.id, "ids"),
        memories.c.retired_at.is_(None),
    )
    .values(
        retired_at=func.now(),
        # GREATEST leaves NULL out, and would end the interval where it began.
        valid_until=case(
            (_UNTIL.is_(None), memories.c.valid_until), else_=func.greatest(_UNTIL, memories.c.valid_from)
        ),
    )
    .returning(memories.c.id)
)
_SUCCEED = text(
    """
    UPDATE memories m SET successor = v.successor
    FROM unnest(CAST(:ids AS uuid[]), CAST(:successors AS uuid[])) AS v(id, successor)
    WHERE m.scope_id = :scope AND m.id = v.id
    """
)
_OF_SCOPE = and_(memories.c.scope_id == bindparam("scope"), among(memories.c.id, "ids"))
_VECTORS = select(memories.c.id, cast(memories.c.embedding, Text).label("embedding")).where(_OF_SCOPE)
_READ = MEMORIES.where(memories.c.id == bindparam("memory"))
_TAG = bindparam("tag", type_=Text)
_LIST = (
    MEMORIES.where(
        among(memories.c.scope_id, "scopes"),
        or_(many(memories.c.kind, "kinds").is_(None), among(memories.c.kind, "kinds")),
        or_(_TAG.is_(None), any_(memories.c.tags) == _TAG),
        before_if_given(memories.c.id, "before"),
        or_(bindparam("history", type_=Boolean), IS_CURRENT),
    )
    .order_by(memories.c.id.desc())
    .limit(bindparam("limit"))
)
_LATELY = (
    MEMORIES.where(
        memories.c.scope_id == bindparam("scope"),
        memories.c.session_id.is_(None),
        among(memories.c.kind, "kinds"),
        memories.c.last_seen >= func.now() - bindparam("within", type_=Interval),
        IS_CURRENT,
    )
    .order_by(memories.c.last_seen.desc(), memories.c.id)
    .limit(bindparam("limit"))
)
_CURRENT_IDS = select(memories.c.id).where(_OF_SCOPE, IS_CURRENT)
_COUNTS = (
    select(memories.c.kind, func.count().label("n"))
    .where(among(memories.c.scope_id, "scopes"), IS_CURRENT)
    .group_by(memories.c.kind)
)
_TERMS = select(memories.c.terms).where(_OF_SCOPE)
_UNRETIRED = and_(
    memories.c.scope_id == bindparam("scope"),
    memories.c.id == bindparam("memory"),
    memories.c.retired_at.is_(None),
)
_PIN = update(memories).where(_UNRETIRED)
# Only counters move, and only of current rows: what was retired meanwhile keeps the counts it was retired with. The
# rows are of many scopes, none of which is held. So a row that an erasure or another writer has at this moment is left
# out: who waited for one row while holding another would wait in a circle with them.
_RECALLED = text(
    """
    WITH free AS MATERIALIZED (
        SELECT m.scope_id, m.id, v.n FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[])) AS v(id, n)
        JOIN memories m ON m.id = v.id AND m.retired_at IS NULL
        FOR NO KEY UPDATE OF m SKIP LOCKED
    )
    UPDATE memories m SET recall_count = m.recall_count + f.n, last_recalled = now()
    FROM free f WHERE m.scope_id = f.scope_id AND m.id = f.id
    """
)
_CLOSE = (
    update(memories)
    .where(_UNRETIRED)
    .values(
        valid_until=func.greatest(_UNTIL, memories.c.valid_from),
        retired_at=func.now(),
        retired_reason=Retirement.INVALIDATED.value,
    )
    .returning(memories.c.valid_until)
)


def insert(connection: Connection, tenant_id: int, scope_id: int, *, new: NewMemory) -> UUID:
    """One row; its id. The partial unique indexes refuse a second current row of the same statement."""
    (id,) = insert_all(connection, tenant_id, scope_id, new=[new])
    return id


def insert_all(
    connection: Connection, tenant_id: int, scope_id: int, *, new: Sequence[NewMemory]
) -> tuple[UUID, ...]:
    """As many rows in one statement; their ids, in the same order."""
    rows = json.dumps(list(map(values_of, new)), default=str)
    values = {"tenant": tenant_id, "scope": scope_id, "rows": rows}
    return tuple(connection.execute(_INSERT, values).scalars())


def pair_similarities(
    connection: Connection, scope_id: int, *groups: Sequence[UUID]
) -> Mapping[frozenset[UUID], float]:
    """For every pair within each of the ``groups`` the lowest cosine between any two of the statements behind them."""
    places = [(id, place) for place, group in enumerate(groups) for id in group]
    values = {
        "scope": scope_id,
        "ids": [id for id, _ in places],
        "groups": [place for _, place in places],
    }
    rows = connection.execute(_PAIRS, values)
    return {frozenset((row.first, row.second)): float(row.similarity) for row in rows}


def reinforce(connection: Connection, scope_id: int, *, row: MemoryRow) -> None:
    """Write a row as it stands after it was said again. The scope's row must be locked."""
    values = json.dumps(statement_values(row), default=str)
    connection.execute(_REINFORCE, {"scope": scope_id, "id": row.memory.id, "row": values})


def cut(connection: Connection, scope_id: int, memory_id: UUID, *, at: datetime) -> None:
    """End a row at ``at`` because something else holds from there; it stays as history."""
    connection.execute(_CUT, {"scope": scope_id, "id": memory_id, "at": at})


def resume(
    connection: Connection, scope_id: int, memory_id: UUID, *, start: datetime, until: datetime | None
) -> UUID:
    """A copy of a row that holds in another interval, with the same evidence and entities; its id."""
    values = {"scope": scope_id, "id": memory_id, "valid_from": start, "valid_until": until}
    copy: UUID = connection.execute(_RESUME, values).scalar_one()
    # With what the row rests on, or the copy would be a memory without a source.
    evidence.inherit(connection, scope_id, {copy: [memory_id]})
    return copy


def retire(
    connection: Connection,
    scope_id: int,
    ids: Sequence[UUID],
    *,
    reason: Retirement,
    successor: UUID | None = None,
    valid_until: datetime | None = None,
) -> tuple[UUID, ...]:
    """Take rows out of the current ones, for a reason, perhaps closing their interval, which never ends before it
    began; those that were current."""
    values = {
        "scope": scope_id,
        "ids": list(ids),
        "retired_reason": reason.value,
        "successor": successor,
        "until": valid_until,
    }
    return tuple(connection.execute(_RETIRE, values).scalars())


def succeed(connection: Connection, scope_id: int, successors: Mapping[UUID, UUID]) -> None:
    """Name for each row, which is retired already, the one that followed it."""
    if successors:
        values = {"scope": scope_id, "ids": list(successors), "successors": list(successors.values())}
        connection.execute(_SUCCEED, values)


def read(connection: Connection, memory_id: UUID) -> ScopedMemory | None:
    """One memory of this tenant, retired ones included."""
    row = connection.execute(_READ, {"memory": memory_id}).one_or_none()
    return None if row is None else ScopedMemory(row.scope_id, memory_of(row))


def listed(
    connection: Connection,
    scope_ids: Sequence[int],
    *,
    kinds: Sequence[str] | None,
    tag: str | None,
    limit: int,
    before: UUID | None,
    history: bool = False,
) -> tuple[Memory, ...]:
    """Newest first; ``before`` is the last id of the page before."""
    values = {
        "scopes": list(scope_ids),
        "kinds": list(kinds) if kinds else None,
        "tag": tag,
        "limit": limit,
        "before": before,
        "history": history,
    }
    return tuple(map(memory_of, connection.execute(_LIST, values)))


def lately_seen(
    connection: Connection, scope_id: int, *, within: timedelta, limit: int
) -> tuple[Memory, ...]:
    """What deep synthesis reads: current memories seen within a time, the latest first; without sessions' own."""
    values = {"scope": scope_id, "kinds": list(material_kinds()), "within": within, "limit": limit}
    return tuple(map(memory_of, connection.execute(_LATELY, values)))


def current_ids(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> set[UUID]:
    """Those of the memories that are still current."""
    return set(connection.execute(_CURRENT_IDS, {"scope": scope_id, "ids": list(ids)}).scalars())


def counts(connection: Connection, scope_ids: Sequence[int]) -> dict[str, int]:
    """Current memories by kind."""
    return {row.kind: int(row.n) for row in connection.execute(_COUNTS, {"scopes": list(scope_ids)})}


def vectors(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, list[float]]:
    """The stored vectors of rows."""
    rows = connection.execute(_VECTORS, {"scope": scope_id, "ids": list(ids)})
    return {row.id: [float(part) for part in json.loads(row.embedding)] for row in rows}


def keyword_terms(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> list[set[int]]:
    """The term ids each row is found by."""
    rows = connection.execute(_TERMS, {"scope": scope_id, "ids": list(ids)}).scalars()
    return [set(terms) for terms in rows if terms is not None]


def pin(connection: Connection, scope_id: int, memory_id: UUID, *, pinned: bool) -> bool:
    """False when the memory is retired or gone."""
    values = {"scope": scope_id, "memory": memory_id, "pinned": pinned}
    return connection.execute(_PIN, values).rowcount == 1


def note_recalls(connection: Connection, counts: Mapping[UUID, int]) -> int:
    """Count how often current memories were shown, but for those that somebody is writing; how many were counted."""
    ids = sorted(counts)
    values = {"ids": ids, "counts": [counts[id] for id in ids]}
    return connection.execute(_RECALLED, values).rowcount


def invalidate(connection: Connection, scope_id: int, memory_id: UUID, *, until: datetime) -> datetime | None:
    """Close the interval and keep the row as history; None when it was retired already."""
    values = {"scope": scope_id, "memory": memory_id, "until": until}
    return connection.execute(_CLOSE, values).scalar_one_or_none()
