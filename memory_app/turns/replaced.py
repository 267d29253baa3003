"""Let a new turn take the place of one that is forgotten: an edited message, or a reply that was made again.

The transaction that accepts the new turn hides the old one from windows, search and prompts, and writes down that it is
to be erased. A worker erases it with what came only from it; until then the new turn is not extracted. Else what both
say would count as said before, and could go with the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from memory_app import queue
from memory_app.db.shards import HOME, at_home
from memory_app.errors import Forbidden, InvalidInput, NotFound
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.erasure_order import erasure_order
from memory_app.records.records import NewTurn, Turn
from memory_app.records.run import RunName
from memory_app.runtime import Runtime
from memory_app.tenancy.rows.keys import Caller
from memory_app.turns.rows import replaced
from memory_app.turns.rows.sessions import Claim, LockedSession
from memory_app.turns.withdrawal import withdraw


def check_right(caller: Caller, turns: Sequence[NewTurn]) -> None:
    """Raise `Forbidden` where a turn replaces another, and the key may not forget anything."""
    if "erase" not in caller.rights and any(turn.replaces for turn in turns):
        raise Forbidden("replaces: the other turn is forgotten, and this key lacks the right 'erase'")


def take_places(
    connection: Connection, tenant_id: int, session: LockedSession, turns: Sequence[NewTurn]
) -> tuple[dict[UUID, int], tuple[Run, ...]]:
    """Hide the turns that these replace, and write down that they are to be erased: their places, and the runs.

    The session must be locked. `NotFound` for a turn that is not in it or was replaced before, `InvalidInput` where two
    turns replace the same.
    """
    ids = [turn.replaces for turn in turns if turn.replaces is not None]
    if not ids:
        return {}, ()
    twice = [id for id, times in Counter(ids).items() if times > 1]
    if twice:
        raise InvalidInput(f"replaces: two turns of this call replace {twice[0]}", field="replaces")
    places = replaced.take(connection, session.scope_id, session.id, ids)
    missing = [id for id in ids if id not in places]
    if missing:
        raise NotFound(
            f"replaces: no turn {missing[0]} in this session; it may have been replaced or forgotten before",
            field="replaces",
        )
    withdraw(connection, tenant_id, session.scope_id, ids)
    with at_home(connection):
        orders = tuple(
            runs.enqueue(
                connection, tenant_id, RunName.FORGET, scope_id=None, options=erasure_order("turn", [str(id)])
            )
            for id in ids
        )
    return places, orders


def hint_erasures(runtime: Runtime, orders: Sequence[Run]) -> None:
    """Tell a worker, after the commit."""
    for run in orders:
        runtime.at(HOME).hint(queue.FORGET, run_id=str(run.id))


def waits_for_erasure(connection: Connection, claimed: Claim, turns: Sequence[Turn]) -> bool:
    """Whether one of the turns replaced another that is about to be erased, and whose erasure has not failed."""
    places = [turn.place for turn in turns if turn.place is not None]
    if not places:
        return False
    high = max(turn.seq for turn in turns)
    old = replaced.waiting(connection, claimed.scope_id, claimed.session_id, low=min(places), high=high)
    with at_home(connection):
        return any(_is_ordered(connection, claimed.tenant_id, id) for id in old)


def _is_ordered(connection: Connection, tenant_id: int, turn_id: UUID) -> bool:
    order = erasure_order("turn", [str(turn_id)])
    return runs.find_open(connection, tenant_id, RunName.FORGET, options=order) is not None
