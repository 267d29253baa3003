"""Checkpoints: what a scope, or a session of it, held at a moment, as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

_ADD = text(
    """
    INSERT INTO checkpoints (tenant_id, scope_id, session_name, content)
    VALUES (:tenant, :scope, :session, CAST(:content AS jsonb)) RETURNING id
    """
)
_LIST = text(
    """
    SELECT id, session_name AS session, created_at, jsonb_array_length(content -> 'nodes') AS nodes,
           jsonb_array_length(content -> 'links') AS links
    FROM checkpoints WHERE scope_id = :scope AND (CAST(:before AS uuid) IS NULL OR id < :before)
    ORDER BY id DESC LIMIT :limit
    """
)
_READ = text("SELECT content FROM checkpoints WHERE scope_id = :scope AND id = :id")


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint without its content. ``session`` None: of the whole scope."""

    id: UUID
    session: str | None
    created_at: datetime
    nodes: int
    links: int


def add(
    connection: Connection, tenant_id: int, scope_id: int, *, session: str | None, content: Mapping[str, Any]
) -> UUID:
    values = {
        "tenant": tenant_id,
        "scope": scope_id,
        "session": session,
        "content": json.dumps(content, ensure_ascii=False),
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
    return connection.execute(_READ, {"scope": scope_id, "id": checkpoint_id}).scalar_one_or_none()
