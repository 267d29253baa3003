"""Erase a memory, a turn, a session or a person with all that goes with it, in the caller's transaction.

With ``before`` only what is older than that instant goes. It is the time of an earlier erasure, which is done again in
a database that was restored from a backup: the same name may have come back since, with new consent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_app.forget.rows import erase, persons
from memory_app.forget.settlement import NOTHING, Counts, Forgotten, added, forget_turns, settle, united
from memory_app.memories.rows import lineage
from memory_app.memories.rows import memories as memory_rows
from memory_app.records.scope import Scope
from memory_app.tenancy.digests import sent_name
from memory_app.tenancy.rows import erased, names
from memory_app.turns.rows import sessions

NoteCounts = Callable[[Counts], None]
"""Told the rows by table that went so far: first with none, when the rows are held."""


def note_nothing(_: Counts) -> None:
    """Nobody follows an erasure that is over when the caller gets the answer."""


def erase_memory(connection: Connection, tenant_id: int, memory_id: UUID) -> Forgotten | None:
    """Erase a memory with every row that says the same or was merged into it; None for an unknown one."""
    stored = memory_rows.read(connection, memory_id)
    if stored is None or not names.lock_scope(connection, tenant_id, stored.scope_id):
        return None
    merged = lineage.with_merged(connection, tenant_id, stored.scope_id, memory_id=memory_id)
    # A retired row with the same words would show them again in the history of the subject.
    gone = {*merged, *erase.same_words(connection, stored.scope_id, merged)}
    counts = settle(
        connection,
        tenant_id,
        stored.scope_id,
        gone=gone,
        touched=(),
        erased_text="",
        by_turn=False,
    )
    return Forgotten(counts, frozenset({stored.scope_id}), memories=tuple(sorted(gone)))


def erase_turn(connection: Connection, tenant_id: int, turn_id: UUID) -> Forgotten | None:
    """Erase a turn and what came only from it; None for an unknown one."""
    scope_id = erase.scope_of_turn(connection, turn_id)
    if scope_id is None or not names.lock_scope(connection, tenant_id, scope_id):
        return None
    # Read after the lock: somebody else may have erased it meanwhile.
    turns = erase.turns(connection, scope_id, [turn_id])
    return forget_turns(connection, tenant_id, scope_id, turns=turns) if turns else None


def erase_session(
    connection: Connection, tenant_id: int, scope: Scope, *, before: datetime | None = None
) -> Forgotten:
    """Erase a session with its turns, its own memories and what came only from it."""
    if scope.user is not None:
        erased.take_name(connection, tenant_id, scope.user)
    row = names.find_scope(connection, tenant_id, scope)
    if row is None or scope.session is None:
        return NOTHING
    if not names.lock_scope(connection, tenant_id, row.id):
        # Somebody erased the whole person, or the rows are in another shard now and wait there to be erased.
        names.check_users_shard(connection, tenant_id, scope.user)
        return NOTHING
    session = sessions.find(connection, row.id, scope.session)
    if session is None:
        return NOTHING
    turns = erase.turns_of_session(connection, row.id, session.id, before=before)
    memories = erase.memories_of_session(connection, row.id, session.id, before=before)
    forgotten = forget_turns(connection, tenant_id, row.id, turns=turns, gone=memories)
    if before is None:
        deleted = erase.delete_session(connection, row.id, session.id)
    else:
        # Somebody may have gone on with the session since: then it stays, with what is newer.
        deleted = erase.delete_empty_sessions(connection, row.id, session_id=session.id, before=before)
    return replace(forgotten, counts=added(forgotten.counts, {"sessions": deleted}))


def erase_user(
    connection: Connection,
    tenant_id: int,
    user: str,
    *,
    before: datetime | None = None,
    note: NoteCounts = note_nothing,
) -> Forgotten:
    """Erase a person with all agents: turns, sessions, memories, entities, and what of it stands elsewhere."""
    # First of all locks: a message of a person whom nobody knows yet holds the name only, and is waited for.
    erased.take_name(connection, tenant_id, user)
    persons.lock_entry(connection, tenant_id, user)
    names.check_users_shard(connection, tenant_id, user)
    user_id = persons.lock_user(connection, tenant_id, user, before=before)
    named = Forgotten(persons.delete_named(connection, tenant_id, user, before=before))
    if user_id is None:
        return named
    return united(
        _erase_known(connection, tenant_id, user=user, user_id=user_id, before=before, note=note), named
    )


def _erase_known(
    connection: Connection,
    tenant_id: int,
    *,
    user: str,
    user_id: int,
    before: datetime | None,
    note: NoteCounts,
) -> Forgotten:
    """Erase what is stored of somebody whose name is held."""
    scope_ids = persons.lock_scopes(connection, tenant_id, user_id)
    note({})
    if before is None or not erase.holds_rows(connection, scope_ids, since=before):
        return _erase_person(connection, tenant_id, user=user, user_id=user_id, note=note)
    older = erase_older(connection, tenant_id, scope_ids=scope_ids, before=before)
    if erase.holds_rows(connection, scope_ids):
        persons.start_anew(connection, tenant_id, user_id=user_id, scope_ids=scope_ids)
        return older
    # The newer rows had been made of the older ones after the restore, by a worker: nobody has come back.
    rest = _erase_person(connection, tenant_id, user=user, user_id=user_id)
    return united(older, rest)


def _erase_person(
    connection: Connection,
    tenant_id: int,
    *,
    user: str,
    user_id: int,
    note: NoteCounts = note_nothing,
) -> Forgotten:
    scope_ids = persons.close_scopes(connection, tenant_id, user_id)
    # Memories for all users of an agent may rest on what this person said. They are read before the turns go.
    outside, text = erase.resting_outside(connection, scope_ids)
    for scope_id in outside:
        names.lock_scope(connection, tenant_id, scope_id)
    sent = tuple(sent_name(user, key, hash) for key, hash in erase.sent_turns(connection, scope_ids))
    counts: Counts = persons.delete_user(
        connection, tenant_id, user_id=user_id, scope_ids=scope_ids, note=note
    )
    for scope_id, touched in outside.items():
        settled = settle(
            connection,
            tenant_id,
            scope_id,
            gone=(),
            touched=touched,
            erased_text=text,
            by_turn=True,
        )
        counts = added(counts, settled)
    return Forgotten(counts, frozenset(outside), scope_ids, sent=sent)


def erase_older(
    connection: Connection, tenant_id: int, *, scope_ids: tuple[int, ...], before: datetime
) -> Forgotten:
    """Erase what a person who came back had left behind earlier; the rows since then stay."""
    total = NOTHING
    for scope_id in scope_ids:
        turns = erase.turns_of_scope(connection, scope_id, before=before)
        memories = erase.memories_of_scope(connection, scope_id, before=before)
        forgotten = forget_turns(connection, tenant_id, scope_id, turns=turns, gone=memories)
        # Last: sessions and entities go only when no turn and no memory of theirs is there any more.
        remains = erase.delete_remains(connection, scope_id, before=before)
        total = united(total, united(forgotten, Forgotten(remains)))
    return total
