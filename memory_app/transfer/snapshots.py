"""Export a scope as one document, and fill an empty scope from one. All of it or nothing.

Ids, counts, links and results are the same afterwards; hot memory is rebuilt from the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from memory_app import queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, Erased, InvalidInput, NotFound, TooLarge
from memory_app.jobs import schedule
from memory_app.memories import capacity
from memory_app.memories.remember import drop_context
from memory_app.memories.rows import fading
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy import quotas, shards
from memory_app.tenancy.digests import USER, digests_of
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import erased, names, user_details
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard
from memory_app.transfer.redacted import redacted_lists
from memory_app.transfer.rows import checkpoints, snapshots
from memory_app.transfer.rows.checkpoints import CheckpointRow
from memory_app.transfer.snapshot import (
    FORMAT,
    VERSION,
    canonical_meta,
    check_snapshot,
    embedder_meta,
    heads_first,
)
from memory_app.transfer.snapshot_rows import LISTS
from memory_app.turns.rows import sessions

PAGE_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows of each sort were stored."""

    counts: Mapping[str, int]


@in_scopes_shard
def export(runtime: Runtime, tenant_id: int, scope: Scope) -> dict[str, Any]:
    """The whole scope as a snapshot. `NotFound` for an unknown scope."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return snapshot(connection, runtime, row)


def snapshot(
    connection: Connection,
    runtime: Runtime,
    row: ScopeRow,
    *,
    session: str | None = None,
    ids: Sequence[UUID] | None = None,
) -> dict[str, Any]:
    """The scope, or with ``ids`` those memories and the links between them, as a document."""
    lists = snapshots.export(connection, row.id, ids=ids)
    if ids is not None:
        _close(lists["nodes"])
    return {
        "format": FORMAT,
        "version": VERSION,
        "created_at": clock.now(connection).isoformat(),
        "scope": {
            "agent": row.agent,
            "user": row.user,
            "session": session,
            # A part may lack them, so that whoever imports it stores them.
            "is_seeded": row.is_seeded and ids is None,
        },
        "embedder": embedder_meta(runtime.embedder.model, runtime.embedder.dimensions),
        "canonical": canonical_meta(lists["nodes"]),
        "counts": {name: len(lists[name]) for name in LISTS},
        **lists,
    }


def _close(nodes: Sequence[dict[str, Any]]) -> None:
    """Take out what leads outside the document, or its import would be refused: it has no sessions, not all nodes."""
    ids = {node["id"] for node in nodes}
    for node in nodes:
        node["session"] = None
        if node["successor"] not in ids:
            node["successor"] = None


@in_scopes_shard
def load(
    runtime: Runtime, tenant_id: int, scope: Scope, document: Any, *, new_consent: bool = False
) -> Imported:
    """Fill an empty scope from a snapshot.

    Default memories of the agent are still stored where the snapshot lacks them. ``new_consent``: the person, who was
    erased once, has agreed anew. Raises `InvalidInput` naming the part that does not fit, `TooLarge` when it holds more
    than the scope may, `Erased` without that consent, `Conflict` when the scope is not empty or an id of the snapshot
    is stored in this tenant already. Then nothing is imported.
    """
    return load_all(runtime, tenant_id, [(scope, document)], new_consent=new_consent)


def load_all(
    runtime: Runtime,
    tenant_id: int,
    snapshots_by_scope: Sequence[tuple[Scope, Any]],
    *,
    time_zones: Mapping[str, str] | None = None,
    user_names: Mapping[str, tuple[str | None, tuple[str, ...]]] | None = None,
    new_consent: bool = False,
) -> Imported:
    """As `load` for several scopes at once: all of them or none.

    ``time_zones`` are set by name of the user, and so are labels and aliases, ``user_names``.
    """
    # All checks before the transaction: they take seconds for a large snapshot, and scopes are locked in it.
    loads = [(scope, document, _checked(runtime, document)) for scope, document in snapshots_by_scope]
    loads = _redacted(runtime, tenant_id, loads)
    shards.in_each(runtime, lambda here: _check_other_shard(runtime, here, tenant_id, loads))
    _check_quotas(runtime, tenant_id, loads)
    scope_ids: list[int] = []
    with transaction(runtime.engine, tenant_id) as connection:
        if not new_consent:
            users = sorted({scope.user for scope, _, _ in loads if scope.user is not None})
            _check_consent(connection, runtime, tenant_id, users)
        for scope, document, lists in loads:
            row = names.ensure_scope(connection, tenant_id, Scope(scope.agent, scope.user))
            # Every writer of memories takes this lock, so the scope stays empty until it is filled.
            names.hold_scope(connection, tenant_id, Scope(scope.agent, scope.user), row.id)
            _check_room(connection, runtime, row=row, lists=lists)
            snapshots.load(connection, tenant_id, row.id, lists=lists)
            # The import writes past the counts that the capacity check relies on; the next write counts again.
            fading.forget_bounds(connection, row.id)
            if document["scope"]["is_seeded"]:
                names.mark_seeded(connection, row.id)
            scope_ids.append(row.id)
        for user, zone in (time_zones or {}).items():
            user_details.set_time_zone(connection, tenant_id, user=user, zone=zone)
        for user, (label, aliases) in (user_names or {}).items():
            user_details.set_names(connection, tenant_id, user=user, label=label, aliases=aliases)
        schedule.wake(connection, runtime, scope_ids)
    # After the commit: a context that is rebuilt before it would be cached without the imported memories.
    for scope_id in scope_ids:
        drop_context(runtime, scope_id)
    runtime.hint(queue.INDEX_TURNS)
    return Imported({name: sum(len(lists[name]) for _, _, lists in loads) for name in LISTS})


_Loads = list[tuple[Scope, Any, dict[str, list[Any]]]]


def _redacted(runtime: Runtime, tenant_id: int, loads: _Loads) -> _Loads:
    """The lists as the policy of each agent lets them be stored."""
    agents = {scope.agent for scope, _, _ in loads}
    with transaction(runtime.directory.engine, tenant_id) as connection:
        starts = {agent: names.agent_start(connection, tenant_id, agent) for agent in sorted(agents)}
    rules = {
        agent: parse_policy(start.policy if start else {}).redaction_rules for agent, start in starts.items()
    }
    return [
        (scope, document, redacted_lists(runtime, lists, rules[scope.agent]))
        for scope, document, lists in loads
    ]


def _check_quotas(runtime: Runtime, tenant_id: int, loads: _Loads) -> None:
    """Raise `QuotaExceeded` where there is no room for so many turns and memories of a person or of the tenant."""
    turns: Counter[str] = Counter()
    memories: Counter[str] = Counter()
    for scope, _, lists in loads:
        if scope.user is not None:
            turns[scope.user] += len(lists["turns"])
            memories[scope.user] += sum(node["retired_at"] is None for node in lists["nodes"])
    quotas.admit_import(runtime, tenant_id, turns=turns, memories=memories)


def _check_consent(connection: Connection, runtime: Runtime, tenant_id: int, users: Sequence[str]) -> None:
    """Raise `Erased` where one of the users was erased: what is imported may be what they had erased."""
    made = digests_of(runtime.settings)
    for user in users:
        # Held until the end: an erasure that comes now is one after the import.
        erased.hold_name(connection, tenant_id, user)
        erased_at, _ = erased.newest(connection, tenant_id, made.possible(tenant_id, USER, user))
        if erased_at is not None:
            raise Erased(
                f"user {user!r} was erased on {erased_at:%Y-%m-%d}; import only with their new consent, and say so "
                "with new_consent: true",
                field="new_consent",
            )


def _checked(runtime: Runtime, document: Any) -> dict[str, list[Any]]:
    """The lists of a snapshot, the nodes in an order in which each comes after its successor."""
    embedder = runtime.embedder
    check_snapshot(document, model=embedder.model, dimensions=embedder.dimensions)
    lists = {name: document[name] for name in LISTS}
    lists["nodes"] = heads_first(lists["nodes"], "nodes", key="id", head="successor")
    # Only for its check: entities are stored without their heirs, which are set when all of them are there.
    heads_first(lists["entities"], "entities", key="key", head="merged_into")
    return lists


def _check_room(
    connection: Connection,
    runtime: Runtime,
    *,
    row: ScopeRow,
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    if not snapshots.is_empty(connection, row.id):
        raise Conflict(
            "the scope is not empty; import into a new user, or forget this one first", field="user"
        )
    _check_ids(connection, lists)
    ceiling = capacity.ceiling_of(runtime, parse_policy(row.policy))
    current = sum(node["retired_at"] is None for node in lists["nodes"])
    # Above a ceiling the next maintenance would evict the weakest rows without a word to whoever imported them.
    if current > ceiling.memories:
        raise _too_large("nodes", f"{current} current memories", ceiling.memories, setting="max_memories")
    links = len(lists["links"])
    if links > ceiling.links:
        raise _too_large("links", f"{links} links", ceiling.links, setting="max_links")


def _check_other_shard(
    runtime: Runtime,
    here: Runtime,
    tenant_id: int,
    loads: Sequence[tuple[Scope, Any, Mapping[str, Sequence[Mapping[str, Any]]]]],
) -> None:
    # That of the import is checked under the lock of the scope.
    if here.shard == runtime.shard:
        return
    with transaction(here.engine, tenant_id) as connection:
        for _, _, lists in loads:
            _check_ids(connection, lists)


def _check_ids(connection: Connection, lists: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    duplicate = snapshots.stored_id(connection, _ids(lists["nodes"]), _ids(lists["turns"]))
    if duplicate is not None:
        raise Conflict(f"{duplicate} is stored in this tenant already; ids cannot stand twice", field="nodes")


def _too_large(name: str, content: str, limit: int, *, setting: str) -> TooLarge:
    return TooLarge(
        f"{name}: {content}, and the scope may hold {limit}; raise {setting} of the agent's policy or "
        f"decay.{setting} of the settings first; nothing was imported",
        field=name,
    )


@in_scopes_shard
def make_checkpoint(
    runtime: Runtime, tenant_id: int, scope: Scope, *, most: int | None = None
) -> CheckpointRow:
    """Keep the strongest memories of the scope, or of its session, as a document; ``most`` None takes the setting."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        session = None if scope.session is None else sessions.find(connection, row.id, scope.session)
        if scope.session is not None and session is None:
            raise NotFound(f"session: no session {scope.session!r} here", field="session")
        checkpoint_id = checkpoint(
            connection,
            runtime,
            tenant_id=tenant_id,
            row=row,
            session=scope.session,
            session_id=None if session is None else session.id,
            most=most,
        )
        newest = checkpoints.listed(connection, row.id, limit=PAGE_LIMIT)
        # Not simply the first: a checkpoint that another call made at the same time may stand before it.
        return next(row for row in newest if row.id == checkpoint_id)


def checkpoint(
    connection: Connection,
    runtime: Runtime,
    *,
    tenant_id: int,
    row: ScopeRow,
    session: str | None,
    session_id: int | None,
    most: int | None = None,
) -> UUID:
    """As `make_checkpoint`, in the caller's transaction; the checkpoint's id."""
    now = clock.now(connection)
    current = fading.current(connection, row.id, session_id=session_id)
    memories = capacity.strengths(runtime, current, now)
    # Of equally strong memories the better linked one; the id makes the choice the same each time.
    strongest = sorted(memories, key=lambda memory: (-memory.strength, -memory.degree, memory.id))
    limit = most or runtime.settings.ending.checkpoint_most
    ids = [memory.id for memory in strongest[:limit]]
    content = snapshot(connection, runtime, row, session=session, ids=ids)
    return checkpoints.add(connection, tenant_id, row.id, session=session, content=content)


@in_scopes_shard
def list_checkpoints(
    runtime: Runtime, tenant_id: int, scope: Scope, *, limit: int = 50, before: UUID | None = None
) -> tuple[CheckpointRow, ...]:
    """Checkpoints of the scope, newest first."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        return checkpoints.listed(connection, row.id, limit=limit, before=before)


@in_scopes_shard
def read_checkpoint(runtime: Runtime, tenant_id: int, scope: Scope, checkpoint_id: UUID) -> dict[str, Any]:
    """The document of a checkpoint; it can be imported like a snapshot."""
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        content = checkpoints.read(connection, row.id, checkpoint_id)
    if content is None:
        raise NotFound(f"no checkpoint {checkpoint_id}", field="id")
    # The database keeps no order of fields, and a file of ours is recognised by the first one.
    return {"format": content["format"]} | content


def _ids(rows: Sequence[Mapping[str, Any]]) -> list[UUID]:
    return [UUID(row["id"]) for row in rows]
