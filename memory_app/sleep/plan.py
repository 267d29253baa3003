"""Plan a sleep cycle: which memories to merge, link and promote, and which patterns to name.

Planning takes no lock. It reads, calls the embedder with no transaction open, and writes nothing; `sleep` carries the
plan out and leaves alone what changed in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.memories import capacity, ladder, remember
from memory_app.memories.capacity import strength_of
from memory_app.memories.guards import exchanged
from memory_app.memories.ladder import Neighbour, Pairs
from memory_app.memories.remember import Prepared, thresholds_of
from memory_app.memories.rows import entities, fading, links, memories, merges
from memory_app.memories.rows.fading import LinkedMemory
from memory_app.metrics import sleep_step_seconds, timing
from memory_app.records.kinds import KINDS, Section
from memory_app.records.records import LinkType, Origin, Statement, SynthesisType
from memory_app.runtime import Runtime
from memory_app.sleep import measures, promotion, quality
from memory_app.sleep.clusters import PIECE, Cluster, clusters, components, near_pairs
from memory_app.sleep.promotion import Promotable
from memory_app.sleep.quality import Probe, ProbeHits
from memory_app.sleep.rows import sleeping
from memory_app.sleep.rules import (
    MergeRules,
    SleepOptions,
    Step,
    Topic,
    is_pattern,
    pattern_text,
    share_a_sentence,
    summary,
)
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.redaction import with_redaction
from memory_app.tenancy.rows.names import ScopeRow

LINKS_PER_MEMORY = 5
"""Most new links of one memory in a cycle."""

BATCH = 1_000
"""Memories of small components that are read together; pairs are compared within a component only."""

PARENTS_LIMIT = 20
"""Most memories named as the sources of a pattern."""

PROMOTED_STRENGTH = 0.6
"""A memory of a session that is as strong as this is promoted without waiting for the session's end."""

MERGING_KINDS = frozenset(
    name for name, kind in KINDS.items() if kind.merges and kind.section is not Section.CORE
)
"""Who an agent is and what it may do is never reworded by a job."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Members to merge into one row, and the text of that row. The anchor names the cluster in reports.

    ``similarity`` is the lowest cosine of two members. ``needs_model``: ``text`` loses much of the members' words.
    """

    members: tuple[Neighbour, ...]
    anchor: UUID
    text: str
    strength_before: float
    similarity: float = 1.0
    needs_model: bool = False

    @property
    def ids(self) -> tuple[UUID, ...]:
        return tuple(member.memory.id for member in self.members)


@dataclass(frozen=True, slots=True)
class CyclePlan:
    """What a cycle would do, and what it read. ``at`` is the hour for which strengths are computed.

    ``conclusions`` are statements made of memories, and ``related`` links besides those of likeness; both come from a
    language model. ``vectors`` are those of texts that no member has. ``expected`` are the hits that the probes must
    still find. ``refused`` are the anchors of clusters that the quality gate took out.
    """

    row: ScopeRow
    policy: Policy
    options: SleepOptions
    steps: frozenset[Step]
    rules: MergeRules
    at: datetime
    inspected: tuple[UUID, ...]
    clusters: tuple[ClusterPlan, ...]
    vectors: Mapping[str, Sequence[float]]
    similar: tuple[links.Edge, ...]
    patterns: tuple[tuple[Topic, Prepared], ...]
    promotable: tuple[Promotable, ...]
    conclusions: tuple[Prepared, ...] = ()
    related: Mapping[LinkType, Sequence[links.Edge]] = field(default_factory=dict)
    probes: tuple[Probe, ...] = ()
    expected: ProbeHits = field(default_factory=dict)
    refused: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class _Search:
    """A look for clusters and similar pairs in a scope. ``strengths`` are those of all its current memories."""

    runtime: Runtime
    tenant_id: int
    scope_id: int
    options: SleepOptions
    rules: MergeRules
    inspected: frozenset[UUID]
    strengths: Mapping[UUID, float]


@timing(sleep_step_seconds, measures.PLAN)
def make_plan(
    runtime: Runtime,
    tenant_id: int,
    *,
    row: ScopeRow,
    options: SleepOptions,
    steps: frozenset[Step],
    rules: MergeRules | None = None,
    session_id: int | None = None,
) -> CyclePlan:
    """Plan the ``steps`` of a cycle over the scope, or over one session of it. Calls the embedder, writes nothing."""
    rules = rules or rules_of_sleep(runtime)
    policy = parse_policy(row.policy)
    runtime = with_redaction(runtime, policy)
    with transaction(runtime.engine, tenant_id) as connection:
        at = start_of_hour(clock.now(connection))
        linked = fading.current(connection, row.id, session_id=session_id)
        questions = quality.recent_questions(connection, runtime, row.id)
    strengths = {item.memory.id: strength_of(runtime, item.memory, at) for item in linked}
    inspected = _inspected(linked, strengths, options=options, kinds=rules.kinds)
    search = _Search(
        runtime=runtime,
        tenant_id=tenant_id,
        scope_id=row.id,
        options=options,
        rules=rules,
        inspected=frozenset(inspected),
        strengths=strengths,
    )
    # Vectors are read only for kinds of which a memory is inspected.
    kinds = {item.memory.kind for item in linked if item.memory.id in search.inspected}
    cluster_plans, similar = _similar(search, kinds, with_links=Step.LINK in steps)
    patterns: tuple[tuple[Topic, Prepared], ...] = ()
    if Step.NAME_PATTERNS in steps:
        patterns = _patterns(runtime, tenant_id, row, policy=policy)
    promotable: tuple[Promotable, ...] = ()
    if Step.PROMOTE in steps:
        promotable = _promotable(runtime, tenant_id, row, linked=linked, at=at)
    plan = CyclePlan(
        row=row,
        policy=policy,
        options=options,
        steps=steps,
        rules=rules,
        at=at,
        inspected=inspected,
        clusters=cluster_plans,
        vectors=new_vectors(runtime, cluster_plans),
        similar=similar,
        patterns=patterns,
        promotable=promotable,
    )
    return with_probes(runtime, tenant_id, plan, questions=questions)


def rules_of_sleep(runtime: Runtime) -> MergeRules:
    """Return the rules of sleep: repeats of all kinds that merge become summaries."""
    return MergeRules(MERGING_KINDS, rewrites_limit=runtime.settings.sleep.max_rewrites)


def start_of_hour(now: datetime) -> datetime:
    """Return the hour for which strengths are computed, so that a dry run reports what the run will report."""
    return now.replace(minute=0, second=0, microsecond=0)


# --- probes ---------------------------------------------------------------------------------------------------


@timing(sleep_step_seconds, measures.PROBE)
def with_probes(runtime: Runtime, tenant_id: int, plan: CyclePlan, *, questions: Sequence[str]) -> CyclePlan:
    """Add the questions that check the plan; a plan that changes nothing requires none."""
    with transaction(runtime.engine, tenant_id) as connection:
        if not _changes_something(connection, runtime, plan):
            return plan
    replaced: list[tuple[UUID, str]] = []
    for cluster in plan.clusters:
        # The member whose text stands is found by it anyway, unless a model may still give another text.
        is_text_open = cluster.needs_model and not plan.rules.summarise
        for member in cluster.members:
            if is_text_open or member.memory.text != cluster.text:
                replaced.append((member.memory.id, member.memory.text))
    probes = quality.probes(runtime, questions, replaced, limit=runtime.settings.sleep.probes)
    if not probes:
        return plan
    # The hits before the change are those to expect after it.
    with transaction(runtime.engine, tenant_id) as connection:
        hits = quality.search(connection, runtime, plan.row, probes=probes)
    return replace(plan, probes=probes, expected=quality.expected_hits(probes, hits))


def _changes_something(connection: Connection, runtime: Runtime, plan: CyclePlan) -> bool:
    """Return whether the plan would merge, name, promote, evict or link anything."""
    if plan.clusters or plan.patterns or plan.promotable or plan.conclusions or plan.related:
        return True
    if Step.EVICT in plan.steps and plan.inspected:
        ceiling = capacity.ceiling_of(runtime, plan.policy).memories
        # Counted to one above the ceiling only, because counting a large scope to its end is slow.
        if fading.current_count(connection, plan.row.id, limit=ceiling + 1) > ceiling:
            return True
    limit = runtime.settings.remember.links_each
    return bool(unlinked(connection, plan.row.id, plan.similar, most=limit))


def unlinked(
    connection: Connection, scope_id: int, edges: Sequence[links.Edge], *, most: int
) -> list[links.Edge]:
    """Return edges that are not linked yet and would stay: at both ends there is room, or a weaker link."""
    if not edges:
        return []
    linked = sleeping.linked_pairs(connection, scope_id)
    new = [edge for edge in edges if frozenset(edge[:2]) not in linked]
    ends = [end for edge in new for end in edge[:2]]
    weakest = links.full(connection, scope_id, ends, limit=most)
    # An edge that is added and dropped at once would be reported as new by every cycle.
    return [
        (source, target, cosine)
        for source, target, cosine in new
        if cosine > max(weakest.get(source, -1.0), weakest.get(target, -1.0))
    ]


# --- clusters and similar pairs -------------------------------------------------------------------------------


def _inspected(
    linked: Sequence[LinkedMemory],
    strengths: Mapping[UUID, float],
    *,
    options: SleepOptions,
    kinds: frozenset[str],
) -> tuple[UUID, ...]:
    """Return ids of the memories that a cycle inspects, the weakest first: of these kinds, not firm, not pinned."""
    ids = [item.memory.id for item in linked if item.memory.kind in kinds and not item.memory.pinned]
    # Ties are broken by id, so that a dry run and the run inspect the same memories.
    soft = sorted((strengths[id], id) for id in ids if strengths[id] < options.min_strength)
    return tuple(id for _, id in soft[: options.max_inspected])


def _similar(
    search: _Search, kinds: set[str], *, with_links: bool
) -> tuple[tuple[ClusterPlan, ...], tuple[links.Edge, ...]]:
    """Find clusters in which every two members are alike, and pairs that are merely similar."""
    cluster_plans: list[ClusterPlan] = []
    edges: list[links.Edge] = []
    model = search.runtime.embedder.model
    # In the order of the table, so that a dry run and the run make the same plan.
    for kind in sorted(kinds, key=list(KINDS).index):
        thresholds = _thresholds(search, kind)
        # Only vectors of the current model: cosines across models mean nothing.
        with transaction(search.runtime.engine, search.tenant_id) as connection:
            groups = merges.vectors(connection, search.scope_id, kind=kind, model=model)
        for group in groups:
            places = [place for place, id in enumerate(group.ids) if id in search.inspected]
            ids = [group.ids[place] for place in places]
            vectors = group.vectors[places]
            cluster_plans += _clusters_of_group(search, ids, vectors, thresholds=thresholds)
            if with_links:
                edges += _similar_pairs(ids, vectors, least=thresholds.link)
    # The weakest first: where there are more than the limit, the firmer ones can wait.
    cluster_plans.sort(key=lambda cluster: (cluster.strength_before, cluster.anchor))
    return tuple(cluster_plans[: search.options.max_clusters]), tuple(edges)


def _thresholds(search: _Search, kind: str) -> ladder.Thresholds:
    thresholds = thresholds_of(search.runtime, kind)
    similarity = search.options.similarity
    return thresholds if similarity is None else replace(thresholds, merge=similarity)


def _clusters_of_group(
    search: _Search, ids: Sequence[UUID], vectors: NDArray[np.float32], *, thresholds: ladder.Thresholds
) -> Iterator[ClusterPlan]:
    """Find clusters among memories of one kind and session."""
    neighbours = search.runtime.settings.remember.neighbours
    pairs = near_pairs(vectors, least=thresholds.merge, limit=neighbours)
    for batch in _batches(components(pairs)):
        pieces = [[ids[place] for place in piece] for piece in batch]
        yield from _clusters_of_pieces(search, pieces, thresholds=thresholds)


def _similar_pairs(
    ids: Sequence[UUID], vectors: NDArray[np.float32], *, least: float
) -> Iterator[links.Edge]:
    # `near_pairs` may give a pair twice, once from each end.
    pairs = set(near_pairs(vectors, least=least, limit=LINKS_PER_MEMORY))
    for first, second in sorted(pairs):
        yield ids[first], ids[second], float(vectors[first] @ vectors[second])


def _batches(groups: Iterable[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Put small components together and cut a huge one into pieces."""
    # Most components have two members: a round trip for each would be most of the time of a cycle.
    batch: list[Sequence[int]] = []
    size = 0
    for group in groups:
        for start in range(0, len(group), PIECE):
            piece = group[start : start + PIECE]
            if batch and size + len(piece) > BATCH:
                yield batch
                batch, size = [], 0
            batch.append(piece)
            size += len(piece)
    if batch:
        yield batch


def _clusters_of_pieces(
    search: _Search, pieces: Sequence[Sequence[UUID]], *, thresholds: ladder.Thresholds
) -> Iterator[ClusterPlan]:
    """Find the clusters within each piece, from the rows themselves."""
    pieces = [piece for piece in pieces if len(piece) >= search.options.min_cluster_size]
    ids = [id for piece in pieces for id in piece]
    if not ids:
        return
    # These cosines cover the statements behind merged rows, so that a chain of similar rows does not become one.
    with transaction(search.runtime.engine, search.tenant_id) as connection:
        neighbours = {n.memory.id: n for n in read_neighbours(connection, search.scope_id, ids)}
        pairs = memories.pair_similarities(connection, search.scope_id, *pieces)
        depths = sleeping.depths(connection, search.scope_id, ids)
    limit = search.rules.rewrites_limit
    # Each merge may lose some words: after so many of them a memory is left as it is.
    if limit is not None:
        neighbours = {id: row for id, row in neighbours.items() if depths.get(id, 0) < limit}
    pairs = _mergeable(search.rules, neighbours, pairs, least=thresholds.merge)
    for cluster in clusters(list(neighbours.values()), thresholds=thresholds, pairs=pairs):
        if len(cluster.members) >= search.options.min_cluster_size:
            yield _cluster_plan(search, cluster, [neighbours[id] for id in cluster.members])


def _mergeable(
    rules: MergeRules, neighbours: Mapping[UUID, Neighbour], pairs: Pairs, *, least: float
) -> Pairs:
    """Return the pairs of ``neighbours`` that may become one row by the rules."""
    mergeable: dict[frozenset[UUID], float] = {}
    for pair, cosine in pairs.items():
        if cosine < least or not pair <= neighbours.keys():
            continue
        first, second = sorted(pair)
        if not rules.contained_only or _is_contained(neighbours[first], neighbours[second]):
            mergeable[pair] = cosine
    return mergeable


def _is_contained(first: Neighbour, second: Neighbour) -> bool:
    """Return whether one says all that the other says, in words or in a whole sentence, or both state one fact."""
    # Nobody has just repeated these statements, so in doubt they stay apart.
    fact = (first.subject_key, first.memory.relation, first.object_key)
    other_fact = (second.subject_key, second.memory.relation, second.object_key)
    if None not in fact and fact == other_fact:
        return True
    texts = first.memory.text, second.memory.text
    return share_a_sentence(*texts) or not exchanged(*texts)


def _cluster_plan(search: _Search, cluster: Cluster, members: Sequence[Neighbour]) -> ClusterPlan:
    """Plan a cluster. The anchor is the strongest member if they are summed up, else the one whose text stands."""
    if search.rules.summarise:
        # Ties are broken by length and id, which are the same in a dry run and in the run.
        anchor = max(members, key=lambda n: (search.strengths[n.memory.id], len(n.memory.text), n.memory.id))
        text = summary([n.memory.text for n in members], limit=search.options.summary_chars)
    else:
        anchor = next(n for n in members if n.memory.id == cluster.text_of)
        text = anchor.memory.text
    return ClusterPlan(
        members=tuple(members),
        anchor=anchor.memory.id,
        text=text,
        strength_before=search.strengths[anchor.memory.id],
        similarity=cluster.similarity,
        needs_model=cluster.needs_model,
    )


def new_vectors(runtime: Runtime, cluster_plans: Sequence[ClusterPlan]) -> dict[str, Sequence[float]]:
    """Embed the texts of clusters that no member has."""
    own = {member.memory.text for cluster in cluster_plans for member in cluster.members}
    new = sorted({cluster.text for cluster in cluster_plans} - own)
    # Embedded while planning, because the transaction that carries the plan out must not wait for the embedder.
    vectors = runtime.embedder.embed(new) if new else ()
    return {text: vector.tolist() for text, vector in zip(new, vectors, strict=True)}


# --- patterns and promotion -----------------------------------------------------------------------------------


def _patterns(
    runtime: Runtime, tenant_id: int, row: ScopeRow, *, policy: Policy
) -> tuple[tuple[Topic, Prepared], ...]:
    """Find topics that come up over weeks, each with the statement that says so, unless it was ever stored."""
    topics = _recurring_topics(runtime, tenant_id, row)
    statements = [
        Statement(
            kind="artifact",
            text=pattern_text(topic.label, min(topic.at)),
            origin=Origin.SYNTHESIZED,
            valid_from=min(topic.at),
            parents=topic.memories[:PARENTS_LIMIT],
            synthesis_type=SynthesisType.PATTERN,
        )
        for topic in topics
    ]
    prepared = remember.prepare(runtime, statements, policy=policy)
    # A pattern that was retired, or forgotten by merging, must not come back with each cycle.
    with transaction(runtime.engine, tenant_id) as connection:
        stored_keys = sleeping.stored_keys(connection, row.id, [item.key for item in prepared])
    pairs = zip(topics, prepared, strict=True)
    return tuple((topic, item) for topic, item in pairs if item.key not in stored_keys)


def _recurring_topics(runtime: Runtime, tenant_id: int, row: ScopeRow) -> list[Topic]:
    settings = runtime.settings.sleep
    with transaction(runtime.engine, tenant_id) as connection:
        topics = sleeping.topics(connection, row.id, least=settings.pattern_memories)
        speakers = (row.agent, row.user, *sleeping.speakers(connection, row.id))
    names = frozenset(name.casefold() for name in speakers if name)
    weeks, count = settings.pattern_weeks, settings.pattern_memories
    return [topic for topic in topics if is_pattern(topic, weeks=weeks, memories=count, excluding=names)]


def _promotable(
    runtime: Runtime, tenant_id: int, row: ScopeRow, *, linked: Sequence[LinkedMemory], at: datetime
) -> tuple[Promotable, ...]:
    """Find memories of sessions that are strong enough for the scope."""
    settings = runtime.settings.ending
    with transaction(runtime.engine, tenant_id) as connection:
        ids = set(sleeping.session_memories(connection, row.id, session_id=None))
        of_sessions = [item for item in linked if item.memory.id in ids]
        strong = strongest(
            runtime,
            of_sessions,
            at,
            limit=settings.promote_most,
            strength=PROMOTED_STRENGTH,
            degree=settings.promote_degree,
        )
        stored = merges.rows(connection, row.id, strong)
    return promotion.prepare(runtime, stored, policy=parse_policy(row.policy))


def strongest(
    runtime: Runtime,
    linked: Sequence[LinkedMemory],
    at: datetime,
    *,
    limit: int,
    strength: float,
    degree: int,
) -> tuple[UUID, ...]:
    """Return ids of the strongest memories, at most ``limit``, with at least this strength and this many links."""
    ranks: list[tuple[float, int, UUID]] = []
    for item in linked:
        item_strength = strength_of(runtime, item.memory, at)
        if item.degree >= degree and item_strength >= strength:
            ranks.append((-item_strength, -item.degree, item.memory.id))
    # Ties: more links first, then the older memory, because ids sort by time.
    return tuple(id for _, _, id in sorted(ranks)[:limit])


# --- changing a plan ------------------------------------------------------------------------------------------


def without(plan: CyclePlan, guilty: frozenset[UUID]) -> CyclePlan:
    """Return the plan without the clusters of these memories and the probes for their members."""
    refused = [cluster for cluster in plan.clusters if not guilty.isdisjoint(cluster.ids)]
    members = {id for cluster in refused for id in cluster.ids}
    # Probes of refused clusters go; `expected` is keyed by place, so the remaining ones are renumbered.
    places = [place for place, probe in enumerate(plan.probes) if probe.about not in members]
    return replace(
        plan,
        clusters=tuple(cluster for cluster in plan.clusters if cluster not in refused),
        probes=tuple(plan.probes[place] for place in places),
        expected={new: plan.expected[place] for new, place in enumerate(places)},
        refused=(*plan.refused, *(cluster.anchor for cluster in refused)),
    )


def read_neighbours(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[Neighbour, ...]:
    """Read memories as the ladder takes them, retired ones too."""
    heirs = entities.heirs_by_alias(connection, [scope_id])
    return tuple(ladder.neighbour_of(row, heirs) for row in merges.rows(connection, scope_id, ids))
