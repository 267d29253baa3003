"""Consolidate a scope: a sleep cycle of one step, which merges what says the same among all memories or one kind.

It differs from sleep in its rules: firm memories are merged too, every similar pair counts, and the merged row has
the longest text, or a sentence of the agent's language model where that would lose much. Planning, the quality gate
and undo are those of `sleep`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.language.text import canonical_key
from memory_app.memories.decisions import MERGE_LIMIT
from memory_app.memories.remember import drop_context
from memory_app.records.kinds import kind_of
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, merged_texts
from memory_app.sleep.plan import MERGING_KINDS, ClusterPlan, CyclePlan, make_plan
from memory_app.sleep.report import ConsolidatedCluster, ConsolidationReport, CycleReport
from memory_app.sleep.rows import sleeping
from memory_app.sleep.rules import CONSOLIDATION_STEPS, MergeRules, SleepOptions
from memory_app.tenancy.rows import names
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.tenancy.shards import in_scopes_shard

log = structlog.get_logger(__name__)

OPTIONS = SleepOptions(max_inspected=sys.maxsize, min_strength=math.inf)
"""Who asks for consolidation means every memory, however strong. The clusters of one run have the limit of a sleep
cycle, since they are merged in one transaction that holds the scope; another run merges the rest."""


@in_scopes_shard
def ask(
    runtime: Runtime, tenant_id: int, scope: Scope, *, kind: str | None = None, dry_run: bool = False
) -> Run:
    """Enqueue a run over the scope's memories, or those of one kind. A dry run reports the same and changes nothing.

    Raises `InvalidInput` for an unknown kind, `NotFound` for an unknown scope.
    """
    kind_name = None if kind is None else kind_of(kind).name
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
    options = {"kind": kind_name, "dry_run": dry_run}
    return jobs.ask(
        runtime, tenant_id, RunName.CONSOLIDATE, task=queue.DEDUPLICATE, scope_id=row.id, options=options
    )


def consolidate(
    runtime: Runtime, claimed: RunClaim, *, revise: Callable[[CyclePlan], CyclePlan] = lambda plan: plan
) -> None:
    """Do one run: plan, word what needs it, carry out. ``revise`` may change the plan before it is worded."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
    if run is None or row is None:
        raise NotFound("the person was erased while this ran")
    # Runs of an earlier release may lack an option.
    kind, is_dry = run.options.get("kind"), bool(run.options.get("dry_run"))
    plan = revise(_make_plan(runtime, claimed.tenant_id, row, kind=kind, dry_run=is_dry))
    failpoint.reach("consolidate.after_plan")
    # A dry run asks no model: its report has the longest text where the run may have a sentence of the model.
    if not is_dry:
        plan = _with_wordings(runtime, claimed.tenant_id, plan)

    def complete(connection: Connection, claimed: RunClaim, report: CycleReport) -> None:
        jobs.complete(connection, claimed, _report(plan, report, kind=kind))

    report = cycle.carry_out(runtime, claimed, plan, note=complete)
    if report.applied and report.clusters and not is_dry:
        drop_context(runtime, row.id)
    log.info("scope_consolidated", scope=row.id, clusters=len(report.clusters), applied=report.applied)


def _make_plan(
    runtime: Runtime, tenant_id: int, row: ScopeRow, *, kind: str | None, dry_run: bool
) -> CyclePlan:
    # A kind that never merges gives an empty plan, and a report that says so.
    kinds = MERGING_KINDS if kind is None else MERGING_KINDS & {kind}
    rules = MergeRules(kinds, contained_only=False, summarise=False, parts_limit=MERGE_LIMIT)
    options = replace(OPTIONS, dry_run=dry_run)
    return make_plan(runtime, tenant_id, row=row, options=options, steps=CONSOLIDATION_STEPS, rules=rules)


def _with_wordings(runtime: Runtime, tenant_id: int, plan: CyclePlan) -> CyclePlan:
    """Put the model's sentences into the plan, but for those that were ever stored: two rows must not say the same."""
    wordings = merged_texts.word(runtime, tenant_id, plan.row.id, clusters=plan.clusters)
    keys = {anchor: canonical_key(worded.text) for anchor, worded in wordings.items()}
    with transaction(runtime.engine, tenant_id) as connection:
        stored = sleeping.stored_keys(connection, plan.row.id, list(keys.values()))
    new = {anchor: worded for anchor, worded in wordings.items() if keys[anchor] not in stored}
    clusters = tuple(
        replace(cluster, text=new[cluster.anchor].text) if cluster.anchor in new else cluster
        for cluster in plan.clusters
    )
    vectors = {worded.text: worded.vector for worded in new.values()}
    return replace(plan, clusters=clusters, vectors=vectors)


def _report(plan: CyclePlan, report: CycleReport, *, kind: str | None) -> ConsolidationReport:
    """Return the report of the cycle in the form of consolidation's."""
    # If the gate refused the plan, nothing was merged, although the report lists its clusters.
    anchors = {cluster.anchor for cluster in report.clusters} if report.applied else set()
    merged = [cluster for cluster in plan.clusters if cluster.anchor in anchors]
    left_alone = [cluster for cluster in plan.clusters if cluster.anchor not in anchors]
    return ConsolidationReport(
        kind=kind,
        inspected=report.inspected,
        clusters=tuple(map(_entry, merged)),
        merged=sum(len(cluster.members) for cluster in merged),
        freed=sum(len(cluster.members) - 1 for cluster in merged),
        worded=sum(cluster.text in plan.vectors for cluster in merged),
        left_alone=tuple(map(_entry, left_alone)),
        applied=report.applied,
        reason=report.reason,
        changes=len(merged),
        gate=report.gate,
    )


def _entry(cluster: ClusterPlan) -> ConsolidatedCluster:
    return ConsolidatedCluster(
        members=tuple(cluster.ids),
        text_of=cluster.anchor,
        similarity=cluster.similarity,
        needs_model=cluster.needs_model,
    )
