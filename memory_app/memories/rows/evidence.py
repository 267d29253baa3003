"""Evidence: the turns that a memory rests on, its own and those of what it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import Connection, text

# DISTINCT, since several parents may rest on the same turn.
_INHERIT_EVIDENCE = text(
    """
    INSERT INTO evidence (tenant_id, scope_id, memory_id, turn_scope_id, turn_id)
    SELECT DISTINCT e.tenant_id, e.scope_id, v.heir, e.turn_scope_id, e.turn_id
    FROM unnest(CAST(:heirs AS uuid[]), CAST(:parents AS uuid[])) AS v(heir, parent)
    JOIN evidence e ON e.scope_id = :scope AND e.memory_id = v.parent
    ON CONFLICT DO NOTHING
    """
)
_INHERIT_MENTIONS = text(
    """
    INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
    SELECT DISTINCT e.tenant_id, e.scope_id, v.heir, e.entity_id
    FROM unnest(CAST(:heirs AS uuid[]), CAST(:parents AS uuid[])) AS v(heir, parent)
    JOIN mentions e ON e.scope_id = :scope AND e.memory_id = v.parent
    ON CONFLICT DO NOTHING
    """
)
_INHERIT_NAMED = text(
    """
    INSERT INTO mentions (tenant_id, scope_id, memory_id, entity_id)
    SELECT e.tenant_id, e.scope_id, :heir, e.entity_id
    FROM mentions e JOIN entities n ON n.scope_id = e.scope_id AND n.id = e.entity_id
    WHERE e.scope_id = :scope AND e.memory_id = :parent AND position(lower(n.label) IN lower(:words)) > 0
    ON CONFLICT DO NOTHING
    """
)


def inherit(connection: Connection, scope_id: int, parents: Mapping[UUID, Sequence[UUID]]) -> None:
    """Give each merged memory the evidence and the entities of its parents."""
    # One row for each pair, so that many merges take as many statements as one.
    pairs = [(heir, parent) for heir, parents_of_heir in parents.items() for parent in parents_of_heir]
    values = {
        "scope": scope_id,
        "heirs": [heir for heir, _ in pairs],
        "parents": [parent for _, parent in pairs],
    }
    connection.execute(_INHERIT_EVIDENCE, values)
    connection.execute(_INHERIT_MENTIONS, values)


def inherit_said(connection: Connection, scope_id: int, heir: UUID, *, parent: UUID, words: str) -> None:
    """Give a memory with other words the turns of the one before, and those of its entities that ``words`` name."""
    connection.execute(_INHERIT_EVIDENCE, {"scope": scope_id, "heirs": [heir], "parents": [parent]})
    values = {"scope": scope_id, "heir": heir, "parent": parent, "words": words}
    connection.execute(_INHERIT_NAMED, values)
