"""Consolidate: the ladder of the write path over what is stored already, for one scope and perhaps one kind.

A plan is made without a lock, then carried out a few clusters at a time. Each is looked at again under the scope's
lock: what changed meanwhile is left alone and named, and what was added meanwhile is not touched. The words of a united
row are those of one of its parts, or of the agent's language model where these would lose much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim, ScopeRun
from memory_app.language.text import canonical_key, terms
from memory_app.memories import ladder, merging
from memory_app.memories.ladder import Neighbour
from memory_app.memories.remember import drop_context, neighbour_of, thresholds_of
from memory_app.memories.rows import entities, memories, merges
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.recall.scoring import keyword_weights
from memory_app.records.kinds import KINDS, kind_of
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import wording
from memory_app.sleep.clusters import PIECE, Cluster, clusters, components, near_pairs
from memory_app.sleep.rows import sleeping
from memory_app.sleep.wording import Worded
from memory_app.tenancy.rows import names

log = structlog.get_logger(__name__)

CLUSTERS_AT_ONCE = 20
"""Clusters united in one transaction: the scope's row is held for about a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be united. ``versions`` are those of the members when the plan was made, ``worded`` texts for them."""

    inspected: int
    clusters: tuple[Cluster, ...]
    versions: dict[UUID, tuple[object, ...]]
    worded: Mapping[tuple[UUID, ...], Worded] = field(default_factory=dict)


def ask(
    runtime: Runtime, tenant_id: int, scope: Scope, *, kind: str | None = None, dry_run: bool = False
) -> Run:
    """Ask for a run over the scope's memories, or those of one kind. A dry run reports the same and changes nothing.

    Raises `InvalidInput` for an unknown kind, `NotFound` for an unknown scope.
    """
    wanted = None if kind is None else kind_of(kind).name
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
    options = {"kind": wanted, "dry_run": dry_run}
    return jobs.ask(
        runtime, tenant_id, RunName.CONSOLIDATE, task=queue.DEDUPLICATE, scope_id=row.id, options=options
    )


def consolidate(runtime: Runtime, claimed: RunClaim) -> None:
    """Do one run. The report is the plan, with the members that were left alone because they changed meanwhile."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
    if run is None:
        raise NotFound("the person was forgotten while this was under way")
    plan = make_plan(runtime, claimed.tenant_id, claimed.scope_id, kind=run.options.get("kind"))
    failpoint.reach("consolidate.after_plan")
    left_alone: list[Cluster] = []
    if not run.options.get("dry_run"):
        worded = wording.word(runtime, claimed.tenant_id, claimed.scope_id, plan.clusters)
        plan = replace(plan, worded=worded)
        for start in range(0, len(plan.clusters), CLUSTERS_AT_ONCE):
            left_alone += _carry_out(runtime, claimed, plan, plan.clusters[start : start + CLUSTERS_AT_ONCE])
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        jobs.complete(connection, claimed, _report(plan, run.options.get("kind"), left_alone))
    if plan.clusters and not run.options.get("dry_run"):
        drop_context(runtime, claimed.scope_id)
    log.info("scope_consolidated", scope=claimed.scope_id, clusters=len(plan.clusters), left=len(left_alone))


def undo(connection: Connection, tenant_id: int, run: ScopeRun) -> None:
    """Take apart everything a run united, all or nothing. Raises `Conflict` naming what blocks it."""
    merged = merges.of_run(connection, run.scope_id, run.id)
    merging.take_apart(connection, tenant_id, run.scope_id, merged)


def make_plan(runtime: Runtime, tenant_id: int, scope_id: int, *, kind: str | None = None) -> Plan:
    """What may be united in a scope. Reads only; the cosines of all pairs are computed with no transaction open."""
    kinds = [name for name, row in KINDS.items() if row.merges and kind in (None, name)]
    model = runtime.embedder.model
    inspected = 0
    found: list[Cluster] = []
    versions: dict[UUID, tuple[object, ...]] = {}
    for name in kinds:
        with transaction(runtime.engine, tenant_id) as connection:
            groups = merges.vectors(connection, scope_id, kind=name, model=model)
        for group in groups:
            inspected += len(group.ids)
            for ids in _near(runtime, group, name):
                with transaction(runtime.engine, tenant_id) as connection:
                    some = _read(connection, scope_id, ids)
                    pairs = memories.pair_similarities(connection, scope_id, ids)
                found += clusters(some, thresholds=thresholds_of(runtime, name), pairs=pairs)
                versions |= {n.memory.id: merging.version(n.memory) for n in some}
    members = {id for cluster in found for id in cluster.members}
    return Plan(inspected, tuple(found), {id: versions[id] for id in members})


def _near(runtime: Runtime, group: merges.Vectors, kind: str) -> Iterator[list[UUID]]:
    """Ids that hang together by near pairs, in pieces that can be looked at as a whole."""
    thresholds = thresholds_of(runtime, kind)
    pairs = near_pairs(group.vectors, least=thresholds.merge, most=runtime.settings.remember.neighbours)
    for places in components(pairs):
        for start in range(0, len(places), PIECE):
            piece = places[start : start + PIECE]
            if len(piece) > 1:
                yield [group.ids[place] for place in piece]


def _carry_out(runtime: Runtime, claimed: RunClaim, plan: Plan, planned: Sequence[Cluster]) -> list[Cluster]:
    """Unite clusters in one transaction; those with a member that changed meanwhile are left alone."""
    left = []
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
            raise NotFound("the person was forgotten while this was under way")
        if not runs.extend(connection, claimed, jobs.LEASE):
            raise jobs.Fenced
        for cluster in planned:
            members = _read(connection, claimed.scope_id, cluster.members)
            if any(merging.version(n.memory) != plan.versions[n.memory.id] for n in members) or len(
                members
            ) < len(cluster.members):
                left.append(cluster)
            else:
                _unite(connection, runtime, claimed, members, plan.worded.get(cluster.members))
        failpoint.reach("consolidate.before_commit")
    return left


def _unite(
    connection: Connection,
    runtime: Runtime,
    claimed: RunClaim,
    members: Sequence[Neighbour],
    worded: Worded | None,
) -> None:
    """Unite the members into one row, at most so many in one operation as the ladder allows."""
    most = thresholds_of(runtime, members[0].memory.kind).merge_most
    waiting = list(members)
    while len(waiting) > 1:
        some, waiting = waiting[:most], waiting[most:]
        fields = ladder.merge(some)
        kept = next(n.memory for n in some if n.memory.text == fields.text)
        row = merging.merged_row(
            fields,
            vector=memories.vector(connection, claimed.scope_id, kept.id),
            model=kept.embedding_model or runtime.embedder.model,
            keywords=keyword_weights(terms(fields.text)),
            session_id=merges.sessions_of(connection, claimed.scope_id, [kept.id])[kept.id],
            run_id=claimed.run_id,
        )
        parts = [n.memory.id for n in some]
        if worded is not None:
            row = _reworded(connection, runtime, claimed.scope_id, row, worded, parts)
        merged = merging.unite(connection, claimed.tenant_id, claimed.scope_id, row, parts)
        waiting = [*_read(connection, claimed.scope_id, [merged]), *waiting]


def _reworded(
    connection: Connection,
    runtime: Runtime,
    scope_id: int,
    row: NewMemory,
    worded: Worded,
    parts: Sequence[UUID],
) -> NewMemory:
    """The row with the model's words, unless they are what another current row says."""
    new = replace(
        row,
        text=worded.text,
        canonical_key=canonical_key(worded.text),
        embedding=worded.vector,
        embedding_model=runtime.embedder.model,
        keywords=keyword_weights(terms(worded.text)),
    )
    return row if sleeping.taken(connection, scope_id, [new], besides=parts) else new


def _read(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[Neighbour, ...]:
    same = entities.heirs_by_alias(connection, [scope_id])
    return tuple(neighbour_of(row, same) for row in merges.rows(connection, scope_id, ids))


def _report(plan: Plan, kind: str | None, left_alone: Sequence[Cluster]) -> dict[str, Any]:
    united = [cluster for cluster in plan.clusters if cluster not in left_alone]
    return {
        "kind": kind,
        "inspected": plan.inspected,
        "clusters": [_plain(cluster) for cluster in united],
        "merged": sum(len(cluster.members) for cluster in united),
        "freed": sum(len(cluster.members) - 1 for cluster in united),
        "worded": sum(cluster.members in plan.worded for cluster in united),
        "left_alone": [_plain(cluster) for cluster in left_alone],
    }


def _plain(cluster: Cluster) -> dict[str, Any]:
    fields = asdict(cluster)
    return fields | {"members": [str(id) for id in cluster.members], "text_of": str(cluster.text_of)}
