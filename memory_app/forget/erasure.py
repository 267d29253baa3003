"""Erasure: what goes with a memory, a turn, a session or a person, in the caller's transaction.

With ``before`` only what is older than that instant goes. It is the time of an earlier erasure, which is done again in
a database that was restored from a backup: the same name may have come back since, with new consent.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_app.forget.rows import erase, persons
from memory_app.forget.settlement import NOTHING, Counts, Forgotten, added, forget_turns, settle, united
from memory_app.memories.rows import lineage, memories
from memory_app.records.scope import Scope
from memory_app.tenancy.rows import names
from memory_app.turns.rows import sessions


def erase_memory(connection: Connection, tenant_id: int, memory_id: UUID) -> Forgotten | None:
    """Erase a memory with every row that says the same or was merged into it; None for an unknown one."""
    stored = memories.read(connection, memory_id)
    if stored is None or not names.lock_scope(connection, tenant_id, stored.scope_id):
        return None
    behind = lineage.with_merged(connection, tenant_id, stored.scope_id, memory_id=memory_id)
    gone = {*behind, *erase.same_words(connection, stored.scope_id, behind)}
    counts = settle(connection, tenant_id, stored.scope_id, gone=gone, touched=(), said="", by_turn=False)
    return Forgotten(counts, frozenset({stored.scope_id}), memories=tuple(sorted(gone)))


def erase_turn(connection: Connection, tenant_id: int, turn_id: UUID) -> Forgotten | None:
    """Erase a turn and what came only from it; None for an unknown one."""
    scope_id = erase.scope_of_turn(connection, turn_id)
    if scope_id is None or not names.lock_scope(connection, tenant_id, scope_id):
        return None
    turns = erase.turns(connection, scope_id, [turn_id])
    return forget_turns(connection, tenant_id, scope_id, turns) if turns else None


def erase_session(
    connection: Connection, tenant_id: int, scope: Scope, *, before: datetime | None = None
) -> Forgotten:
    """Erase a session with its turns, its own memories and what came only from it."""
    row = names.find_scope(connection, tenant_id, scope)
    if row is None or scope.session is None or not names.lock_scope(connection, tenant_id, row.id):
        return NOTHING
    session = sessions.find(connection, row.id, scope.session)
    if session is None:
        return NOTHING
    turns = erase.turns_of_session(connection, row.id, session.id, before=before)
    own = erase.memories_of_session(connection, row.id, session.id, before=before)
    forgotten = forget_turns(connection, tenant_id, row.id, turns, gone=own)
    if before is None:
        deleted = erase.delete_session(connection, row.id, session.id)
    else:
        deleted = erase.delete_empty_sessions(connection, row.id, session_id=session.id, before=before)
    return Forgotten(added(forgotten.counts, {"sessions": deleted}), forgotten.touched)


def erase_user(
    connection: Connection, tenant_id: int, user: str, *, before: datetime | None = None
) -> Forgotten:
    """Erase a person with all agents: turns, sessions, memories, entities, and what of it stands elsewhere."""
    user_id = persons.lock_user(connection, tenant_id, user, before=before)
    if user_id is None:
        return NOTHING
    scope_ids = persons.lock_scopes(connection, tenant_id, user_id)
    if before is None or not erase.holds_rows(connection, scope_ids, since=before):
        return _erase_person(connection, tenant_id, user_id, scope_ids)
    older = _erase_older(connection, tenant_id, scope_ids, before)
    if erase.holds_rows(connection, scope_ids):
        persons.start_anew(connection, tenant_id, user_id, scope_ids)
        return older
    # What was newer had been made of the older rows after the restore.
    rest = _erase_person(connection, tenant_id, user_id, scope_ids)
    return united(older, rest)


def _erase_person(
    connection: Connection, tenant_id: int, user_id: int, scope_ids: tuple[int, ...]
) -> Forgotten:
    outside, said = erase.resting_outside(connection, scope_ids)
    for scope_id in outside:
        names.lock_scope(connection, tenant_id, scope_id)
    counts: Counts = persons.delete_user(connection, tenant_id, user_id, scope_ids)
    for scope_id, touched in outside.items():
        settled = settle(connection, tenant_id, scope_id, gone=(), touched=touched, said=said, by_turn=True)
        counts = added(counts, settled)
    return Forgotten(counts, frozenset(outside), scope_ids)


def _erase_older(
    connection: Connection, tenant_id: int, scope_ids: tuple[int, ...], before: datetime
) -> Forgotten:
    """What a person who came back had left behind earlier; the rows since then stay."""
    forgotten = NOTHING
    for scope_id in scope_ids:
        turns = erase.turns_of_scope(connection, scope_id, before=before)
        gone = erase.memories_of_scope(connection, scope_id, before=before)
        done = forget_turns(connection, tenant_id, scope_id, turns, gone=gone)
        rest = erase.delete_remains(connection, scope_id, before=before)
        forgotten = united(forgotten, united(done, Forgotten(rest)))
    return forgotten
