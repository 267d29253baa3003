"""Move a user from one shard to another, while others and the user chat.

All of it is one transaction: whatever dies, the user is here or there and never in both. Who writes at this moment has
written before the move, or waits for it and goes on in the new shard.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from memory_app import failpoint
from memory_app.db.db import transaction
from memory_app.db.directory import Shard, users_by_shard
from memory_app.db.shards import HOME
from memory_app.errors import Conflict, MemoryAppError, NotFound, ShardMissing, StoreUnavailable
from memory_app.hot import cache
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import place_of
from memory_app.transfer.rows import user_copy
from memory_app.transfer.rows.user_copy import Move

log = structlog.get_logger(__name__)

TRIES = 5
PAUSE_SECONDS = (0.05, 0.5)


@dataclass(frozen=True, slots=True)
class MovedUser:
    """From which shard to which, and how many rows by table; none where the user was there already."""

    source: int
    target: int
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ListedShard:
    """A shard and how many users it holds."""

    shard: Shard
    users: int


def list_shards(runtime: Runtime) -> tuple[ListedShard, ...]:
    """All shards, the home shard first."""
    shards = runtime.directory.shards()
    with transaction(runtime.at(HOME).engine, None) as connection:
        users = users_by_shard(connection)
    return tuple(ListedShard(shard, users.get(shard.id, 0)) for shard in shards)


def move_user(runtime: Runtime, tenant_id: int, user: str, *, to: int) -> MovedUser:
    """Move all rows of a user. Moving a user who is there already changes nothing.

    Raises `NotFound` for an unknown user, `ShardMissing` where one of the shards is missing or behind, `Conflict` where
    a memory that all users of an agent share rests on a turn of this one.
    """
    runtime.directory.check(to)
    for _ in range(TRIES - 1):
        try:
            return _move(runtime, tenant_id, user, to=to)
        except ShardMissing:
            raise
        except StoreUnavailable as error:
            # Mostly a deadlock with whoever begins a session at this moment.
            log.info("move_tried_again", reason=error.message)
            time.sleep(random.uniform(*PAUSE_SECONDS))
    return _move(runtime, tenant_id, user, to=to)


def _move(runtime: Runtime, tenant_id: int, user: str, *, to: int) -> MovedUser:
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        locked = user_copy.lock_user(connection, tenant_id, user)
        if locked is None:
            raise NotFound(f"nothing is stored for user {user!r}", field="user")
        if locked.shard == to:
            return MovedUser(to, to, {})
        runtime.directory.check(locked.shard)
        source, target = (place_of(runtime, connection, shard) for shard in (locked.shard, to))
        scope_ids = user_copy.lock_scopes(source, tenant_id, locked)
        failpoint.reach("move.after_locks")
        if shared := user_copy.shared_evidence(source, scope_ids):
            raise Conflict(
                f"{shared} memories that all users of an agent share rest on turns of user {user!r}, who must stay in "
                f"shard {locked.shard}",
                field="user",
            )
        rows = user_copy.move(Move(tenant_id, locked, scope_ids, connection, source, target, to))
        failpoint.reach("move.before_commit")
    failpoint.reach("move.after_commit")
    runtime.directory.note(tenant_id, user, to)
    _drop_hot(runtime, scope_ids)
    log.info("user_moved", source=locked.shard, target=to, rows=sum(rows.values()))
    return MovedUser(locked.shard, to, rows)


def _drop_hot(runtime: Runtime, scope_ids: tuple[int, ...]) -> None:
    try:
        for scope_id in scope_ids:
            cache.drop(runtime.hot, scope_id)
    except MemoryAppError as error:
        # No reason to fail: the rows keep their ids, so that what is cached is right.
        log.warning("hot_memory_not_dropped", error=error.kind)
