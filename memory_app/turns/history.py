"""Look through sessions and their turns page by page, with what came of each turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from memory_app.db.db import transaction
from memory_app.errors import InvalidInput, NotFound
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.turns.rows import history
from memory_app.turns.rows.history import Outcome, PastTurn, SessionLine

PAGE_LIMIT = 200
OUTCOMES_LIMIT = 1_000
"""Most memories behind the turns of one page."""


@dataclass(frozen=True, slots=True)
class History:
    """A page of a session: turns in their order, and by turn what came of it."""

    turns: tuple[PastTurn, ...]
    outcomes: Mapping[UUID, tuple[Outcome, ...]]


@in_scopes_shard
def list_sessions(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int, before: int | None = None
) -> tuple[SessionLine, ...]:
    """Sessions, the one that began last first; ``before`` is the last number of the page before."""
    _check(limit)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return history.sessions(connection, row.id, limit=limit, before=before)


@in_scopes_shard
def read_history(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int, before: int | None = None
) -> History:
    """The latest turns of the scope's session, or those before a place; `NotFound` for an unknown session."""
    _check(limit)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        session_id = None if scope.session is None else names.find_session(connection, row.id, scope.session)
        if session_id is None:
            raise NotFound(f"no session {scope.session!r} of this agent and user", field="session")
        turns = history.turns(connection, row.id, session_id, limit=limit, before=before)
        outcomes = history.outcomes(connection, row.id, [turn.id for turn in turns], limit=OUTCOMES_LIMIT)
    by_turn: dict[UUID, tuple[Outcome, ...]] = defaultdict(tuple)
    for outcome in outcomes:
        by_turn[outcome.turn_id] += (outcome,)
    # The page is taken by number; in it a turn that replaced another stands where that one stood.
    shown = sorted(turns, key=lambda turn: (turn.seq if turn.place is None else turn.place, turn.seq))
    return History(tuple(shown), dict(by_turn))


def _check(limit: int) -> None:
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
