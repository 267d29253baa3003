"""The plan of a sleep cycle: what is similar, what comes up again and again, what proved itself. Made without a lock.

It reads and embeds and changes nothing; `sleep` carries it out, and leaves alone what changed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from memory_app.db import clock
from memory_app.db.db import transaction
from memory_app.memories import capacity, ladder, remember
from memory_app.memories.capacity import strength_of
from memory_app.memories.guards import exchanged
from memory_app.memories.ladder import Neighbour
from memory_app.memories.remember import Prepared, neighbour_of, thresholds_of
from memory_app.memories.rows import entities, fading, links, memories, merges
from memory_app.memories.rows.fading import Weighed
from memory_app.records.kinds import KINDS
from memory_app.records.records import Origin, Statement
from memory_app.runtime import Runtime
from memory_app.sleep import promotion, quality
from memory_app.sleep.clusters import PIECE, clusters, components, near_pairs
from memory_app.sleep.promotion import Promotable
from memory_app.sleep.quality import Found, ProbeQuestion
from memory_app.sleep.rows import sleeping
from memory_app.sleep.rules import SleepOptions, Topic, is_pattern, pattern_text, share_a_sentence, summary
from memory_app.tenancy.policy import Policy, parse_policy
from memory_app.tenancy.rows.names import ScopeRow

LIKENESSES_EACH = 5
"""Most new links of one memory in a cycle."""

PACKED = 1_000
"""Memories of small components that are read together; pairs are compared within a component only."""

PARENTS_MOST = 20
"""Most memories named as the sources of a pattern."""

PROMOTED_STRENGTH = 0.6
"""A memory of a session that is as strong as this is promoted without waiting for the session's end."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cluster to be: its members, the strongest of which is the anchor, and the text that will stand for them."""

    members: tuple[Neighbour, ...]
    anchor: UUID
    text: str
    strength_before: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cycle would do, and what it saw. ``at`` is the hour for which strengths are computed."""

    row: ScopeRow
    policy: Policy
    options: SleepOptions
    at: datetime
    inspected: tuple[UUID, ...]
    clusters: tuple[Planned, ...]
    vectors: dict[str, Sequence[float]]
    likenesses: tuple[tuple[UUID, UUID, float], ...]
    patterns: tuple[tuple[Topic, Prepared], ...]
    promotable: tuple[Promotable, ...]
    probes: tuple[ProbeQuestion, ...]
    before: Found
    refused: tuple[UUID, ...] = ()
    """Anchors of clusters that the gate took out."""


def make_plan(
    runtime: Runtime, tenant_id: int, row: ScopeRow, options: SleepOptions, *, session_id: int | None = None
) -> Plan:
    """What a cycle would do to the scope, or to one session of it. Reads only; embeds with no transaction open."""
    policy = parse_policy(row.policy)
    with transaction(runtime.engine, tenant_id) as connection:
        at = hour(clock.now(connection))
        weighed = fading.held(connection, row.id, session_id=session_id)
        asked = quality.recent_questions(connection, runtime, row.id)
    soft = _soft(runtime, weighed, at, options)
    strengths = {one.memory.id: strength_of(runtime, one.memory, at) for one in weighed}
    kinds = {one.memory.kind for one in weighed if one.memory.id in soft}
    found, likenesses = _similar(runtime, tenant_id, row.id, kinds, soft, strengths, options)
    patterns = _patterns(runtime, tenant_id, row, policy) if session_id is None else ()
    promotable = () if session_id is not None else _promotable(runtime, tenant_id, row, policy, weighed, at)
    plan = Plan(
        row=row,
        policy=policy,
        options=options,
        at=at,
        inspected=tuple(soft),
        clusters=found,
        vectors=_new_vectors(runtime, found),
        likenesses=likenesses,
        patterns=patterns,
        promotable=promotable,
        probes=(),
        before={},
    )
    return _probed(runtime, tenant_id, plan, asked)


def hour(now: datetime) -> datetime:
    """The hour for which strengths are computed, so that a dry run tells what the run will tell."""
    return now.replace(minute=0, second=0, microsecond=0)


def _probed(runtime: Runtime, tenant_id: int, plan: Plan, asked: Sequence[str]) -> Plan:
    """The plan with the questions that it is checked with; one that changes nothing needs none."""
    with transaction(runtime.engine, tenant_id) as connection:
        if not _changes_something(connection, runtime, plan):
            return plan
    said = [
        (n.memory.id, n.memory.text)
        for planned in plan.clusters
        for n in planned.members
        if n.memory.text != planned.text
    ]
    questions = quality.probes(runtime, asked, said, most=runtime.settings.sleep.probes)
    if not questions:
        return plan
    with transaction(runtime.engine, tenant_id) as connection:
        before = quality.wanted(questions, quality.found(connection, runtime, tenant_id, plan.row, questions))
    return replace(plan, probes=questions, before=before)


def _changes_something(connection: Connection, runtime: Runtime, plan: Plan) -> bool:
    """Would it merge, name, promote, evict or link anything?"""
    if plan.clusters or plan.patterns or plan.promotable:
        return True
    ceiling = capacity.ceiling_of(runtime, plan.policy).memories
    if plan.inspected and fading.current_count(connection, plan.row.id, most=ceiling + 1) > ceiling:
        return True
    if not plan.likenesses:
        return False
    most = runtime.settings.remember.links_each
    return bool(unlinked(connection, plan.row.id, plan.likenesses, most=most))


def unlinked(
    connection: Connection, scope_id: int, likenesses: Sequence[links.Edge], *, most: int
) -> list[links.Edge]:
    """Those that are not linked yet and would stay if they were: at both ends there is room, or a weaker link."""
    if not likenesses:
        return []
    known = sleeping.linked_pairs(connection, scope_id)
    new = [edge for edge in likenesses if frozenset(edge[:2]) not in known]
    weakest = links.full(connection, scope_id, [end for edge in new for end in edge[:2]], most=most)
    return [
        (one, other, cosine)
        for one, other, cosine in new
        if cosine > max(weakest.get(one, -1.0), weakest.get(other, -1.0))
    ]


def _soft(
    runtime: Runtime, weighed: Sequence[Weighed], at: datetime, options: SleepOptions
) -> dict[UUID, float]:
    """The memories that a cycle looks at, the weakest first: not firm, and of a kind that merges."""
    strengths = {
        one.memory.id: strength_of(runtime, one.memory, at)
        for one in weighed
        if KINDS[one.memory.kind].merges and not one.memory.pinned
    }
    soft = sorted((value, id) for id, value in strengths.items() if value < options.min_strength)
    return {id: value for value, id in soft[: options.max_inspected]}


def _similar(
    runtime: Runtime,
    tenant_id: int,
    scope_id: int,
    kinds: set[str],
    soft: dict[UUID, float],
    strengths: dict[UUID, float],
    options: SleepOptions,
) -> tuple[tuple[Planned, ...], tuple[tuple[UUID, UUID, float], ...]]:
    """Clusters in which every two are alike, and pairs that are merely similar."""
    found: list[Planned] = []
    likenesses: list[tuple[UUID, UUID, float]] = []
    model = runtime.embedder.model
    for kind in (name for name in KINDS if name in kinds):
        thresholds = _thresholds(runtime, kind, options)
        with transaction(runtime.engine, tenant_id) as connection:
            groups = merges.vectors(connection, scope_id, kind=kind, model=model)
        for group in groups:
            places = [place for place, id in enumerate(group.ids) if id in soft]
            ids, rows = [group.ids[place] for place in places], group.vectors[places]
            near = near_pairs(rows, least=thresholds.merge, most=runtime.settings.remember.neighbours)
            for pieces in _packed(components(near)):
                together = [[ids[place] for place in piece] for piece in pieces]
                found += _clusters(runtime, tenant_id, scope_id, together, thresholds, strengths, options)
            alike = sorted(set(near_pairs(rows, least=thresholds.link, most=LIKENESSES_EACH)))
            likenesses += [(ids[i], ids[j], float(rows[i] @ rows[j])) for i, j in alike]
    ordered = sorted(found, key=lambda planned: (planned.strength_before, planned.anchor))
    return tuple(ordered[: options.max_clusters]), tuple(likenesses)


def _packed(found: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Small components together, a huge one in pieces: a round trip for each would be most of the time."""
    packed: list[Sequence[int]] = []
    size = 0
    for component in found:
        for start in range(0, len(component), PIECE):
            piece = component[start : start + PIECE]
            if packed and size + len(piece) > PACKED:
                yield packed
                packed, size = [], 0
            packed.append(piece)
            size += len(piece)
    if packed:
        yield packed


def _thresholds(runtime: Runtime, kind: str, options: SleepOptions) -> ladder.Thresholds:
    own = thresholds_of(runtime, kind)
    return own if options.similarity is None else replace(own, merge=options.similarity)


def _clusters(
    runtime: Runtime,
    tenant_id: int,
    scope_id: int,
    pieces: Sequence[Sequence[UUID]],
    thresholds: ladder.Thresholds,
    strengths: dict[UUID, float],
    options: SleepOptions,
) -> list[Planned]:
    pieces = [piece for piece in pieces if len(piece) >= options.min_cluster_size]
    ids = [id for piece in pieces for id in piece]
    if not ids:
        return []
    with transaction(runtime.engine, tenant_id) as connection:
        members = {n.memory.id: n for n in read(connection, scope_id, ids)}
        pairs = memories.pair_similarities(connection, scope_id, *pieces)
        behind = sleeping.depths(connection, scope_id, ids)
    fresh = [n for id, n in members.items() if behind.get(id, 0) < runtime.settings.sleep.max_rewrites]
    known = {n.memory.id for n in fresh}
    pairs = {
        pair: cosine
        for pair, cosine in pairs.items()
        if pair <= known and cosine >= thresholds.merge and _holds_the_other(*(members[id] for id in pair))
    }
    found = []
    for cluster in clusters(fresh, thresholds=thresholds, pairs=pairs):
        if len(cluster.members) >= options.min_cluster_size:
            some = tuple(members[id] for id in cluster.members)
            anchor = max(some, key=lambda n: (strengths[n.memory.id], len(n.memory.text), n.memory.id)).memory
            said = summary([n.memory.text for n in some], limit=options.summary_chars)
            found.append(Planned(some, anchor.id, said, strengths[anchor.id]))
    return found


def _holds_the_other(one: Neighbour, other: Neighbour) -> bool:
    """Does one of the two say all that the other says, in words or in a whole sentence, or do both name one fact?
    Nobody said these again, so in doubt they stay apart."""
    fact = (one.subject_key, one.memory.relation, one.object_key)
    if None not in fact and fact == (other.subject_key, other.memory.relation, other.object_key):
        return True
    return share_a_sentence(one.memory.text, other.memory.text) or not exchanged(
        one.memory.text, other.memory.text
    )


def _new_vectors(runtime: Runtime, found: Sequence[Planned]) -> dict[str, Sequence[float]]:
    """Vectors of summaries that are nobody's own words."""
    known = {n.memory.text for planned in found for n in planned.members}
    new = sorted({planned.text for planned in found} - known)
    vectors = runtime.embedder.embed(new) if new else ()
    return {said: vector.tolist() for said, vector in zip(new, vectors, strict=True)}


def _patterns(
    runtime: Runtime, tenant_id: int, row: ScopeRow, policy: Policy
) -> tuple[tuple[Topic, Prepared], ...]:
    """What comes up over weeks and was never said to do so."""
    settings = runtime.settings.sleep
    with transaction(runtime.engine, tenant_id) as connection:
        topics = sleeping.topics(connection, row.id, least=settings.pattern_memories)
        talking = {
            name.casefold() for name in (row.agent, row.user, *sleeping.speakers(connection, row.id)) if name
        }
        besides = frozenset(talking)
        found = [
            topic
            for topic in topics
            if is_pattern(
                topic, weeks=settings.pattern_weeks, memories=settings.pattern_memories, besides=besides
            )
        ]
    said = [
        Statement(
            kind="artifact",
            text=pattern_text(topic.label, min(topic.at)),
            origin=Origin.SYNTHESIZED,
            valid_from=min(topic.at),
            parents=topic.memories[:PARENTS_MOST],
            synthesis_type="pattern",
        )
        for topic in found
    ]
    prepared = remember.prepare(runtime, said, policy=policy)
    with transaction(runtime.engine, tenant_id) as connection:
        known = sleeping.known_keys(connection, row.id, [one.key for one in prepared])
    return tuple((topic, one) for topic, one in zip(found, prepared, strict=True) if one.key not in known)


def _promotable(
    runtime: Runtime, tenant_id: int, row: ScopeRow, policy: Policy, weighed: Sequence[Weighed], at: datetime
) -> tuple[Promotable, ...]:
    settings = runtime.settings.ending
    with transaction(runtime.engine, tenant_id) as connection:
        of_sessions = set(sleeping.session_memories(connection, row.id, session_id=None))
        strong = chosen(
            runtime,
            [one for one in weighed if one.memory.id in of_sessions],
            at,
            most=settings.promote_most,
            strength=PROMOTED_STRENGTH,
            degree=settings.promote_degree,
        )
        stored = merges.rows(connection, row.id, strong)
    return promotion.prepare(runtime, stored, policy=policy)


def chosen(
    runtime: Runtime, weighed: Sequence[Weighed], at: datetime, *, most: int, strength: float, degree: int
) -> tuple[UUID, ...]:
    """The strongest, at most ``most``, of those with so much strength and so many links."""
    fit = [
        (strength_of(runtime, one.memory, at), one.degree, one.memory.id)
        for one in weighed
        if one.degree >= degree
    ]
    best = sorted((one for one in fit if one[0] >= strength), key=lambda one: (-one[0], -one[1], one[2]))
    return tuple(id for _, _, id in best[:most])


def without(plan: Plan, guilty: frozenset[UUID]) -> Plan:
    """The plan less the clusters of these memories, and less the probes for them."""
    out = [
        planned for planned in plan.clusters if not guilty.isdisjoint(n.memory.id for n in planned.members)
    ]
    members = {n.memory.id for planned in out for n in planned.members}
    kept = [place for place, probe in enumerate(plan.probes) if probe.about not in members]
    return replace(
        plan,
        clusters=tuple(planned for planned in plan.clusters if planned not in out),
        probes=tuple(plan.probes[place] for place in kept),
        before={new: plan.before[place] for new, place in enumerate(kept)},
        refused=(*plan.refused, *(planned.anchor for planned in out)),
    )


def read(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> tuple[Neighbour, ...]:
    """Memories as the ladder sees them, retired ones too."""
    same = entities.heirs_by_alias(connection, [scope_id])
    return tuple(neighbour_of(row, same) for row in merges.rows(connection, scope_id, ids))
