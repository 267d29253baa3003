"""Rows of checkpoints: what a scope, or a session of it, held at a moment, as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, func, insert, select

from memory_app.db.expressions import before_if_given
from memory_app.db.tables.transfer import checkpoints


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint without its content. ``session`` None: of the whole scope."""

    id: UUID
    session: str | None
    created_at: datetime
    nodes: int
    links: int


_ADD = insert(checkpoints).returning(checkpoints.c.id)
_LIST = (
    select(
        checkpoints.c.id,
        checkpoints.c.session_name.label("session"),
        checkpoints.c.created_at,
        # Counted in the database: a document has megabytes, and a list shows up to 500 of them.
        func.jsonb_array_length(checkpoints.c.content["nodes"]).label("nodes"),
        func.jsonb_array_length(checkpoints.c.content["links"]).label("links"),
    )
    .where(checkpoints.c.scope_id == bindparam("scope"), before_if_given(checkpoints.c.id, "before"))
    # The ids are UUIDs of version 7, whose order is that of their making.
    .order_by(checkpoints.c.id.desc())
    .limit(bindparam("limit"))
)
_READ = select(checkpoints.c.content).where(
    checkpoints.c.scope_id == bindparam("scope"), checkpoints.c.id == bindparam("checkpoint")
)


def add(
    connection: Connection, tenant_id: int, scope_id: int, *, session: str | None, content: Mapping[str, Any]
) -> UUID:
    values = {
        "tenant_id": tenant_id,
        "scope_id": scope_id,
        "session_name": session,
        "content": content,
    }
    return connection.execute(_ADD, values).scalar_one()  # type: ignore[no-any-return]


def listed(
    connection: Connection, scope_id: int, *, limit: int, before: UUID | None = None
) -> tuple[CheckpointRow, ...]:
    """Newest first; ``before`` is the last id of the page before."""
    rows = connection.execute(_LIST, {"scope": scope_id, "limit": limit, "before": before})
    return tuple(CheckpointRow(**row._mapping) for row in rows)


def read(connection: Connection, scope_id: int, checkpoint_id: UUID) -> dict[str, Any] | None:
    """The document, or None."""
    return connection.execute(_READ, {"scope": scope_id, "checkpoint": checkpoint_id}).scalar_one_or_none()
