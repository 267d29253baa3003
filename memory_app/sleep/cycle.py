"""Sleep: one cycle over a scope. Similar memories become one with a summary, patterns are named, likenesses linked,
what proved itself in a session is promoted, and what is too much goes.

A plan is made without a lock. It is carried out in one transaction, in which every row it touches is kept, so that the
whole cycle can be undone; the scope's own questions are asked before and after, and a cycle after which they find less
is rolled back. A dry run does all of it and rolls back, so its report is that of the run. Members that changed since
the plan are left alone, and what was added since is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import failpoint, queue
from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.errors import Conflict, NotFound
from memory_app.jobs import jobs
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunClaim
from memory_app.language.text import terms
from memory_app.memories import capacity, ladder, merging, remember
from memory_app.memories.capacity import strength_of
from memory_app.memories.ladder import Neighbour
from memory_app.memories.remember import Place, drop_context
from memory_app.memories.rows import entities, fading, links, memories, merges
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.recall.scoring import keyword_weights
from memory_app.records.records import LinkType
from memory_app.records.run import RunName
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import promotion, quality
from memory_app.sleep.plan import PARENTS_MOST, Plan, Planned, hour, make_plan, read, unlinked, without
from memory_app.sleep.rows import images, sleeping
from memory_app.sleep.rules import SleepOptions, Trigger, checked_options
from memory_app.tenancy.rows import names

log = structlog.get_logger(__name__)

UNITED_AT_ONCE = 200
"""Clusters that become one row each in the same few statements."""

GATE_TRIES = 3
"""Times a cycle is tried, each without the clusters that were found to be wrong before."""


class _TakenBack(Exception):
    """Carries the report of a cycle whose transaction is rolled back: a dry run, or one that the gate refused.

    ``guilty`` are memories that would not be found by their own words any more, if those alone are the reason.
    """

    def __init__(self, report: dict[str, Any], guilty: frozenset[UUID]) -> None:
        super().__init__()
        self.report = report
        self.guilty = guilty


def ask(runtime: Runtime, tenant_id: int, scope: Scope, given: dict[str, Any] | None = None) -> Run:
    """Ask for a cycle over the scope; ``given`` are options of `SleepOptions` by name.

    Raises `InvalidInput` naming the option, `NotFound` for an unknown scope, `Conflict` while a cycle of the scope is
    under way.
    """
    options = checked_options(given or {}, defaults(runtime, manual=True))
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        names.lock_scope(connection, tenant_id, row.id)
        under_way = sleeping.open_run(connection, tenant_id, row.id, RunName.SLEEP)
        if under_way is not None:
            raise Conflict(f"a cycle of this agent and user is under way: run {under_way}", field="user")
        run = runs.enqueue(connection, tenant_id, RunName.SLEEP, scope_id=row.id, options=asdict(options))
    runtime.hint(queue.SLEEP, run_id=str(run.id))
    return run


def defaults(runtime: Runtime, *, manual: bool) -> SleepOptions:
    """The settings as options; who asks by hand does not wait for the cool-down."""
    settings = runtime.settings.sleep
    return SleepOptions(
        max_clusters=settings.max_clusters,
        max_inspected=settings.max_inspected,
        min_cluster_size=settings.min_cluster_size,
        min_strength=settings.min_strength,
        summary_chars=settings.summary_chars,
        cool_down_seconds=0.0 if manual else settings.cool_down_seconds,
        trigger=Trigger.MANUAL if manual else Trigger.INTERVAL,
    )


def sleep(runtime: Runtime, claimed: RunClaim, *, revise: Callable[[Plan], Plan] = lambda plan: plan) -> None:
    """Do one cycle. ``revise`` may change the plan before it is carried out."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        if run is None or row is None:
            raise NotFound("the person was forgotten while this was under way")
        waiting = sleeping.since_last_cycle(connection, claimed.tenant_id, row.id, besides=run.id)
        at = hour(clock.now(connection))
    given = {name: value for name, value in run.options.items() if name in SleepOptions.__slots__}
    options = checked_options(given, defaults(runtime, manual=given.get("trigger") == Trigger.MANUAL))
    pause = timedelta(seconds=options.cool_down_seconds)
    if waiting is not None and waiting < pause and not options.force:
        reason = f"the last cycle ended less than {pause} ago"
        with transaction(runtime.engine, claimed.tenant_id) as connection:
            jobs.complete(connection, claimed, empty_report(runtime, options, at) | {"reason": reason})
        return
    plan = revise(make_plan(runtime, claimed.tenant_id, row, options))
    failpoint.reach("sleep.after_plan")
    report = carry_out(runtime, claimed, plan, note=jobs.complete)
    if report["applied"] and not options.dry_run:
        drop_context(runtime, row.id)
    log.info("scope_slept", scope=row.id, clusters=len(report["clusters"]), applied=report["applied"])


# --- carrying it out ----------------------------------------------------------------------------------------


def carry_out(
    runtime: Runtime,
    claimed: RunClaim,
    plan: Plan,
    *,
    note: Callable[[Connection, RunClaim, dict[str, Any]], None],
) -> dict[str, Any]:
    """Carry out the plan, without clusters whose own memories would not be found any more; the report.

    ``note`` is called once, with the report, in the transaction of what stays; in one of its own when nothing stays:
    after a dry run, and when the gate refused (``applied`` is false then).
    """
    for _ in range(GATE_TRIES):
        try:
            return _attempt(runtime, claimed, plan, note=note)
        except _TakenBack as taken_back:
            report = taken_back.report
            if report["applied"] or not taken_back.guilty:
                break
            plan = without(plan, taken_back.guilty)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        note(connection, claimed, report)
    return report


def _attempt(
    runtime: Runtime,
    claimed: RunClaim,
    plan: Plan,
    *,
    note: Callable[[Connection, RunClaim, dict[str, Any]], None],
) -> dict[str, Any]:
    """All of the plan in one transaction; its report. Raises `_TakenBack` when nothing of it may stay."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, plan.row.id):
            raise NotFound("the person was forgotten while this was under way")
        images.begin(connection, claimed.run_id)
        report = _apply(connection, runtime, claimed, plan)
        images.end(connection)
        fading.forget_bounds(connection, plan.row.id)
        outcome, guilty = _gate(connection, runtime, claimed, plan)
        report |= outcome
        if plan.options.dry_run or not report["applied"]:
            raise _TakenBack(report, guilty)
        failpoint.reach("sleep.before_commit")
        note(connection, claimed, report)
    return report


def _apply(connection: Connection, runtime: Runtime, claimed: RunClaim, plan: Plan) -> dict[str, Any]:
    """What was done: ids and figures only."""
    place = Place(claimed.tenant_id, plan.row.id, run_id=claimed.run_id, turn_scopes=plan.row.visible)
    heirs: dict[UUID, UUID] = {}
    told: list[dict[str, Any]] = []
    left_alone: list[str] = []
    current = {n.memory.id: n for n in read(connection, plan.row.id, _members(plan))}
    for start in range(0, len(plan.clusters), UNITED_AT_ONCE):
        some = plan.clusters[start : start + UNITED_AT_ONCE]
        ready = [one for one in some if all(_is_unchanged(n, current.get(n.memory.id)) for n in one.members)]
        united = _unite(connection, runtime, claimed, plan, ready)
        for planned in some:
            if planned.anchor not in united:
                left_alone.append(str(planned.anchor))
                continue
            heirs |= dict.fromkeys((n.memory.id for n in planned.members), united[planned.anchor])
            told.append(_told(runtime, plan, planned))
    links = _link(connection, runtime, claimed.tenant_id, plan, heirs)
    patterns = _name_patterns(connection, runtime, place, plan, heirs)
    there = sleeping.current(connection, plan.row.id)
    risen = [one for one in plan.promotable if one.stored.memory.id in there]
    promotion.promote(connection, runtime, place, risen)
    down_to = capacity.ceiling_of(runtime, plan.policy).memories
    evicted = capacity.evict(connection, runtime, plan.row.id, down_to=down_to, among=plan.inspected)
    freed = sum(cluster["freed"] for cluster in told) + len(evicted)
    promoted = [str(one.stored.memory.id) for one in risen]
    return empty_report(runtime, plan.options, plan.at) | {
        "applied": True,
        "inspected": len(plan.inspected),
        "clusters": told,
        "left_alone": left_alone,
        "links": links,
        "patterns": patterns,
        "promoted": promoted,
        "evicted": [str(id) for id in evicted],
        "freed": freed,
        "changes": len(told) + links + len(patterns) + len(promoted) + len(evicted),
    }


def empty_report(runtime: Runtime, options: SleepOptions, at: datetime) -> dict[str, Any]:
    """Every field of a report, of a cycle that did nothing."""
    return {
        "trigger": options.trigger.value,
        "applied": False,
        "reason": None,
        "inspected": 0,
        "clusters": [],
        "left_alone": [],
        "links": 0,
        "patterns": [],
        "promoted": [],
        "evicted": [],
        "freed": 0,
        "changes": 0,
        "summary_chars": options.summary_chars,
        "timestamp": at.isoformat(),
        "gate": {"probes": 0, "recall": 1.0, "floor": runtime.settings.sleep.recall_floor},
        "refused": [],
    }


def _members(plan: Plan) -> list[UUID]:
    return [n.memory.id for planned in plan.clusters for n in planned.members]


def _is_unchanged(planned: Neighbour, now: Neighbour | None) -> bool:
    """Being recalled meanwhile is no change; being said again, rated, pinned, ended or merged is."""
    if now is None:
        return False
    return merging.version(planned.memory) == merging.version(now.memory)


def _unite(
    connection: Connection, runtime: Runtime, claimed: RunClaim, plan: Plan, clusters: Sequence[Planned]
) -> dict[UUID, UUID]:
    """Store the united rows; their ids by anchor. Left out is what another current row says already."""
    scope_id = plan.row.id
    rows = _united_rows(connection, runtime, claimed, plan, clusters)
    # The first of two clusters that would say the same is stored.
    first: dict[tuple[int | None, str, str], UUID] = {}
    for anchor, row in rows.items():
        first.setdefault((row.session_id, row.kind, row.canonical_key), anchor)
    ready = [one for one in clusters if one.anchor in set(first.values())]
    while ready:
        parts = [n.memory.id for one in ready for n in one.members]
        taken = sleeping.taken(connection, scope_id, [rows[one.anchor] for one in ready], besides=parts)
        if not taken:
            break
        # What is left out keeps its members, whose statements may stand beside another's then.
        ready = [one for place, one in enumerate(ready) if place not in taken]
    unions = [(rows[one.anchor], [n.memory.id for n in one.members]) for one in ready]
    ids = merging.unite_all(connection, claimed.tenant_id, scope_id, unions) if unions else ()
    return {one.anchor: id for one, id in zip(ready, ids, strict=True)}


def _united_rows(
    connection: Connection, runtime: Runtime, claimed: RunClaim, plan: Plan, clusters: Sequence[Planned]
) -> dict[UUID, NewMemory]:
    """What each cluster becomes, by its anchor."""
    kept = {
        one.anchor: next((n.memory for n in one.members if n.memory.text == one.text), None)
        for one in clusters
    }
    vectors = memories.vectors(connection, plan.row.id, [memory.id for memory in kept.values() if memory])
    sessions = merges.sessions_of(connection, plan.row.id, [one.anchor for one in clusters])
    rows = {}
    for one in clusters:
        fields = replace(ladder.merge(one.members), text=one.text)
        memory = kept[one.anchor]
        rows[one.anchor] = merging.merged_row(
            replace(fields, synthesis_type=fields.synthesis_type or "consolidation"),
            vector=vectors[memory.id] if memory else plan.vectors[one.text],
            model=(memory.embedding_model if memory else None) or runtime.embedder.model,
            keywords=keyword_weights(terms(one.text)),
            session_id=sessions[one.anchor],
            run_id=claimed.run_id,
        )
    return rows


def _told(runtime: Runtime, plan: Plan, planned: Planned) -> dict[str, Any]:
    fields = ladder.merge(planned.members)
    anchor = next(n.memory for n in planned.members if n.memory.id == planned.anchor)
    united = replace(
        anchor,
        importance=fields.importance,
        confidence=fields.confidence,
        created_at=fields.created_at,
        last_seen=fields.last_seen,
        last_recalled=fields.last_recalled,
        repeat_count=fields.repeat_count,
        recall_count=fields.recall_count,
        feedback_score=fields.feedback_score,
    )
    return {
        "anchor": str(planned.anchor),
        "merged": sorted(str(n.memory.id) for n in planned.members if n.memory.id != planned.anchor),
        "strength_before": round(planned.strength_before, 4),
        "strength_after": round(strength_of(runtime, united, plan.at), 4),
        "freed": len(planned.members) - 1,
    }


def _link(
    connection: Connection, runtime: Runtime, tenant_id: int, plan: Plan, heirs: dict[UUID, UUID]
) -> int:
    """Link what is similar and was not linked; what was united is linked as the one it became."""
    there = sleeping.current(connection, plan.row.id)
    found: dict[frozenset[UUID], links.Edge] = {}
    for one, other, cosine in plan.likenesses:
        source, target = heirs.get(one, one), heirs.get(other, other)
        pair = frozenset({source, target})
        if len(pair) == 2 and pair <= there:
            found.setdefault(pair, (source, target, min(cosine, 1.0)))
    most = runtime.settings.remember.links_each
    edges = unlinked(connection, plan.row.id, list(found.values()), most=most)
    links.add(connection, tenant_id, plan.row.id, edges, type=LinkType.SIMILAR_TO, most=most)
    return len(edges)


def _name_patterns(
    connection: Connection, runtime: Runtime, place: Place, plan: Plan, heirs: dict[UUID, UUID]
) -> list[dict[str, Any]]:
    """Store patterns for which, after merging, there is still evidence enough."""
    told = []
    there = sleeping.current(connection, place.scope_id)
    for topic, prepared in plan.patterns:
        parents = tuple(id for id in dict.fromkeys(heirs.get(id, id) for id in topic.memories) if id in there)
        if len(parents) < runtime.settings.sleep.pattern_memories:
            continue
        statement = replace(prepared.statement, parents=parents[:PARENTS_MOST])
        written = remember.write(connection, runtime, place, replace(prepared, statement=statement))
        entities.mention(connection, place.tenant_id, place.scope_id, written.id, [topic.entity_id])
        told.append({"entity": topic.entity_id, "memories": len(parents)})
    return told


def _gate(
    connection: Connection, runtime: Runtime, claimed: RunClaim, plan: Plan
) -> tuple[dict[str, Any], frozenset[UUID]]:
    """Ask the scope's own questions again; below the floor nothing of the cycle may stay. Which memories it is for,
    unless something else is lost too."""
    floor = runtime.settings.sleep.recall_floor
    after = quality.found(connection, runtime, claimed.tenant_id, plan.row, plan.probes)
    lost = quality.lost(connection, runtime, plan.row, plan.before, after)
    asked = sum(len(ids) for ids in plan.before.values())
    share = 1 - len(lost) / asked if asked else 1.0
    own = frozenset(id for place, id in lost if plan.probes[place].about == id)
    passed = share >= floor
    outcome = {
        "applied": passed,
        "reason": None
        if passed
        else f"the scope's own questions would find only {share:.3f} of what they found",
        "gate": {"probes": len(plan.probes), "recall": round(share, 4), "floor": floor},
        "refused": [str(anchor) for anchor in plan.refused],
    }
    return outcome, own if len(own) == len(lost) else frozenset()
