"""What a person lets an agent recall of what another agent knows of them: the same query over the other agent's scope.

Only memories of the granted kinds; no turns, no entities, nothing that all users of the other agent share. Grants are
read from the database by each recall and kept nowhere, so that one which is revoked ends at once. Nothing is written
to the other agent's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

from sqlalchemy import Connection

from memory_app.agents.rows import grants
from memory_app.agents.rows.grants import ReceivedGrant
from memory_app.db.shards import bound_of, bound_to_grant
from memory_app.recall.query import QueryVectors, ScopedQuery, prepare_query
from memory_app.records.kinds import recalled_kinds
from memory_app.records.records import Tier
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow


def with_granted(connection: Connection, runtime: Runtime, scoped: ScopedQuery) -> ScopedQuery:
    """Add the queries over what is granted. Where nothing is, a caller who is bound to an agent pays a short read."""
    # A session is one of the agent's own, and only memories can be granted.
    if scoped.row.user_id is None or scoped.query.session is not None or Tier.FACTS not in scoped.tiers:
        return scoped
    bound = bound_of(connection)
    # Who is bound to an agent sees no grants until `bound_to_grant`.
    if not scoped.facts.has_grants and (bound is None or bound.agent is None):
        return scoped
    received = _received(connection, scoped.row)
    queries = [_query_over(connection, runtime, scoped, grant) for grant in received]
    granted = tuple(query for query in queries if query is not None)
    if not granted:
        return scoped
    models = chain(scoped.missing_models, *(query.missing_models for query in granted))
    return replace(scoped, granted=granted, missing_models=tuple(dict.fromkeys(models)))


def still_granted(connection: Connection, scoped: ScopedQuery) -> ScopedQuery:
    """The query without those whose grant was revoked, narrowed or has run out since it was made."""
    if not scoped.granted:
        return scoped
    now_granted = {grant.scope_id: grant for grant in _received(connection, scoped.row)}
    granted = []
    for query in scoped.granted:
        grant = now_granted.get(query.row.id)
        kinds = _kinds(query, grant) if grant is not None else ()
        if kinds:
            granted.append(replace(query, query=replace(query.query, kinds=kinds)))
    return replace(scoped, granted=tuple(granted))


@contextmanager
def within_grant(connection: Connection, granted: ScopedQuery) -> Iterator[None]:
    """In the block a call that is bound to the asking agent sees the memories that the query is over."""
    assert granted.row.user is not None
    kinds = granted.query.kinds or ()
    with bound_to_grant(connection, granted.row.user, agent=granted.granted_by, kinds=kinds):
        yield


def _received(connection: Connection, row: ScopeRow) -> tuple[ReceivedGrant, ...]:
    assert row.user is not None
    with bound_to_grant(connection, row.user):
        return grants.received(connection, row.id)


def _query_over(
    connection: Connection, runtime: Runtime, scoped: ScopedQuery, grant: ReceivedGrant
) -> ScopedQuery | None:
    """The query over the scope that is granted; None where it can find nothing there."""
    kinds = _kinds(scoped, grant)
    if not kinds:
        return None
    assert scoped.row.user is not None
    with bound_to_grant(connection, scoped.row.user, agent=grant.agent, kinds=kinds):
        row = names.read_scope(connection, grant.scope_id)
        if row is None or not parse_policy(row.policy).memory:
            return None
        # Ranked as the asking agent ranks, and without what the other agent shares with all of its users.
        row = replace(row, policy=scoped.row.policy, visible=(row.id,), shared=())
        query = prepare_query(
            connection,
            runtime,
            row,
            query=replace(scoped.query, kinds=kinds, tiers=(Tier.FACTS,)),
            vectors=QueryVectors(scoped.vectors),
            spare=scoped.spare,
        )
    return replace(query, granted_by=grant.agent)


def _kinds(scoped: ScopedQuery, grant: ReceivedGrant) -> tuple[str, ...]:
    asked = scoped.query.kinds or recalled_kinds()
    return tuple(kind for kind in asked if kind in grant.kinds)
