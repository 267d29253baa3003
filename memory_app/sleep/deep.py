"""Deep synthesis: have the agent's larger model look through a scope's memories, and take from it what holds.

A model proposes unions, patterns and links; nothing of it is believed. Unions stand only where the embedder and the
words find their members alike, and everything is carried out as a sleep cycle: behind the quality gate, with an image
of each row, so that it can be tried without effect and undone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import structlog
from sqlalchemy import Connection

from memory_app import failpoint
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.extraction import model_calls
from memory_app.extraction.llm import DeepLink, DeepSynthesis, Union, synthesize_deep
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import RunClaim
from memory_app.language.text import canonical_key
from memory_app.language.zones import zone_of
from memory_app.memories import ladder, remember
from memory_app.memories.capacity import strength_of
from memory_app.memories.ladder import Neighbour, Pairs
from memory_app.memories.rows import links, memories
from memory_app.records.records import LinkType, Memory
from memory_app.runtime import Runtime
from memory_app.sleep import cycle, quality
from memory_app.sleep.model_scope import need_model
from memory_app.sleep.plan import (
    MERGING_KINDS,
    ClusterPlan,
    CyclePlan,
    new_vectors,
    read_neighbours,
    start_of_hour,
    with_probes,
)
from memory_app.sleep.report import CycleReport, DeepReport, UnitedMemories
from memory_app.sleep.rows import sleeping
from memory_app.sleep.rules import MergeRules, SleepOptions
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.redaction import with_redaction
from memory_app.tenancy.rows.names import ScopeRow

log = structlog.get_logger(__name__)

UNLIKE = "memories that are not alike"
STORED = "a sentence that was stored before"


def synthesize_memories(runtime: Runtime, claimed: RunClaim) -> None:
    """Do the run of a scope: unite repeats, store patterns as artifacts, and link what belongs together."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = need_model(connection, claimed)
        run = runs.read(connection, claimed.run_id)
        options: Mapping[str, Any] = {} if run is None else run.options
        recent = _recent_memories(connection, runtime, row.id, options=options)
    # The transaction is over before the model is asked.
    model = model_calls.large(runtime, claimed.tenant_id, parse_policy(row.policy))
    synthesis = synthesize_deep(model, recent, time_zone=zone_of(row.time_zone))
    is_dry = bool(options.get("dry_run"))
    plan, dropped = _plan(runtime, claimed.tenant_id, row, synthesis=synthesis, is_dry=is_dry)
    made = replace(synthesis.provenance, dropped={**synthesis.provenance.dropped, **dropped})
    model_calls.count_dropped(runtime, made.dropped)
    failpoint.reach("deep.after_plan")

    def complete(connection: Connection, claimed: RunClaim, report: CycleReport) -> None:
        jobs.complete(connection, claimed, _report(plan, report, made=made.as_dict()))

    report = cycle.carry_out(runtime, claimed, plan, note=complete)
    if report.applied and report.changes and not is_dry:
        remember.drop_context(runtime, row.id)
    log.info("scope_synthesized", scope=row.id, unions=len(report.clusters), patterns=len(report.conclusions))


def _recent_memories(
    connection: Connection, runtime: Runtime, scope_id: int, *, options: Mapping[str, Any]
) -> tuple[Memory, ...]:
    """Read the memories seen lately, by the options of the run or the settings."""
    settings = runtime.settings.synthesis
    # None in the options means the setting as it is when the run is done.
    return memories.lately_seen(
        connection,
        scope_id,
        within=timedelta(days=options.get("days") or settings.deep_days),
        limit=options.get("max_memories") or settings.deep_memories,
    )


# --- the plan -------------------------------------------------------------------------------------------------


def _plan(
    runtime: Runtime, tenant_id: int, row: ScopeRow, *, synthesis: DeepSynthesis, is_dry: bool
) -> tuple[CyclePlan, Counter[str]]:
    """Plan what holds of ``synthesis``; also what was dropped, by reason. Calls the embedder and writes nothing."""
    policy = parse_policy(row.policy)
    runtime = with_redaction(runtime, policy)
    conclusions = remember.prepare(runtime, synthesis.patterns, policy=policy)
    with transaction(runtime.engine, tenant_id) as connection:
        at = start_of_hour(clock.now(connection))
        questions = quality.recent_questions(connection, runtime, row.id)
        clusters, dropped = _clusters(connection, runtime, row.id, unions=synthesis.unions, at=at)
    plan = CyclePlan(
        row=row,
        policy=policy,
        options=SleepOptions(dry_run=is_dry),
        steps=frozenset(),
        # The sentence of a union is no member's own, so its row says that it is a summary.
        rules=MergeRules(MERGING_KINDS, contained_only=False),
        at=at,
        inspected=(),
        clusters=clusters,
        vectors=new_vectors(runtime, clusters),
        similar=(),
        patterns=(),
        promotable=(),
        conclusions=conclusions,
        related=_edges(synthesis.links),
    )
    return with_probes(runtime, tenant_id, plan, questions=questions), dropped


def _clusters(
    connection: Connection, runtime: Runtime, scope_id: int, *, unions: Sequence[Union], at: datetime
) -> tuple[tuple[ClusterPlan, ...], Counter[str]]:
    ids = [id for union in unions for id in union.memories]
    neighbours = {n.memory.id: n for n in read_neighbours(connection, scope_id, ids)}
    pairs = memories.pair_similarities(connection, scope_id, *(union.memories for union in unions))
    keys = [canonical_key(union.text) for union in unions]
    stored = sleeping.stored_keys(connection, scope_id, keys)
    # The same for all kinds that are united; others are left out whatever their thresholds.
    thresholds = remember.thresholds_of(runtime, "fact")
    clusters: list[ClusterPlan] = []
    dropped: Counter[str] = Counter()
    for union, key in zip(unions, keys, strict=True):
        members = [neighbours[id] for id in union.memories if id in neighbours]
        own_keys = {member.canonical_key for member in members}
        # One of them was forgotten while the model worked, or they say different things.
        is_whole = len(members) == len(union.memories)
        if not is_whole or not are_alike(members, pairs, thresholds):
            dropped[UNLIKE] += 1
        elif key in stored and key not in own_keys:
            # Two rows must not say the same, and what was retired must not come back.
            dropped[STORED] += 1
        else:
            clusters.append(_cluster(runtime, union, members, pairs=pairs, at=at))
    return tuple(clusters), dropped


def are_alike(members: Sequence[Neighbour], pairs: Pairs, thresholds: ladder.Thresholds) -> bool:
    """Whether every two of ``members`` may become one row.

    The model has read them, so the cosine from which memories are linked as similar is near enough, which is below that
    of a merge without a model. All else is as in every merge: they are of one kind, session and trust, state no
    different facts, and none has a number, name, negation, date or other word in the place of another's.
    """
    if any(_must_stay(member.memory) for member in members):
        return False
    rules = replace(thresholds, merge=thresholds.link, merge_most=max(len(members), 2))
    groups = ladder.cohesive(members, thresholds=rules, pairs=pairs)
    return [len(group) for group in groups] == [len(members)]


def _must_stay(memory: Memory) -> bool:
    """Whether a memory may not be united. It may have been pinned or ended while the model worked."""
    is_current = memory.retired_at is None and memory.valid_until is None
    return memory.pinned or memory.kind not in MERGING_KINDS or not is_current


def _cluster(
    runtime: Runtime, union: Union, members: Sequence[Neighbour], *, pairs: Pairs, at: datetime
) -> ClusterPlan:
    strengths = {member.memory.id: strength_of(runtime, member.memory, at) for member in members}
    # Ties are broken by id, which is the same in a dry run and in the run.
    anchor = max(strengths, key=lambda id: (strengths[id], id))
    cosines = [pairs.get(frozenset(pair), 0.0) for pair in combinations(strengths, 2)]
    return ClusterPlan(
        members=tuple(members),
        anchor=anchor,
        text=union.text,
        strength_before=strengths[anchor],
        similarity=round(min(cosines), 4),
    )


def _edges(proposed: Sequence[DeepLink]) -> Mapping[LinkType, Sequence[links.Edge]]:
    edges: dict[LinkType, list[links.Edge]] = defaultdict(list)
    for link in proposed:
        edges[link.type].append((link.source, link.target, link.weight))
    return edges


# --- the report -----------------------------------------------------------------------------------------------


def _report(plan: CyclePlan, report: CycleReport, *, made: Mapping[str, Any]) -> DeepReport:
    # If the gate refused the plan, nothing was done, although the cycle's report lists what was tried.
    anchors = {cluster.anchor for cluster in report.clusters} if report.applied else set()
    united = [cluster for cluster in plan.clusters if cluster.anchor in anchors]
    return DeepReport(
        success=True,
        agent=plan.row.agent,
        user=plan.row.user,
        consolidated=len(united),
        patterns=len(report.conclusions) if report.applied else 0,
        links=report.related if report.applied else 0,
        unions=tuple(UnitedMemories(members=c.ids, similarity=c.similarity) for c in united),
        left_alone=tuple(cluster.anchor for cluster in plan.clusters if cluster.anchor not in anchors),
        evicted=report.evicted if report.applied else (),
        applied=report.applied,
        reason=report.reason,
        changes=report.changes if report.applied else 0,
        gate=report.gate,
        made=made,
    )
