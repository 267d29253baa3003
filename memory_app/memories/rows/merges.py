"""Queries of merges: rows with their parts, and making parts current again. The scope's row must be locked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Text, and_, bindparam, cast, delete, null, select, text, update

from memory_app.db.expressions import among
from memory_app.db.tables.memories import memories
from memory_app.db.tables.turns import sessions
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.memories import keyword_terms
from memory_app.memories.rows.memory_rows import MEMORIES, row_of
from memory_app.records.records import MemoryRow, Retirement


@dataclass(frozen=True, slots=True)
class Vectors:
    """Memories that may be compared with each other; shape of ``vectors``: (n, dimensions), unit rows."""

    ids: tuple[UUID, ...]
    vectors: NDArray[np.float32]


_OF_SCOPE = memories.c.scope_id == bindparam("scope")
_OF_IDS = and_(_OF_SCOPE, among(memories.c.id, "ids"))
_VECTORS = (
    select(memories.c.id, memories.c.session_id, cast(memories.c.embedding, Text).label("embedding"))
    .where(
        _OF_SCOPE,
        memories.c.kind == bindparam("kind"),
        memories.c.retired_at.is_(None),
        memories.c.valid_until.is_(None),
        memories.c.embedding_model == bindparam("model"),
    )
    .order_by(memories.c.id)
)
_SESSIONS = select(memories.c.id, memories.c.session_id).where(_OF_IDS)
_ROWS = MEMORIES.where(_OF_IDS).order_by(memories.c.id)
_PARTS = MEMORIES.where(
    _OF_SCOPE, among(memories.c.successor, "ids"), memories.c.retired_reason == Retirement.MERGED
).order_by(memories.c.id)
# By way of text, since PostgreSQL 16 has no min() of a uuid.
_TWINS = text(
    """
    SELECT p.id, min(o.id::text)::uuid AS twin FROM memories p
    JOIN memories o ON o.scope_id = p.scope_id AND o.kind = p.kind
      AND o.session_id IS NOT DISTINCT FROM p.session_id AND o.retired_at IS NULL AND o.valid_until IS NULL
      AND (o.canonical_key = p.canonical_key
           OR (o.single_valued AND p.single_valued AND o.subject_key = p.subject_key AND o.relation = p.relation))
    WHERE p.scope_id = :scope AND p.id = ANY(:ids) AND p.valid_until IS NULL AND o.id <> ALL(:besides)
      AND o.id <> p.id
    GROUP BY p.id ORDER BY p.id
    """
)
# Of parts with one text that which says which fact it is; the id decides between equals.
_CHOSEN = """
    SELECT DISTINCT ON (p.session_id, p.kind, p.canonical_key) p.id, p.session_id, p.kind, p.canonical_key
    FROM memories p WHERE p.scope_id = :scope AND p.id = ANY(:ids)
    ORDER BY p.session_id, p.kind, p.canonical_key, p.relation IS NULL, p.id"""
_RESTORE = text(
    f"""
    UPDATE memories m SET retired_at = NULL, retired_reason = NULL, successor = NULL
    FROM ({_CHOSEN}) c WHERE m.scope_id = :scope AND m.id = c.id
    """
)
_BESIDE = text(
    f"""
    UPDATE memories m SET successor = c.id
    FROM ({_CHOSEN}) c
    WHERE m.scope_id = :scope AND m.id = ANY(:ids) AND m.id <> c.id AND m.kind = c.kind
      AND m.session_id IS NOT DISTINCT FROM c.session_id AND m.canonical_key = c.canonical_key
    """
)
_REMOVE = delete(memories).where(_OF_IDS)
# A session repeats the memory that sums it up.
_DROP_SUMMARIES = (
    update(sessions)
    .where(sessions.c.scope_id == bindparam("scope"), among(sessions.c.summary_id, "ids"))
    .values(summary=null(), summary_id=null())
)


def rows(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[MemoryRow, ...]:
    """Memories by id, retired ones too."""
    return tuple(map(row_of, connection.execute(_ROWS, {"scope": scope_id, "ids": list(ids)})))


def parts(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[MemoryRow, ...]:
    """The rows that were merged into any of ``ids``, one step back."""
    return tuple(map(row_of, connection.execute(_PARTS, {"scope": scope_id, "ids": list(ids)})))


def twins(
    connection: Connection, scope_id: int, ids: Sequence[UUID], *, besides: Sequence[UUID]
) -> tuple[tuple[UUID, UUID], ...]:
    """Those of ``ids`` whose place is taken: a current row outside ``besides`` says the same, or holds the single value
    of the same relation."""
    values = {"scope": scope_id, "ids": list(ids), "besides": list(besides)}
    return tuple((row.id, row.twin) for row in connection.execute(_TWINS, values))


def restore(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Make merged rows current again, exactly as they were; of those that say the very same only one, the others stay
    merged into it."""
    values = {"scope": scope_id, "ids": list(ids)}
    # Of rows with the same text only one may be current, as an index demands; the others follow it.
    connection.execute(_RESTORE, values)
    connection.execute(_BESIDE, values)


def remove(connection: Connection, tenant_id: int, scope_id: int, *, ids: Sequence[UUID]) -> int:
    """Delete rows for good, with their share in the document frequencies, and the summaries of sessions that they were;
    how many there were."""
    # Counted before the rows go, since their terms go with them.
    count_terms(connection, tenant_id, scope_id, ids=ids, sign=-1)
    connection.execute(_DROP_SUMMARIES, {"scope": scope_id, "ids": list(ids)})
    return connection.execute(_REMOVE, {"scope": scope_id, "ids": list(ids)}).rowcount


def count_terms(
    connection: Connection, tenant_id: int, scope_id: int, *, ids: Sequence[UUID], sign: int = 1
) -> None:
    """Count rows in the document frequencies of their scope, or take them out with ``sign`` −1."""
    present = keyword_terms(connection, scope_id, ids)
    term_store.add(connection, tenant_id, [(scope_id, term_counts) for term_counts in present], sign=sign)


def vectors(connection: Connection, scope_id: int, *, kind: str, model: str) -> tuple[Vectors, ...]:
    """Vectors of the current, open-ended memories of a kind by this model, in one group per session."""
    groups: dict[int | None, list[tuple[UUID, NDArray[np.float32]]]] = defaultdict(list)
    for row in connection.execute(_VECTORS, {"scope": scope_id, "kind": kind, "model": model}):
        # Parsed in C: a scope may hold a hundred thousand vectors, and as floats of Python they would fill the memory.
        groups[row.session_id].append((row.id, np.fromstring(row.embedding[1:-1], dtype=np.float32, sep=",")))
    return tuple(map(_vectors, groups.values()))


def _vectors(group: Sequence[tuple[UUID, NDArray[np.float32]]]) -> Vectors:
    ids = tuple(id for id, _ in group)
    return Vectors(ids, _unit(np.stack([vector for _, vector in group])))


def sessions_of(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> dict[UUID, int | None]:
    """The session each memory belongs to; None for one of the user."""
    rows = connection.execute(_SESSIONS, {"scope": scope_id, "ids": list(ids)})
    return {row.id: row.session_id for row in rows}


def _unit(rows_of_floats: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows at length 1, which half precision in the table does not keep exactly."""
    lengths = np.linalg.norm(rows_of_floats, axis=1, keepdims=True)
    unit: NDArray[np.float32] = rows_of_floats / np.maximum(lengths, np.float32(1e-9))
    return unit
