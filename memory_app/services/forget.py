"""Forget: a memory, a turn, a session, a person. For good, and with whatever came only from it.

Each is one transaction under the locks of the scopes concerned, so nothing is ever half forgotten and work in flight
finds its scope gone, its session fenced or its sources missing. A dry run is the same transaction, rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app.domain.forgetting import Fate, fates
from memory_app.domain.scope import Scope, check_name
from memory_app.errors import MemoryAppError, NotFound
from memory_app.hot import cache, stream
from memory_app.hot import erase as hot_erase
from memory_app.runtime import Runtime
from memory_app.store import erase, lineage, memories, merges, names, persons, runs, sessions
from memory_app.store.db import transaction
from memory_app.store.erase import Family, TurnRow
from memory_app.store.persons import Erasure
from memory_app.store.runs import Run

log = structlog.get_logger(__name__)

FORGET = "forget"
"""Name of the run that records what was forgotten. It belongs to the tenant: the scope may be gone."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """Rows by table, and the scopes whose caches hold ids of them; ``erased`` ones are gone altogether."""

    counts: Counts
    touched: frozenset[int]
    erased: tuple[int, ...] = ()


class _Rehearsed(Exception):
    """Rolls a dry run back, and carries what it would have done."""

    def __init__(self, forgotten: _Forgotten) -> None:
        super().__init__("rolled back")
        self.forgotten = forgotten


def forget_memory(runtime: Runtime, tenant_id: int, memory_id: UUID) -> Run:
    """Delete a memory, every row that says the same or was merged into it, and what rested on it alone.

    What was made of it and of others stays, unless it repeats it; what has no source left is retired. The turns it came
    from stay. Raises `NotFound` for an unknown memory.
    """

    def forget(connection: Connection) -> _Forgotten:
        found = memories.read(connection, memory_id)
        if found is None or not names.lock_scope(connection, tenant_id, found.scope_id):
            raise NotFound(f"no memory {memory_id}", field="id")
        behind = lineage.with_merged(connection, tenant_id, found.scope_id, memory_id)
        gone = {*behind, *erase.same_words(connection, found.scope_id, behind)}
        counts = _settle(connection, tenant_id, found.scope_id, gone=gone, touched=(), said="", by_turn=False)
        return _Forgotten(counts, frozenset({found.scope_id}))

    return _forget(runtime, tenant_id, forget, of="memory", name=str(memory_id))


def forget_turn(runtime: Runtime, tenant_id: int, turn_id: UUID) -> Run:
    """Delete a turn, its share in every count, and the memories that came only from it.

    Raises `NotFound` for an unknown turn.
    """

    def forget(connection: Connection) -> _Forgotten:
        scope_id = erase.scope_of_turn(connection, turn_id)
        if scope_id is None or not names.lock_scope(connection, tenant_id, scope_id):
            raise NotFound(f"no turn {turn_id}", field="id")
        found = erase.turns(connection, scope_id, [turn_id])
        if not found:
            raise NotFound(f"no turn {turn_id}", field="id")
        return _forget_turns(connection, tenant_id, scope_id, found)

    return _forget(runtime, tenant_id, forget, of="turn", name=str(turn_id))


def forget_session(runtime: Runtime, tenant_id: int, scope: Scope, *, dry_run: bool = False) -> Run:
    """Delete a session with its turns, its own memories and those that came only from it.

    Repeating it is harmless: what is not there leaves an empty receipt.
    """

    def forget(connection: Connection) -> _Forgotten:
        row = names.find_scope(connection, tenant_id, scope)
        if row is None or scope.session is None or not names.lock_scope(connection, tenant_id, row.id):
            return _Forgotten({}, frozenset())
        session = sessions.find(connection, row.id, scope.session)
        if session is None:
            return _Forgotten({}, frozenset())
        found = erase.turns_of_session(connection, row.id, session.id)
        own = erase.memories_of_session(connection, row.id, session.id)
        done = _forget_turns(connection, tenant_id, row.id, found, gone=own)
        deleted = erase.delete_session(connection, row.id, session.id)
        return _Forgotten(_added(done.counts, {"sessions": deleted}), done.touched)

    name = f"{scope.agent}\x00{scope.user}\x00{scope.session}"
    return _forget(runtime, tenant_id, forget, of="session", name=name, dry_run=dry_run)


def forget_user(runtime: Runtime, tenant_id: int, user: str, *, dry_run: bool = False) -> Run:
    """Delete a person with all agents: turns, sessions, memories, entities, and what of it stands elsewhere.

    The same name may come back later as somebody new. Repeating it is harmless: a user who is not there leaves an
    empty receipt. Raises `InvalidInput` for what is no name.
    """
    check_name(user, field="user")

    def forget(connection: Connection) -> _Forgotten:
        user_id = persons.lock_user(connection, tenant_id, user)
        if user_id is None:
            return _Forgotten({}, frozenset())
        scope_ids = persons.lock_scopes(connection, tenant_id, user_id)
        outside, said = erase.resting_outside(connection, scope_ids)
        for scope_id in outside:
            names.lock_scope(connection, tenant_id, scope_id)
        counts: Counts = persons.delete_user(connection, tenant_id, user_id, scope_ids)
        for scope_id, touched in outside.items():
            settled = _settle(
                connection, tenant_id, scope_id, gone=(), touched=touched, said=said, by_turn=True
            )
            counts = _added(counts, settled)
        return _Forgotten(counts, frozenset(outside), scope_ids)

    return _forget(runtime, tenant_id, forget, of="user", name=user, dry_run=dry_run)


def read_erasure(runtime: Runtime, tenant_id: int, erasure_id: UUID) -> Erasure:
    """A receipt. `NotFound` for an unknown one."""
    with transaction(runtime.engine, tenant_id) as connection:
        found = persons.read(connection, erasure_id)
    if found is None:
        raise NotFound(f"no erasure {erasure_id}", field="id")
    return found


def _forget(
    runtime: Runtime,
    tenant_id: int,
    forget: Callable[[Connection], _Forgotten],
    *,
    of: str,
    name: str,
    dry_run: bool = False,
) -> Run:
    """Do it, or rehearse it, and write down the run and the receipt."""
    try:
        with transaction(runtime.engine, tenant_id) as connection:
            done = forget(connection)
            if dry_run:
                raise _Rehearsed(done)
            erasure_id = persons.record(connection, tenant_id, of=of, name=name, counts=done.counts)
            run = _written(connection, tenant_id, of, done, erasure_id=erasure_id)
    except _Rehearsed as rehearsed:
        with transaction(runtime.engine, tenant_id) as connection:
            return _written(connection, tenant_id, of, rehearsed.forgotten, erasure_id=None)
    _drop_hot(runtime, done)
    log.info("forgotten", of=of, erasure=str(erasure_id), rows=sum(done.counts.values()))
    return run


def _written(
    connection: Connection, tenant_id: int, of: str, done: _Forgotten, *, erasure_id: UUID | None
) -> Run:
    report = {"erasure": None if erasure_id is None else str(erasure_id), "counts": dict(done.counts)}
    options = {"of": of, "dry_run": erasure_id is None}
    run_id = runs.record(connection, tenant_id, FORGET, scope_id=None, report=report, options=options)
    run = runs.read(connection, run_id)
    assert run is not None
    return run


def _forget_turns(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    found: Sequence[TurnRow],
    *,
    gone: Sequence[UUID] = (),
) -> _Forgotten:
    ids = [turn.id for turn in found]
    resting = erase.resting_on(connection, scope_id, ids)
    for other in resting:
        if other != scope_id:
            names.lock_scope(connection, tenant_id, other)
    erase.fence_sessions(connection, scope_id, found)
    counts: Counts = {"turns": erase.delete_turns(connection, tenant_id, scope_id, found)}
    counts = _added(counts, {"checkpoints": erase.delete_checkpoints(connection, scope_id, ids)})
    said = "\n".join(turn.text for turn in found)
    for other in sorted({scope_id, *resting}):
        settled = _settle(
            connection,
            tenant_id,
            other,
            gone=gone if other == scope_id else (),
            touched=resting.get(other, ()),
            said=said,
            by_turn=True,
        )
        counts = _added(counts, settled)
    labels = erase.labels(connection, scope_id)
    named = Counter(entity for turn in found for entity in _named(labels, turn.text))
    counts = _added(counts, {"entities": erase.lower_mentions(connection, scope_id, named)})
    return _Forgotten(counts, frozenset({scope_id, *resting}))


def _named(labels: Sequence[tuple[int, tuple[str, ...]]], said: str) -> list[int]:
    """Entities that a text names by any of their labels."""
    folded = said.casefold()
    return [entity for entity, called in labels if any(name.casefold() in folded for name in called)]


def _settle(
    connection: Connection,
    tenant_id: int,
    scope_id: int,
    *,
    gone: Collection[UUID],
    touched: Collection[UUID],
    said: str,
    by_turn: bool,
) -> Counts:
    """Delete what goes with the forgotten, retire what has lost its last source, bring back what a merge had hidden."""
    family = erase.family(connection, scope_id, {*gone, *touched}, touched=touched)
    fate = fates(family.kin, gone=gone, said=said, by_turn=by_turn)
    lost = sorted(id for id, one in fate.items() if one is Fate.GONE)
    unsupported = [id for id, one in fate.items() if one is Fate.UNSUPPORTED]
    mentioned = erase.mentioned_by(connection, scope_id, lost)
    checkpoints = erase.delete_checkpoints(connection, scope_id, lost)
    erase.drop_answers(connection, scope_id)
    deleted = merges.remove(connection, tenant_id, scope_id, lost)
    _bring_back(connection, scope_id, family, set(lost))
    retired = erase.retire_unsupported(connection, scope_id, unsupported)
    entities = erase.lower_mentions(connection, scope_id, dict.fromkeys(mentioned, 0 if by_turn else 1))
    return _added(
        {},
        {"memories": deleted, "memories retired": retired, "entities": entities, "checkpoints": checkpoints},
    )


def _bring_back(connection: Connection, scope_id: int, family: Family, lost: set[UUID]) -> None:
    """Parts of a merged row that went: they stand again where it stood."""
    for id in sorted(lost & family.parts.keys()):
        left = _parts_left(family, id, lost)
        retired = family.retired.get(id)
        if not left or (retired is not None and retired[2] in lost):
            continue
        if retired is None:
            taken = {part for part, _ in merges.twins(connection, scope_id, left, besides=left)}
            merges.restore(connection, scope_id, [part for part in left if part not in taken])
        else:
            at, reason, successor = retired
            erase.hand_on(connection, scope_id, left, at=at, reason=reason, successor=successor)


def _parts_left(family: Family, id: UUID, lost: set[UUID]) -> list[UUID]:
    found: list[UUID] = []
    for part in family.parts.get(id, ()):
        found += _parts_left(family, part, lost) if part in lost else [part]
    return found


def _added(counts: Counts, more: Counts) -> Counts:
    total = Counter(counts)
    total.update(more)
    return {table: count for table, count in total.items() if count}


def _drop_hot(runtime: Runtime, done: _Forgotten) -> None:
    """After the commit. Hot keys hold ids only and expire; a Redis that is away keeps ids of rows that are gone."""
    try:
        hot_erase.erase(runtime.hot, done.erased)
        for scope_id in done.touched:
            stream.clear(runtime.hot, scope_id)
            cache.drop(runtime.hot, scope_id)
    except MemoryAppError as error:
        log.warning("hot_memory_not_dropped", error=error.kind)
