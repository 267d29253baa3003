"""Run a sleep cycle over a scope: merge similar memories, name patterns, link, promote, and evict what is too much.

The plan is made without a lock and carried out in one transaction, which keeps an image of every row it changes, so
that the whole cycle can be undone. The quality gate asks the scope's own questions before and after: a cycle after
which they find less is rolled back. A dry run does everything and rolls back, so its report is that of the run.
Members that changed since the plan are left alone, and what was added since is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
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
from memory_app.language.keywords import keyword_weights
from memory_app.language.text import terms
from memory_app.memories import capacity, ladder, merging, remember
from memory_app.memories.capacity import strength_of
from memory_app.memories.ladder import Neighbour
from memory_app.memories.remember import Place, Prepared, drop_context
from memory_app.memories.rows import entities, fading, links, memories, merges
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.metrics import sleep_step_seconds, timed, timing
from memory_app.records.records import LinkType, SynthesisType
from memory_app.records.run import RunName, Trigger
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.sleep import measures, promotion, quality
from memory_app.sleep.plan import (
    PARENTS_LIMIT,
    ClusterPlan,
    CyclePlan,
    make_plan,
    read_neighbours,
    start_of_hour,
    unlinked,
    without,
)
from memory_app.sleep.report import CycleReport, GateResult, MergedCluster, NamedPattern, empty_report
from memory_app.sleep.rows import images, sleeping
from memory_app.sleep.rules import SCOPE_STEPS, SleepOptions, Step, checked_options
from memory_app.tenancy.rows import names
from memory_app.tenancy.shards import in_scopes_shard

log = structlog.get_logger(__name__)

CLUSTERS_AT_ONCE = 200
"""Clusters that become one row each in the same few statements."""

GATE_TRIES = 3
"""Attempts at a cycle, each without the clusters that the gate refused before."""

Completion = Callable[[Connection, RunClaim, CycleReport], None]
"""Notes the report of a cycle, in the transaction of its effects."""


class _RolledBack(Exception):
    """Carries the report of a cycle whose transaction is rolled back: a dry run, or one that the gate refused.

    ``guilty`` are memories that would not be found by their own words any more, if those alone are the reason.
    """

    def __init__(self, report: CycleReport, guilty: frozenset[UUID]) -> None:
        super().__init__()
        self.report = report
        self.guilty = guilty


@dataclass(frozen=True, slots=True)
class _Cycle:
    """A plan being carried out: the transaction, and the run that it belongs to."""

    connection: Connection
    runtime: Runtime
    claimed: RunClaim
    plan: CyclePlan

    @property
    def tenant_id(self) -> int:
        return self.claimed.tenant_id

    @property
    def scope_id(self) -> int:
        return self.plan.row.id

    @property
    def place(self) -> Place:
        return Place(
            self.tenant_id,
            self.scope_id,
            run_id=self.claimed.run_id,
            turn_scopes=self.plan.row.visible,
        )


@in_scopes_shard
def ask(
    runtime: Runtime, tenant_id: int, scope: Scope, *, options: Mapping[str, object] | None = None
) -> Run:
    """Enqueue a cycle over the scope; ``options`` are those of `SleepOptions` by name.

    Raises `InvalidInput` naming the option, `NotFound` for an unknown scope, `Conflict` while a cycle of the scope is
    under way.
    """
    checked = checked_options(options or {}, defaults(runtime, manual=True))
    with transaction(runtime.engine, tenant_id) as connection:
        row = names.need_scope(connection, tenant_id, scope)
        # Two calls at once must not both see that no cycle is open.
        names.hold_scope(connection, tenant_id, scope, row.id)
        open_run = sleeping.open_run(connection, tenant_id, row.id, name=RunName.SLEEP)
        if open_run is not None:
            raise Conflict(f"a cycle of this agent and user is under way: run {open_run}", field="user")
        run = runs.enqueue(connection, tenant_id, RunName.SLEEP, scope_id=row.id, options=asdict(checked))
    runtime.hint(queue.SLEEP, run_id=str(run.id))
    return run


def defaults(runtime: Runtime, *, manual: bool) -> SleepOptions:
    """Return the settings as options; a cycle asked for by hand does not wait for the cool-down."""
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


def sleep(
    runtime: Runtime, claimed: RunClaim, *, revise: Callable[[CyclePlan], CyclePlan] = lambda plan: plan
) -> None:
    """Do one cycle. ``revise`` may change the plan before it is carried out."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        run = runs.read(connection, claimed.run_id)
        row = names.read_scope(connection, claimed.scope_id)
        if run is None or row is None:
            raise NotFound("the person was erased while this ran")
        since_last = sleeping.since_last_cycle(connection, claimed.tenant_id, row.id, excluding=run.id)
        at = start_of_hour(clock.now(connection))
    options = _options_of(runtime, run)
    pause = timedelta(seconds=options.cool_down_seconds)
    is_cooling_down = since_last is not None and since_last < pause
    if is_cooling_down and not options.force:
        report = replace(
            empty_report(options, at, floor=runtime.settings.sleep.recall_floor),
            reason=f"the last cycle ended less than {pause} ago",
        )
        measures.count_cooling_down()
        # Done, not failed: the next period asks again.
        with transaction(runtime.engine, claimed.tenant_id) as connection:
            jobs.complete(connection, claimed, report)
        return
    plan = revise(make_plan(runtime, claimed.tenant_id, row=row, options=options, steps=SCOPE_STEPS))
    failpoint.reach("sleep.after_plan")
    report = carry_out(runtime, claimed, plan, note=jobs.complete)
    if report.applied and not options.dry_run:
        drop_context(runtime, row.id)
    log.info("scope_slept", scope=row.id, clusters=len(report.clusters), applied=report.applied)


def _options_of(runtime: Runtime, run: Run) -> SleepOptions:
    # A run may carry options of another version; an unknown one must not fail it.
    options = {name: value for name, value in run.options.items() if name in SleepOptions.__slots__}
    manual = options.get("trigger") == Trigger.MANUAL
    return checked_options(options, defaults(runtime, manual=manual))


# --- carrying it out ----------------------------------------------------------------------------------------


def carry_out(runtime: Runtime, claimed: RunClaim, plan: CyclePlan, *, note: Completion) -> CycleReport:
    """Carry out the plan, without clusters whose memories would not be found any more; returns the report.

    ``note`` is called once, with the report, in the transaction of what stays; in one of its own when nothing stays:
    after a dry run, and when the gate refused (``applied`` is false then).
    """
    report = _carry_out(runtime, claimed, plan, note=note)
    measures.count(report, is_dry=plan.options.dry_run)
    return report


def _carry_out(runtime: Runtime, claimed: RunClaim, plan: CyclePlan, *, note: Completion) -> CycleReport:
    for _ in range(GATE_TRIES):
        try:
            return _attempt(runtime, claimed, plan, note=note)
        except _RolledBack as rolled_back:
            report = rolled_back.report
            # A dry run that passed needs no second attempt; without guilty clusters there is nothing to leave out.
            if report.applied or not rolled_back.guilty:
                break
            plan = without(plan, rolled_back.guilty)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        note(connection, claimed, report)
    return report


def _attempt(runtime: Runtime, claimed: RunClaim, plan: CyclePlan, *, note: Completion) -> CycleReport:
    """Carry out all of the plan in one transaction; its report. Raises `_RolledBack` when nothing of it may stay."""
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        cycle = _Cycle(connection, runtime, claimed=claimed, plan=plan)
        # All who write memories take this lock, so the scope does not change between the reads and writes below.
        if not names.lock_scope(connection, claimed.tenant_id, plan.row.id):
            raise NotFound("the person was erased while this ran")
        images.begin(connection, claimed.run_id)
        report = _apply(cycle)
        images.end(connection)
        # `note_written` does not count merged rows and their links, so the next write has to count anew.
        fading.forget_bounds(connection, plan.row.id)
        report, guilty = _gate(cycle, report)
        if plan.options.dry_run or not report.applied:
            raise _RolledBack(report, guilty)
        failpoint.reach("sleep.before_commit")
        note(connection, claimed, report)
    return report


def _apply(cycle: _Cycle) -> CycleReport:
    """Do the steps of the plan, in this order; the report, of ids and figures only."""
    plan, connection = cycle.plan, cycle.connection
    successors = _merge_clusters(cycle)
    merged = [cluster for cluster in plan.clusters if cluster.anchor in successors]
    left_alone = tuple(cluster.anchor for cluster in plan.clusters if cluster.anchor not in successors)
    # Links and patterns were planned with ids that may be retired now; this maps them to the merged rows.
    heirs = {id: successors[cluster.anchor] for cluster in merged for id in cluster.ids}
    clusters = tuple(_cluster_entry(cycle.runtime, plan, cluster) for cluster in merged)
    link_count = _link(cycle, heirs)
    patterns = _name_patterns(cycle, heirs)
    conclusions = _conclude(cycle, heirs)
    related_count = _relate(cycle, heirs)
    # A memory that was merged above rises with the row that holds it now, in another cycle.
    current = sleeping.current_ids(connection, cycle.scope_id)
    promotable = [item for item in plan.promotable if item.row.memory.id in current]
    with timed(sleep_step_seconds, Step.PROMOTE):
        promotion.promote(connection, cycle.runtime, cycle.place, promotable=promotable)
    promoted = tuple(item.row.memory.id for item in promotable)
    evicted = (*_evict(cycle), *_keep_ceiling(cycle, conclusions))
    floor = cycle.runtime.settings.sleep.recall_floor
    return replace(
        empty_report(plan.options, plan.at, floor=floor),
        applied=True,
        inspected=len(plan.inspected),
        clusters=clusters,
        left_alone=left_alone,
        links=link_count,
        related=related_count,
        patterns=patterns,
        conclusions=conclusions,
        promoted=promoted,
        evicted=evicted,
        freed=sum(cluster.freed for cluster in clusters) + len(evicted),
        changes=sum(
            (
                len(clusters),
                link_count,
                related_count,
                len(patterns),
                len(conclusions),
                len(promoted),
                len(evicted),
            )
        ),
    )


@timing(sleep_step_seconds, Step.MERGE)
def _merge_clusters(cycle: _Cycle) -> dict[UUID, UUID]:
    """Merge the clusters whose members are as planned; the id of each merged row by the cluster's anchor."""
    plan = cycle.plan
    ids = [id for cluster in plan.clusters for id in cluster.ids]
    # Planning took no lock, so members may have changed: they are read again under the lock.
    current = {n.memory.id: n for n in read_neighbours(cycle.connection, plan.row.id, ids)}
    successors: dict[UUID, UUID] = {}
    for start in range(0, len(plan.clusters), CLUSTERS_AT_ONCE):
        batch = plan.clusters[start : start + CLUSTERS_AT_ONCE]
        unchanged = [cluster for cluster in batch if _is_unchanged(cluster, current)]
        successors |= _unite(cycle, unchanged)
    return successors


def _is_unchanged(cluster: ClusterPlan, current: Mapping[UUID, Neighbour]) -> bool:
    """Return whether no member was said again, rated, pinned, ended or merged since the plan. A recall is no change."""
    for member in cluster.members:
        now = current.get(member.memory.id)
        if now is None or merging.version(member.memory) != merging.version(now.memory):
            return False
    return True


def _unite(cycle: _Cycle, clusters: Sequence[ClusterPlan]) -> dict[UUID, UUID]:
    """Store the merged rows; their ids by anchor. A row that another current row repeats is left out.

    A cluster larger than the rules' limit takes several rounds, each with the row of the round before.
    """
    limit = cycle.plan.rules.parts_limit
    successors: dict[UUID, UUID] = {}
    remaining = list(clusters)
    while remaining:
        merged = _unite_once(cycle, [_first_part(cluster, limit) for cluster in remaining])
        # A later round puts its own row in place of that of the round before.
        successors |= merged
        if limit is None:
            break
        merged_clusters = [cluster for cluster in remaining if cluster.anchor in merged]
        larger = [cluster for cluster in merged_clusters if len(cluster.members) > limit]
        ids = [merged[cluster.anchor] for cluster in larger]
        rows = {n.memory.id: n for n in read_neighbours(cycle.connection, cycle.scope_id, ids)}
        remaining = [
            replace(cluster, members=(rows[id], *cluster.members[limit:]))
            for cluster, id in zip(larger, ids, strict=True)
        ]
    return successors


def _first_part(cluster: ClusterPlan, limit: int | None) -> ClusterPlan:
    if limit is None or len(cluster.members) <= limit:
        return cluster
    members = cluster.members[:limit]
    # The planned text may be that of a member of a later part.
    return replace(cluster, members=members, text=ladder.merge(members).memory.text)


def _unite_once(cycle: _Cycle, clusters: Sequence[ClusterPlan]) -> dict[UUID, UUID]:
    """Store one row for each cluster, unless another current row says the same; the ids by anchor."""
    rows = _merged_rows(cycle, clusters)
    # The first of two clusters that would say the same is stored.
    first: dict[tuple[int | None, str, str], UUID] = {}
    for anchor, new in rows.items():
        first.setdefault((new.session_id, new.row.memory.kind, new.row.canonical_key), anchor)
    distinct = set(first.values())
    ready = [cluster for cluster in clusters if cluster.anchor in distinct]
    while ready:
        parts = [id for cluster in ready for id in cluster.ids]
        candidates = [rows[cluster.anchor] for cluster in ready]
        duplicates = sleeping.duplicates(cycle.connection, cycle.scope_id, candidates, excluding=parts)
        if not duplicates:
            break
        # What is left out keeps its members, and one of these may say what another cluster would say: look again.
        ready = [cluster for place, cluster in enumerate(ready) if place not in duplicates]
    if not ready:
        return {}
    unions = [(rows[cluster.anchor], cluster.ids) for cluster in ready]
    ids = merging.unite_all(cycle.connection, cycle.tenant_id, cycle.scope_id, unions=unions)
    return {cluster.anchor: id for cluster, id in zip(ready, ids, strict=True)}


def _merged_rows(cycle: _Cycle, clusters: Sequence[ClusterPlan]) -> dict[UUID, NewMemory]:
    """Return the row that each cluster becomes, by its anchor."""
    connection, scope_id = cycle.connection, cycle.scope_id
    same_text = {
        cluster.anchor: next((n.memory for n in cluster.members if n.memory.text == cluster.text), None)
        for cluster in clusters
    }
    vectors = memories.vectors(connection, scope_id, [memory.id for memory in same_text.values() if memory])
    session_ids = merges.sessions_of(connection, scope_id, [cluster.anchor for cluster in clusters])
    # Whoever reads a row is told that its words are a summary; the words of one member are none.
    synthesis_type = SynthesisType.CONSOLIDATION if cycle.plan.rules.summarise else None
    rows = {}
    for cluster in clusters:
        merged = ladder.reworded(ladder.merge(cluster.members), cluster.text)
        content = replace(merged.memory, synthesis_type=merged.memory.synthesis_type or synthesis_type)
        memory = same_text[cluster.anchor]
        # If a member has this very text, its vector is used; otherwise the plan embedded the text.
        if memory is None:
            embedding, model = cycle.plan.vectors[cluster.text], None
        else:
            embedding, model = vectors[memory.id], memory.embedding_model
        rows[cluster.anchor] = NewMemory(
            replace(merged, memory=content),
            embedding=embedding,
            embedding_model=model or cycle.runtime.embedder.model,
            keywords=keyword_weights(terms(cluster.text)),
            session_id=session_ids[cluster.anchor],
            run_id=cycle.claimed.run_id,
        )
    return rows


def _cluster_entry(runtime: Runtime, plan: CyclePlan, cluster: ClusterPlan) -> MergedCluster:
    """Return the entry of a merged cluster in the report: ids and strengths."""
    anchor = next(n.memory for n in cluster.members if n.memory.id == cluster.anchor)
    merged = replace(ladder.merge(cluster.members).memory, pinned=anchor.pinned)
    return MergedCluster(
        anchor=cluster.anchor,
        merged=tuple(sorted(id for id in cluster.ids if id != cluster.anchor)),
        strength_before=round(cluster.strength_before, 4),
        strength_after=round(strength_of(runtime, merged, plan.at), 4),
        freed=len(cluster.members) - 1,
    )


@timing(sleep_step_seconds, Step.LINK)
def _link(cycle: _Cycle, heirs: Mapping[UUID, UUID]) -> int:
    """Link what is similar and not linked yet; merged memories are linked as the row they became."""
    current = sleeping.current_ids(cycle.connection, cycle.scope_id)
    edges: dict[frozenset[UUID], links.Edge] = {}
    for first, second, cosine in cycle.plan.similar:
        source, target = heirs.get(first, first), heirs.get(second, second)
        pair = frozenset({source, target})
        # Both ends may have become one row, or one of them may be retired since the plan.
        if len(pair) == 2 and pair <= current:
            # Rounding may carry the cosine of equal vectors past 1, which the table refuses.
            edges.setdefault(pair, (source, target, min(cosine, 1.0)))
    limit = cycle.runtime.settings.remember.links_each
    new = unlinked(cycle.connection, cycle.scope_id, list(edges.values()), most=limit)
    links.add(
        cycle.connection, cycle.tenant_id, cycle.scope_id, edges=new, type=LinkType.SIMILAR_TO, limit=limit
    )
    return len(new)


@timing(sleep_step_seconds, Step.NAME_PATTERNS)
def _name_patterns(cycle: _Cycle, heirs: Mapping[UUID, UUID]) -> tuple[NamedPattern, ...]:
    """Store patterns for which, after merging, there is still evidence enough; an entry of the report for each."""
    entries = []
    current = sleeping.current_ids(cycle.connection, cycle.scope_id)
    for topic, prepared in cycle.plan.patterns:
        # Several mentions may have become one row, which counts once.
        heirs_of_topic = dict.fromkeys(heirs.get(id, id) for id in topic.memories)
        parents = tuple(id for id in heirs_of_topic if id in current)
        if len(parents) < cycle.runtime.settings.sleep.pattern_memories:
            continue
        statement = replace(prepared.statement, parents=parents[:PARENTS_LIMIT])
        pattern = replace(prepared, statement=statement)
        written = remember.write(cycle.connection, cycle.runtime, cycle.place, prepared=pattern)
        entities.mention(
            cycle.connection,
            cycle.tenant_id,
            cycle.scope_id,
            memory_id=written.id,
            entity_ids=[topic.entity_id],
        )
        entries.append(NamedPattern(entity=topic.entity_id, memories=len(parents)))
    return tuple(entries)


@timing(sleep_step_seconds, measures.CONCLUDE)
def _conclude(cycle: _Cycle, heirs: Mapping[UUID, UUID]) -> tuple[UUID, ...]:
    """Store what a model concluded from memories of which two and more are still there; the ids of the rows."""
    if not cycle.plan.conclusions:
        return ()
    current = sleeping.current_ids(cycle.connection, cycle.scope_id)
    sound: list[Prepared] = []
    for prepared in cycle.plan.conclusions:
        # Two sources may have become one row, and one memory alone shows no pattern.
        sources = dict.fromkeys(heirs.get(id, id) for id in prepared.statement.parents)
        if len(sources) > 1 and sources.keys() <= current:
            sound.append(replace(prepared, statement=replace(prepared.statement, parents=tuple(sources))))
    written = remember.write_all(cycle.connection, cycle.runtime, cycle.place, prepared=sound)
    # A conclusion that was drawn before is reinforced, and two may be one.
    return tuple(dict.fromkeys(result.id for result in written))


@timing(sleep_step_seconds, measures.RELATE)
def _relate(cycle: _Cycle, heirs: Mapping[UUID, UUID]) -> int:
    """Draw the links that a model proposed; how many. Merged memories are linked as the row they became."""
    if not cycle.plan.related:
        return 0
    current = sleeping.current_ids(cycle.connection, cycle.scope_id)
    limit = cycle.runtime.settings.remember.links_each
    count = 0
    for type, planned in cycle.plan.related.items():
        edges: dict[tuple[UUID, UUID], links.Edge] = {}
        for source, target, weight in planned:
            ends = heirs.get(source, source), heirs.get(target, target)
            if ends[0] != ends[1] and current.issuperset(ends):
                edges.setdefault(ends, (*ends, weight))
        links.add(
            cycle.connection,
            cycle.tenant_id,
            cycle.scope_id,
            edges=edges.values(),
            type=type,
            limit=limit,
        )
        count += len(edges)
    return count


def _keep_ceiling(cycle: _Cycle, conclusions: Sequence[UUID]) -> tuple[UUID, ...]:
    """Evict what is above the ceiling after conclusions and links were stored; their ids."""
    plan = cycle.plan
    if not plan.conclusions and not plan.related:
        return ()
    return capacity.keep_ceiling(
        cycle.connection,
        cycle.runtime,
        cycle.tenant_id,
        scope_id=cycle.scope_id,
        policy=plan.policy,
        written=conclusions,
        # The links may be of memories older than this transaction, which the bound does not count.
        recount=True,
    )


@timing(sleep_step_seconds, Step.EVICT)
def _evict(cycle: _Cycle) -> tuple[UUID, ...]:
    """Retire the weakest inspected memories where the scope holds more than it may; their ids."""
    if Step.EVICT not in cycle.plan.steps:
        return ()
    # Last, because merging may have made enough room already.
    ceiling = capacity.ceiling_of(cycle.runtime, cycle.plan.policy)
    return capacity.evict(
        cycle.connection,
        cycle.runtime,
        cycle.scope_id,
        down_to=ceiling.memories,
        among=cycle.plan.inspected,
    )


@timing(sleep_step_seconds, measures.GATE)
def _gate(cycle: _Cycle, report: CycleReport) -> tuple[CycleReport, frozenset[UUID]]:
    """Ask the scope's own questions again; the report with the outcome. Below the floor nothing of the cycle may stay.

    Also returned are the memories that would not be found by their own words, if nothing else is lost.
    """
    plan, floor = cycle.plan, cycle.runtime.settings.sleep.recall_floor
    hits = quality.search(cycle.connection, cycle.runtime, plan.row, probes=plan.probes)
    missing = quality.missing_hits(
        cycle.connection, cycle.runtime, plan.row, expected=plan.expected, hits=hits
    )
    expected_count = sum(len(ids) for ids in plan.expected.values())
    share = 1 - len(missing) / max(expected_count, 1)
    passed = share >= floor
    refusal = f"the scope's own questions would find only {share:.3f} of what they found"
    checked = replace(
        report,
        applied=passed,
        reason=None if passed else refusal,
        gate=GateResult(probes=len(plan.probes), recall=round(share, 4), floor=floor),
        refused=tuple(plan.refused),
    )
    own_words = frozenset(id for place, id in missing if plan.probes[place].about == id)
    # If a user's question lost a hit, the guilty cluster is not known, and a retry without some would be a guess.
    is_explained = len(own_words) == len(missing)
    return checked, own_words if is_explained else frozenset()
