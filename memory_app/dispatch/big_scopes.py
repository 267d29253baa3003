"""Give big scopes their search indexes, and where a shard has no room for more, move their users to one that has.

Every statement is planned with all indexes of its table, so that a shard bears few big scopes; see
`memory_app.recall.scope_index`. When all shards are full a new one is made, on the same server.
"""

from __future__ import annotations

import structlog

from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError
from memory_app.recall import scope_index
from memory_app.recall.rows.scope_index import BigScope
from memory_app.runtime import Runtime
from memory_app.tenancy import schema, shards
from memory_app.tenancy.rows import names
from memory_app.transfer.shards import move_user

log = structlog.get_logger(__name__)


def index(runtime: Runtime) -> int:
    """Build the indexes of big scopes in every shard; how many scopes were done. Raises as `index_big_scopes`."""
    done = scope_index.index_big_scopes(runtime)
    if runtime.owner is not None and _make_room(runtime):
        done += scope_index.index_big_scopes(runtime)
    return done


def _make_room(runtime: Runtime) -> int:
    """Move the users of big scopes that found no room; how many."""
    crowded = shards.in_usable(runtime, lambda here: (here, scope_index.without_room(here)))
    return sum(_move(runtime, here, scope) for here, waiting in crowded for scope in waiting)


def _move(runtime: Runtime, here: Runtime, scope: BigScope) -> bool:
    with transaction(here.engine, scope.tenant_id) as connection:
        row = names.read_scope(connection, scope.scope_id)
    # What an agent knows without a user stays in the home shard, where it is scanned.
    if row is None or row.user is None:
        return False
    target = _with_room(runtime)
    if target is None:
        target = _new_shard(runtime)
    try:
        move_user(runtime, scope.tenant_id, row.user, to=target)
    except MemoryAppError as error:
        log.warning("user_not_moved", scope=scope.scope_id, target=target, reason=error.message)
        return False
    return True


def _with_room(runtime: Runtime) -> int | None:
    """The shard with most room; None where there is none left."""

    def look(here: Runtime) -> tuple[int, int]:
        with transaction(here.engine, None) as connection:
            return scope_index.room_left(connection, here), here.shard

    left, shard = max(look(here) for here in shards.in_usable(runtime, lambda here: here))
    return shard if left > 0 else None


def _new_shard(runtime: Runtime) -> int:
    (shard,) = schema.add_shards(runtime.settings, 1)
    log.info("shard_added", shard=shard, reason="no shard has room for another big scope")
    # By an older list this process would make another one for the next scope.
    runtime.directory.read_again()
    return shard
