"""The state of the pipeline over all tenants, without naming any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, text
from sqlalchemy.exc import ProgrammingError

from memory_app.db.prerequisites import INSUFFICIENT_PRIVILEGE
from memory_app.errors import StoreUnavailable

_PIPELINE = text(
    """SELECT unindexed, claimable, oldest_unindexed_seconds, due_sessions, oldest_due_seconds, failed
    FROM pipeline_state()"""
)


_DUE_WORK = text("SELECT kind, oldest_seconds, is_held FROM due_work()")


@dataclass(frozen=True, slots=True)
class DueWork:
    """One kind of work: for how long the oldest has been due that nobody has in hand (0: there is none), and whether
    somebody has any in hand."""

    kind: str
    oldest_seconds: float
    is_held: bool


COUNTED = 1_000
"""Counts of the state of the pipe go as far and no further; what waits beyond is not walked through."""


def shown(count: int) -> str:
    """Return a count for people: ``1000+`` where there may be more."""
    return f"{count}+" if count >= COUNTED else str(count)


@dataclass(frozen=True, slots=True)
class PipelineState:
    """Accepted turns not yet indexed, those of them that nobody holds, due sessions, and failed turns that wait for a
    replay or a discard, each counted up to `COUNTED`; and the oldest that waits of the first and the third, in
    seconds."""

    unindexed: int
    claimable: int
    oldest_unindexed_seconds: float
    due_sessions: int
    oldest_due_seconds: float
    failed: int

    def __add__(self, other: PipelineState) -> PipelineState:
        """The state of two shards together."""
        return PipelineState(
            unindexed=self.unindexed + other.unindexed,
            claimable=self.claimable + other.claimable,
            oldest_unindexed_seconds=max(self.oldest_unindexed_seconds, other.oldest_unindexed_seconds),
            due_sessions=self.due_sessions + other.due_sessions,
            oldest_due_seconds=max(self.oldest_due_seconds, other.oldest_due_seconds),
            failed=self.failed + other.failed,
        )


def pipeline_state(connection: Connection) -> PipelineState:
    return PipelineState(*connection.execute(_PIPELINE).one())


def united(works: Iterable[DueWork]) -> tuple[DueWork, ...]:
    """The work of several shards, one for each kind."""
    by_kind: dict[str, DueWork] = {}
    for work in works:
        other = by_kind.get(work.kind, work)
        by_kind[work.kind] = DueWork(
            work.kind, max(work.oldest_seconds, other.oldest_seconds), work.is_held or other.is_held
        )
    return tuple(by_kind.values())


def due_work(connection: Connection) -> tuple[DueWork, ...]:
    """Turns to index, sessions to extract, runs to do and periodic jobs to ask for, over all tenants.

    Raises `StoreUnavailable` where the functions of the schema were deprived of a right.
    """
    try:
        return tuple(DueWork(**row._mapping) for row in connection.execute(_DUE_WORK))
    except ProgrammingError as error:
        # Only a missing right is for the operator to mend; any other error is a bug and raised as it is.
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        raise StoreUnavailable("the schema's functions lack a right; run `memory migrate`") from error
