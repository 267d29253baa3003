"""Let a new turn take the place of one that is forgotten: an edited message, or a reply that was made again.

The transaction that accepts the new turn hides the old one from windows, search and prompts, and writes down that it is
to be erased. A worker erases it with what came only from it; until then the new turn is not extracted. Else what both
say would count as said before, and could go with the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from uuid import UUID

from sqlalchemy import Connection

from memory_app import correlation, queue
from memory_app.db.shards import HOME, at_home
from memory_app.errors import Forbidden, InvalidInput, NotFound
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run
from memory_app.records.audit import Action
from memory_app.records.erasure_order import erasure_order
from memory_app.records.records import NewTurn, Turn
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.audit import noting
from memory_app.tenancy.rows.keys import Caller
from memory_app.turns.rows import replaced
from memory_app.turns.rows.sessions import Claim, LockedSession
from memory_app.turns.withdrawal import withdraw

REPLACED_LIMIT = 20
"""Most turns of a call that replace others: each is an erasure with a receipt."""


@contextmanager
def replacing(
    runtime: Runtime, tenant_id: int, scope: Scope, turns: Sequence[NewTurn], *, caller: Caller | None = None
) -> Iterator[None]:
    """Recording ``turns`` in the block: which turns they replace, and so erase, goes into the audit log.

    ``caller`` None: in process. Raises `Forbidden` where the caller's key may not erase, and `InvalidInput` above the
    limit.
    """
    old = _replaced_by(turns)
    if not old:
        yield
        return
    if caller is not None and "erase" not in caller.rights:
        raise Forbidden("replaces: the other turn is forgotten, and this key lacks the right 'erase'")
    key_id = None if caller is None else caller.key_id or None
    with ExitStack() as notes:
        for id in old:
            note = noting(
                runtime,
                tenant_id,
                Action.ERASE_TURN,
                key_id=key_id,
                agent=scope.agent,
                user=scope.user,
                target=str(id),
                request_id=correlation.request_id(),
            )
            notes.enter_context(note)
        yield


def _replaced_by(turns: Sequence[NewTurn]) -> list[UUID]:
    ids = [turn.replaces for turn in turns if turn.replaces is not None]
    if len(ids) > REPLACED_LIMIT:
        raise InvalidInput(f"replaces: at most {REPLACED_LIMIT} turns of one call", field="replaces")
    twice = [id for id, times in Counter(ids).items() if times > 1]
    if twice:
        raise InvalidInput(f"replaces: two turns of this call replace {twice[0]}", field="replaces")
    return ids


def take_places(
    connection: Connection, tenant_id: int, session: LockedSession, turns: Sequence[NewTurn]
) -> tuple[dict[UUID, int], tuple[Run, ...]]:
    """Hide the turns that these replace, and write down that they are to be erased: their places, and the runs.

    The session must be locked. `NotFound` for a turn that is not in it or was replaced before; `InvalidInput` for too
    many, and where two turns replace the same.
    """
    ids = _replaced_by(turns)
    if not ids:
        return {}, ()
    places = replaced.take(connection, session.scope_id, session.id, ids)
    missing = [id for id in ids if id not in places]
    if missing:
        raise NotFound(
            f"replaces: no turn {missing[0]} in this session; it may have been replaced or forgotten before",
            field="replaces",
        )
    withdraw(connection, tenant_id, session.scope_id, ids)
    with at_home(connection, writes=True) as home:
        orders = tuple(
            runs.enqueue(
                home, tenant_id, RunName.FORGET, scope_id=None, options=erasure_order("turn", [str(id)])
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
    with at_home(connection) as home:
        return any(_is_ordered(home, claimed.tenant_id, id) for id in old)


def _is_ordered(connection: Connection, tenant_id: int, turn_id: UUID) -> bool:
    order = erasure_order("turn", [str(turn_id)])
    return runs.find_open(connection, tenant_id, RunName.FORGET, options=order) is not None
