"""Recall: rank what a scope holds against a query. The one read path; it never writes.

query → search → ranking → counts: the query is checked and embedded with no transaction open, read against what its
scope knows, searched and ranked in one transaction, and the memories it returned are counted in the background. What
cannot be had (the embedder is away) is left out and named in ``degraded``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from sqlalchemy import Connection

from memory_app.db.db import plan_anew, transaction
from memory_app.db.shards import at_home
from memory_app.recall import candidates
from memory_app.recall.counts import note_hits
from memory_app.recall.query import (
    QueryVectors,
    ScopedQuery,
    check_query,
    embed_missing,
    embed_query,
    prepare_query,
)
from memory_app.recall.ranking import rank
from memory_app.recall.records import Hit, Recalled, RecallQuery
from memory_app.recall.rows.search import Probe
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

__all__ = ["Hit", "RecallQuery", "Recalled", "recall", "search", "search_previous_models"]

REPEATS_LIMIT = 1_000
"""Rows of each tier looked through where so many repeat each other that too few remained."""


@in_scopes_shard
def recall(runtime: Runtime, tenant_id: int, scope: Scope, *, query: RecallQuery) -> Recalled:
    """Return the best rows of the scope for the query; each user's scope includes the agent's own memories.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session. Embeds the query; writes
    nothing, and has the recalled memories counted in the background.
    """
    query = check_query(runtime, query)
    # The embedder may be a remote server: no connection is held while it answers.
    vectors = embed_query(runtime, query.text)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        scoped = prepare_query(connection, runtime, row, query=query, vectors=vectors, session=scope.session)
        # A model must not be called while a transaction is open: what misses a vector is searched afterwards.
        recalled = None if scoped.missing_models else search(connection, runtime, scoped)
    if recalled is None:
        recalled = search_previous_models(runtime, tenant_id, scoped)
    note_hits(runtime, tenant_id, recalled.memories)
    return recalled


def search(connection: Connection, runtime: Runtime, scoped: ScopedQuery) -> Recalled:
    """Search and rank in the caller's transaction, whose own changes count. Calls no model and notes nothing.

    What all users of the agent share is searched separately where it stands in another shard.
    """
    recalled = _search_shard(connection, scoped, candidates.probe_of(runtime, scoped))
    # What is shared belongs to no session.
    if not scoped.row.shared or scoped.query.session is not None:
        return recalled
    with at_home(connection):
        shared = [_search_shared(connection, runtime, scoped, scope_id) for scope_id in scoped.row.shared]
    hits = sorted(chain(recalled.memories, *shared), key=lambda hit: hit.score, reverse=True)
    return replace(recalled, memories=tuple(hits[: scoped.query.limit]))


def _search_shared(
    connection: Connection, runtime: Runtime, scoped: ScopedQuery, scope_id: int
) -> tuple[Hit, ...]:
    row = names.read_scope(connection, scope_id)
    if row is None:
        return ()
    vectors = QueryVectors(scoped.vectors, scoped.degraded)
    of_shared = prepare_query(connection, runtime, row, query=scoped.query, vectors=vectors)
    return _search_shard(connection, of_shared, candidates.probe_of(runtime, of_shared)).memories


def _search_shard(connection: Connection, scoped: ScopedQuery, probe: Probe) -> Recalled:
    """Search and rank in one shard. More rows are read where repeats left too few hits."""
    rows = candidates.collect(connection, scoped, probe)
    recalled = rank(scoped, rows)
    # Widened once only, so that one request does not read a whole scope full of repeats.
    has_more = len(rows) >= probe.limit and probe.limit < REPEATS_LIMIT
    if len(recalled.memories) < scoped.query.limit and has_more:
        rows = candidates.collect(connection, scoped, candidates.widened(probe, REPEATS_LIMIT))
        recalled = rank(scoped, rows, considered=REPEATS_LIMIT)
    return recalled


def search_previous_models(runtime: Runtime, tenant_id: int, scoped: ScopedQuery) -> Recalled:
    """Like `search`, in a transaction of its own and with vectors of the ``missing_models``. Calls their embedders."""
    scoped = embed_missing(runtime, scoped)
    with transaction(runtime.engine, tenant_id) as connection:
        plan_anew(connection)
        return search(connection, runtime, scoped)
