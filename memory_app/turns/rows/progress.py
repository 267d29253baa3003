"""Read how far one turn has come and how many are before it, among the rows of its tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

# To count a long backlog, all of it would be read at each look at a ticket.
COUNT_LIMIT = 10_000
"""Turns or sessions before a turn are counted to here and no further."""

_READ = text(
    """
    SELECT t.indexed_at IS NOT NULL AS is_indexed, t.starts > 0 AS is_started, t.failures AS failures,
        extract(epoch FROM t.lease_until - now())::double precision AS lease_seconds,
        CASE WHEN t.indexed_at IS NULL THEN (
            SELECT count(*) FROM (
                SELECT FROM turns o WHERE o.indexed_at IS NULL AND o.failed_at IS NULL AND o.id < t.id LIMIT :most) b)
            ELSE 0 END AS turns_before,
        s.parked_reason, s.waits_for_cap, s.failures AS session_failures, s.starts > 0 AS is_session_started,
        extract(epoch FROM s.due_at - now())::double precision AS session_due_seconds,
        extract(epoch FROM s.lease_until - now())::double precision AS session_lease_seconds,
        CASE WHEN s.due_at <= now() THEN (
            SELECT count(*) FROM (
                SELECT FROM sessions o WHERE o.due_at <= now() AND o.due_at < s.due_at LIMIT :most) b)
            ELSE 0 END AS sessions_before,
        a.policy
    FROM turns t
    JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id
    JOIN scopes c ON c.id = t.scope_id JOIN agents a ON a.id = c.agent_id
    WHERE t.id = :id
    """
)


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a turn and its session. Times are seconds from now: negative ones have passed, None is not set.

    ``turns_before`` and ``sessions_before`` are of the same tenant, at most `COUNT_LIMIT`.
    """

    is_indexed: bool
    is_started: bool
    failures: int
    lease_seconds: float | None
    turns_before: int
    parked_reason: str | None
    waits_for_cap: bool
    session_failures: int
    is_session_started: bool
    session_due_seconds: float | None
    session_lease_seconds: float | None
    sessions_before: int
    policy: Mapping[str, Any]


def read(connection: Connection, turn_id: UUID) -> Progress | None:
    """None when there is no such turn."""
    row = connection.execute(_READ, {"id": turn_id, "most": COUNT_LIMIT}).one_or_none()
    return None if row is None else Progress(**row._mapping)
