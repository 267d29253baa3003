"""Correct a memory by hand: other words in a row of its own, for which the wrong one gives way.

A text is never edited. What was wrong was never true, so the old row holds for no time at all: no question about any
date finds it, and `versions` and `why` still tell of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db.db import transaction
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.jobs import schedule
from memory_app.language.text import clean, normalise
from memory_app.memories import capacity, remember
from memory_app.memories.forbidden import check_allowed
from memory_app.memories.remember import Place, Remembered
from memory_app.memories.rows import evidence, memories, merges
from memory_app.memories.rows.memory_rows import ScopedMemory
from memory_app.records.records import Memory, Origin, Outcome, Retirement, Statement, content_of
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import where_stored

TRIPLE = ("subject", "relation", "object")
"""Fields that a caller may give with the new words."""


@where_stored
def correct(
    runtime: Runtime,
    tenant_id: int,
    memory_id: UUID,
    *,
    text: str,
    triple: Mapping[str, str] | None = None,
) -> Remembered:
    """Store ``text`` in place of a memory's; the answer is `superseded` with the id of the row that says it now.

    All else stays as it was: kind, importance, tags, pin, interval, evidence. Subject, relation and object are those of
    ``triple``, else the old ones as far as they stand in the new words. Raises `InvalidInput` naming the field,
    `NotFound`, or `Conflict` for a memory that is no longer current.
    """
    with transaction(runtime.engine, tenant_id) as connection:
        stored = _need_current(connection, memory_id)
        row = names.read_scope(connection, stored.scope_id)
    if row is None:
        raise NotFound(f"no memory {memory_id}", field="id")
    _check_words(text, stored.memory)
    policy = parse_policy(row.policy)
    statement = _statement(stored.memory, text, triple or {})
    check_allowed(statement, policy)
    # Between two transactions: none is open while the embedder is called.
    (prepared,) = remember.prepare(runtime, [statement], policy=policy)
    with transaction(runtime.engine, tenant_id) as connection:
        if not names.lock_scope(connection, tenant_id, row.id):
            raise NotFound("the person was erased while this ran; nothing was stored")
        # Read again under the lock: it may have been corrected or merged meanwhile.
        memory = _need_current(connection, memory_id).memory
        session_id = merges.sessions_of(connection, row.id, [memory_id])[memory_id]
        # It leaves before the new row comes, since two current rows of one fact cannot be.
        memories.retire(
            connection,
            row.id,
            [memory_id],
            reason=Retirement.SUPERSEDED,
            valid_until=memory.valid_from,
        )
        place = Place(
            tenant_id,
            row.id,
            session_id=session_id,
            session=memory.session,
            turn_scopes=row.visible,
        )
        # Whoever corrects means these words, so they are not merged with similar ones.
        remembered = remember.write(connection, runtime, place, prepared=prepared, deduplicate=False)
        memories.succeed(connection, row.id, {memory_id: remembered.id})
        evidence.inherit_said(connection, row.id, remembered.id, parent=memory_id, words=text)
        capacity.keep_ceiling(
            connection, runtime, tenant_id, scope_id=row.id, policy=policy, written=[remembered.id]
        )
        schedule.wake(connection, runtime, [row.id])
    remember.drop_context(runtime, row.id)
    return Remembered(remembered.id, Outcome.SUPERSEDED, notes=remembered.notes)


def _need_current(connection: Connection, memory_id: UUID) -> ScopedMemory:
    stored = memories.read(connection, memory_id)
    if stored is None:
        raise NotFound(f"no memory {memory_id}", field="id")
    memory = stored.memory
    if memory.retired_at is not None:
        after = f"; correct {memory.successor}, which took its place" if memory.successor else ""
        raise Conflict(f"memory {memory_id} was {memory.retired_reason}{after}", field="id")
    return stored


def _check_words(text: str, memory: Memory) -> None:
    if clean(text)[0].strip() == memory.text:
        raise InvalidInput("text: the memory has these words already", field="text")


def _statement(memory: Memory, text: str, triple: Mapping[str, str]) -> Statement:
    content = content_of(memory) | _triple(memory, text, triple)
    # The words are the caller's now, whoever said or concluded the old ones.
    content |= {"text": text, "origin": Origin.DECLARED, "synthesis_type": None}
    return Statement(**content, importance=memory.importance, valid_from=memory.valid_from)


def _triple(memory: Memory, text: str, triple: Mapping[str, str]) -> dict[str, str | None]:
    """What the new words state of the fact, or nothing: half of an old fact would contradict them."""
    if triple:
        return {name: triple.get(name, getattr(memory, name)) for name in TRIPLE}
    said = normalise(text)
    parts = filter(None, (memory.subject, memory.object))
    if all(normalise(part) in said for part in parts):
        return {}
    return dict.fromkeys(TRIPLE)
