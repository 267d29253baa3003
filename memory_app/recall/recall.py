"""Recall: rank what a scope holds against a query. The one read path; it never writes.

query → search → ranking → rerank → counts: the query is checked and embedded with no transaction open, read against
what its scope knows, searched and ranked in one transaction, reordered by a reranker where there is one, and the
memories it returned are counted in the background. What cannot be had (the embedder is away) is left out and named in
``degraded``.
"""

from __future__ import annotations

from sqlalchemy import Connection

from memory_app import metrics
from memory_app.db.db import plan_anew, transaction
from memory_app.db.shards import at_home
from memory_app.recall import candidates
from memory_app.recall.counts import note_hits
from memory_app.recall.granted import still_granted, with_granted, within_grant
from memory_app.recall.query import ScopedQuery, check_query, embed_missing, embed_query, prepare_query
from memory_app.recall.ranking import Candidate, rank
from memory_app.recall.records import Hit, Recalled, RecallQuery
from memory_app.recall.rerank import rerank, with_more_rows
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tenancy.redaction import with_redaction_of
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

__all__ = ["Hit", "RecallQuery", "Recalled", "recall", "search", "search_previous_models"]

REPEATS_LIMIT = 1_000
"""Rows of each tier looked through where so many repeat each other that too few remained."""


@metrics.timing(metrics.recall_seconds, "whole")
@in_scopes_shard
def recall(runtime: Runtime, tenant_id: int, scope: Scope, *, query: RecallQuery) -> Recalled:
    """Return the best rows of the scope for the query; each user's scope includes the agent's own memories.

    Raises `InvalidInput` naming the field, `NotFound` for an unknown scope or session. Embeds the query; writes
    nothing, and has the recalled memories counted in the background.
    """
    query = check_query(runtime, query)
    # The embedder may be a remote server: no connection is held while it answers.
    with metrics.timed(metrics.recall_seconds, "embed"):
        vectors = embed_query(with_redaction_of(runtime, tenant_id, scope.agent), query.text)
    wider = with_more_rows(runtime, query)
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        scoped = prepare_query(connection, runtime, row, query=wider, vectors=vectors, session=scope.session)
        scoped = with_granted(connection, runtime, scoped)
        # A model must not be called while a transaction is open: what misses a vector is searched afterwards.
        with metrics.timed(metrics.recall_seconds, "search"):
            recalled = None if scoped.missing_models else search(connection, runtime, scoped)
    if recalled is None:
        recalled = search_previous_models(runtime, tenant_id, scoped)
    recalled = rerank(runtime, scoped, recalled, limit=query.limit)
    note_hits(runtime, tenant_id, recalled.memories)
    for section in recalled.degraded:
        metrics.degraded.labels("recall", section).inc()
    return recalled


def search(connection: Connection, runtime: Runtime, scoped: ScopedQuery) -> Recalled:
    """Search and rank in the caller's transaction, whose own changes count. Calls no model and notes nothing.

    More rows are read where repeats left too few hits.
    """
    rows, has_more = _collect(connection, runtime, scoped)
    recalled = rank(scoped, rows)
    # Widened once only, so that one request does not read a whole scope full of repeats.
    if recalled.is_cut_short and has_more:
        rows, _ = _collect(connection, runtime, scoped, most=REPEATS_LIMIT)
        recalled = rank(scoped, rows, considered=REPEATS_LIMIT)
    return recalled


def _collect(
    connection: Connection, runtime: Runtime, scoped: ScopedQuery, *, most: int | None = None
) -> tuple[list[Candidate], bool]:
    """The candidates, and whether there may be more of them. ``most`` rows of each tier; None: what usually suffices.

    What all users of the agent share is searched separately where it stands in another shard, and so is what the
    person lets the agent recall of others.
    """
    probe = candidates.probe_of(runtime, scoped)
    limit = probe.limit if most is None else most
    if most is not None:
        probe = candidates.widened(probe, most)
    rows = candidates.collect(connection, scoped, probe)
    has_more = len(rows) >= limit and limit < REPEATS_LIMIT
    for shared in scoped.shared:
        with at_home(connection) as home:
            more, others_have_more = _collect(home, runtime, shared, most=most)
        rows += more
        has_more = has_more or others_have_more
    for granted in scoped.granted:
        with within_grant(connection, granted):
            more, others_have_more = _collect(connection, runtime, granted, most=most)
        rows += more
        has_more = has_more or others_have_more
    return rows, has_more


def search_previous_models(runtime: Runtime, tenant_id: int, scoped: ScopedQuery) -> Recalled:
    """Like `search`, in a transaction of its own and with vectors of the ``missing_models``. Calls their embedders."""
    scoped = embed_missing(runtime, scoped)
    with transaction(runtime.engine, tenant_id) as connection:
        plan_anew(connection)
        # A grant may have been revoked while the embedders were asked.
        return search(connection, runtime, still_granted(connection, scoped))
