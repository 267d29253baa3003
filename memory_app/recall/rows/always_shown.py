"""Memories that stand in every context window, whatever is asked: the strongest of some kinds, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from memory_app.db.expressions import among
from memory_app.db.tables.memories import memories
from memory_app.memories.rows.memory_rows import COLUMNS, CURRENT, IS_CURRENT, MEMORIES, memory_of
from memory_app.records.records import Memory
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow


@dataclass(frozen=True, slots=True)
class KindLimit:
    """At most ``limit`` current memories of a kind, of importance ``least`` and more."""

    kind: str
    limit: int
    least: int = 1


# Each kind and scope apart, so that `memories_kind_idx` gives the few rows in order; a sort over all kinds would read
# every memory.
_STRONGEST = text(
    f"""
    SELECT {COLUMNS}
    FROM unnest(CAST(:kinds AS text[]), CAST(:limits AS integer[]), CAST(:leasts AS integer[]))
        WITH ORDINALITY AS w(kind, most, least, place)
    CROSS JOIN unnest(CAST(:scopes AS bigint[])) AS s(id)
    CROSS JOIN LATERAL (
        SELECT m.* FROM memories m
        WHERE m.scope_id = s.id AND m.kind = w.kind AND m.importance >= w.least AND {CURRENT}
        ORDER BY m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id LIMIT w.most) m
    ORDER BY w.place, m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id
    """
)
# One look for each relation, which `memories_fact_idx` answers: somebody may have said ten thousand other things.
_ABOUT = text(
    f"""
    SELECT {COLUMNS}
    FROM unnest(CAST(:relations AS text[])) WITH ORDINALITY AS w(relation, place)
    CROSS JOIN LATERAL (
        SELECT m.* FROM memories m
        WHERE m.scope_id = :scope AND m.subject_key = :subject AND m.relation = w.relation AND {CURRENT}
        ORDER BY m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id LIMIT :each) m
    ORDER BY w.place, m.pinned DESC, m.importance DESC, m.last_seen DESC, m.id
    """
)
_FORMER = text(
    """
    SELECT DISTINCT m.text FROM memories m
    WHERE m.scope_id = :scope AND m.text = ANY(:texts) AND (m.retired_at IS NOT NULL OR m.valid_until <= now())
    """
)
_BY_ID = MEMORIES.where(among(memories.c.scope_id, "scopes"), among(memories.c.id, "ids"), IS_CURRENT)


def strongest(
    connection: Connection, scope_ids: Sequence[int], limits: Sequence[KindLimit]
) -> tuple[Memory, ...]:
    """Read the memories of each kind: pinned, then important, then lately seen. The limit holds for each scope."""
    values = {
        "scopes": list(scope_ids),
        "kinds": [item.kind for item in limits],
        "limits": [item.limit for item in limits],
        "leasts": [item.least for item in limits],
    }
    return tuple(memory_of(row) for row in connection.execute(_STRONGEST, values))


def about(
    connection: Connection, scope_id: int, subject_key: str, relations: Sequence[str], *, each: int
) -> tuple[Memory, ...]:
    """Read the current facts of a subject, at most ``each`` of a relation, in the order of ``relations``."""
    values = {"scope": scope_id, "subject": subject_key, "relations": list(relations), "each": each}
    return tuple(memory_of(row) for row in connection.execute(_ABOUT, values))


def former_texts(connection: Connection, scope_id: int, texts: Sequence[str]) -> frozenset[str]:
    """Return those of ``texts`` that a memory of the scope said once and no longer does."""
    return frozenset(connection.execute(_FORMER, {"scope": scope_id, "texts": list(texts)}).scalars())


def by_ids(connection: Connection, scope_ids: Sequence[int], ids: Sequence[UUID]) -> tuple[Memory, ...]:
    """Read those of the memories that are still current, in the order of ``ids``."""
    if not ids:
        return ()
    rows = connection.execute(_BY_ID, {"scopes": list(scope_ids), "ids": list(ids)})
    by_id = {row.id: memory_of(row) for row in rows}
    return tuple(by_id[id] for id in ids if id in by_id)


def visible_by_ids(connection: Connection, row: ScopeRow, ids: Sequence[UUID]) -> tuple[Memory, ...]:
    """`by_ids` in all scopes that a question in the scope may look at."""
    return names.over_visible(
        connection,
        row,
        lambda place, scopes: by_ids(place, scopes, ids),
        order=lambda memory: ids.index(memory.id),
    )
