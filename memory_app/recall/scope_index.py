"""Search indexes for scopes that grew big: found by size, built in the background, used once they are whole."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import Connection, Engine

from memory_app.db.db import transaction
from memory_app.errors import Misconfigured
from memory_app.memories.rows import scope_models
from memory_app.recall.rows import scope_index
from memory_app.recall.rows.scope_index import Agreement, BigScope
from memory_app.runtime import Runtime
from memory_app.tenancy.shards import in_usable

log = structlog.get_logger(__name__)

MOST_SCOPES = 20
"""Scopes done in one call; the next look finds the rest."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many scopes have search indexes, and how many may, by the setting and by the locks of the server."""

    indexed: int
    most: int


def room(connection: Connection, *, setting: int) -> Room:
    """How near the end is; ``setting`` is `Recall.big_scopes_max`."""
    indexed = scope_index.all_indexed(connection)
    return Room(len(indexed), min(setting, scope_index.affordable(connection)))


def index_big_scopes(runtime: Runtime) -> int:
    """Build the indexes of the biggest scopes above the size that have none for the current model; how many were done.

    No more scopes get some than the setting and the server's locks allow; the others are scanned. Building needs the
    owner of the tables: raises `Misconfigured` when ``database.owner_url`` is not set.
    """
    return sum(in_usable(runtime, _index_big_scopes))


def without_room(runtime: Runtime) -> tuple[BigScope, ...]:
    """Big scopes of the runtime's shard that have no indexes because there is no room for more."""
    with transaction(runtime.engine, None) as connection:
        if room_left(connection, runtime) > 0:
            return ()
        indexed = set(scope_index.all_indexed(connection))
        return tuple(scope for scope in _big(connection, runtime) if scope.scope_id not in indexed)


def room_left(connection: Connection, runtime: Runtime) -> int:
    """How many more scopes of the connection's shard may have indexes."""
    space = room(connection, setting=runtime.settings.recall.big_scopes_max)
    return space.most - space.indexed


def _big(connection: Connection, runtime: Runtime) -> tuple[BigScope, ...]:
    return scope_index.big_scopes(
        connection,
        least_rows=runtime.settings.recall.scan_rows,
        model=runtime.embedder.model,
        most=MOST_SCOPES,
    )


def _index_big_scopes(runtime: Runtime) -> int:
    with transaction(runtime.engine, None) as connection:
        big_scopes = _big(connection, runtime)
    # First, because dropped indexes make room for others.
    if runtime.owner is not None:
        _drop_needless(runtime, runtime.owner)
    if not big_scopes:
        return 0
    if runtime.owner is None:
        raise Misconfigured(
            f"{len(big_scopes)} scopes are too big to scan and building their indexes needs the owner: "
            "set MEMORY_DATABASE__OWNER_URL for the maintenance worker",
            field="database.owner_url",
        )
    with transaction(runtime.engine, None) as connection:
        indexed = set(scope_index.all_indexed(connection))
        most = room(connection, setting=runtime.settings.recall.big_scopes_max).most
    done = 0
    for scope in big_scopes:
        # A scope with indexes for another model counts against the limit already.
        if scope.scope_id in indexed or len(indexed) < most:
            index_scope(runtime, runtime.owner, tenant_id=scope.tenant_id, scope_id=scope.scope_id)
            indexed.add(scope.scope_id)
            done += 1
    if done < len(big_scopes):
        log.warning("big_scopes_scanned", scopes=len(big_scopes) - done, most=most)
    return done


def _drop_needless(runtime: Runtime, owner: Engine) -> None:
    """Make room: drop the indexes of scopes that are gone, and of those that shrank to half of what is big."""
    with transaction(runtime.engine, None) as connection:
        indexed = scope_index.all_indexed(connection)
        rows = {row.scope_id: row for row in scope_index.scope_rows(connection, indexed)}
    for scope_id in indexed:
        row = rows.get(scope_id)
        # Half of it, so that a scope near the limit does not gain and lose its indexes again and again.
        if row is not None and 2 * row.row_count >= runtime.settings.recall.scan_rows:
            continue
        if row is not None:
            # Before they are dropped, so that no search counts on an index that is gone.
            with transaction(runtime.engine, row.tenant_id) as connection:
                for model in scope_models.indexed(connection, scope_id):
                    scope_models.mark(connection, scope_id, model, is_indexed=False)
        scope_index.drop(owner, scope_id)
        log.info("scope_indexes_dropped", scope=scope_id)


AGREEMENT_LEAST = 0.95
"""Share of the rows a scan finds that an index should find as well."""


def agreements(connection: Connection, *, most_scopes: int = 3) -> tuple[Agreement, ...]:
    """How far the vector indexes of this tenant's newest big scopes agree with a scan; takes some seconds."""
    samples = [
        scope_index.agreement(connection, scope_id, model, table=table)
        for scope_id, model in scope_index.indexed(connection, most=most_scopes)
        for table in scope_index.TABLES
    ]
    return tuple(filter(None, samples))


def index_scope(runtime: Runtime, owner: Engine, *, tenant_id: int, scope_id: int) -> None:
    """Build the scope's indexes for the current model, beside those of models that rows still wait to leave."""
    names = scope_index.build(
        owner,
        scope_id,
        model=runtime.embedder.model,
        dimensions=runtime.embedder.dimensions,
        keep_others=True,
    )
    # Marked only now, because PostgreSQL does not use an index that is still being built.
    with transaction(runtime.engine, tenant_id) as connection:
        scope_models.mark(connection, scope_id, runtime.embedder.model, is_indexed=True)
    log.info("scope_indexed", scope=scope_id, indexes=len(names))
