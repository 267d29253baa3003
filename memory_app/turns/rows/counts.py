"""Count the rows of a scope, for statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """Rows of a scope, besides its memories."""

    turns: int
    failed_turns: int
    sessions: int
    links: int
    entities: int
    retired_memories: int


_COUNTS = text(
    """
    SELECT
        (SELECT count(*) FROM turns WHERE scope_id = ANY(:scopes)) AS turns,
        (SELECT count(*) FROM turns WHERE scope_id = ANY(:scopes) AND failed_at IS NOT NULL) AS failed_turns,
        (SELECT count(*) FROM sessions WHERE scope_id = ANY(:scopes)) AS sessions,
        (SELECT count(*) FROM links WHERE scope_id = ANY(:scopes)) AS links,
        (SELECT count(*) FROM entities WHERE scope_id = ANY(:scopes) AND merged_into IS NULL) AS entities,
        (SELECT count(*) FROM memories WHERE scope_id = ANY(:scopes) AND retired_at IS NOT NULL)
            AS retired_memories
    """
)


def of_scopes(connection: Connection, scope_ids: Sequence[int]) -> ScopeCounts:
    return ScopeCounts(*connection.execute(_COUNTS, {"scopes": list(scope_ids)}).one())
