"""How the pipe is doing, over all tenants and without naming any."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

_PIPELINE = text(
    """SELECT unindexed, claimable, oldest_unindexed_seconds, due_sessions, oldest_due_seconds, failed
    FROM pipeline_state()"""
)


@dataclass(frozen=True, slots=True)
class PipelineState:
    """Accepted turns not yet indexed, those of them that nobody holds, due sessions, the oldest of each in seconds,
    and failed turns that wait for a replay or a discard."""

    unindexed: int
    claimable: int
    oldest_unindexed_seconds: float
    due_sessions: int
    oldest_due_seconds: float
    failed: int


def pipeline_state(connection: Connection) -> PipelineState:
    return PipelineState(*connection.execute(_PIPELINE).one())
