"""List turns that were set aside with a reason, and replay or discard them."""

from __future__ import annotations

from itertools import chain
from uuid import UUID

import structlog

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_usable, where_stored
from memory_app.turns.rows import failed_turns, sessions, stages
from memory_app.turns.rows.failed_turns import FailedTurn

log = structlog.get_logger(__name__)

PAGE_LIMIT = 500


def failed(
    runtime: Runtime, tenant_id: int, *, limit: int = 100, before: UUID | None = None
) -> tuple[FailedTurn, ...]:
    """Turns of the tenant that wait for somebody's decision, newest first; ids and reasons, no text."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")

    def look(here: Runtime) -> tuple[FailedTurn, ...]:
        with transaction(here.engine, tenant_id) as connection:
            return failed_turns.failed(connection, limit=limit, before=before)

    rows = sorted(chain.from_iterable(in_usable(runtime, look)), key=lambda turn: turn.id, reverse=True)
    return tuple(rows[:limit])


def replay(runtime: Runtime, tenant_id: int, turn_id: UUID) -> None:
    """Index and extract the turn once more, once the cause is mended. Its facts keep the dates they were said at.

    `NotFound` for an unknown turn, `Conflict` for one that did not fail.
    """
    _settle(runtime, tenant_id, turn_id, again=True)


def discard(runtime: Runtime, tenant_id: int, turn_id: UUID) -> None:
    """Give the turn up: it stays readable, has no effects, and a session that waited for it goes on."""
    _settle(runtime, tenant_id, turn_id, again=False)


@where_stored
def _settle(runtime: Runtime, tenant_id: int, turn_id: UUID, *, again: bool) -> None:
    with transaction(runtime.engine, tenant_id) as connection:
        change = failed_turns.replay if again else failed_turns.discard
        place = change(connection, turn_id)
        if place is None:
            if stages.ticket(connection, turn_id) is None:
                raise NotFound(f"turn {turn_id}: no such turn")
            raise Conflict(f"turn {turn_id} has not failed; there is nothing to replay or discard")
        scope_id, session_id, seq = place
        # Also after a discard: the session of a strict agent was stopped for the turn.
        sessions.resume(connection, scope_id, session_id, seq=seq, again=again)
    log.info("failed_turn_settled", turn=str(turn_id), replayed=again)
    # Both: the turn may have failed before it was indexed.
    runtime.hint(queue.INDEX_TURNS)
    runtime.hint(queue.EXTRACT_SESSION, session_id=session_id)
