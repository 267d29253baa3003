"""The ladder: what the one write path does with a statement, given its neighbours. Pure: it reads and writes
nothing.

Steps, in this order: the same fact or text again, a fact that ends another, the same meaning, merge, link,
insert. The caller fetches the neighbours: the rows of the same canonical key, every row (closed ones too) of the
same subject with the same or an opposing relation, and the nearest by cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_app.memories.decisions import (
    Candidate,
    Decision,
    Insert,
    InsertClosed,
    InsertLinked,
    Merge,
    Neighbour,
    Pairs,
    Reinforce,
    Supersede,
    Thresholds,
    Trust,
    outcome_of,
)
from memory_app.memories.guards import SUBSTITUTION, conflicting
from memory_app.memories.intervals import overlaps
from memory_app.memories.merge_rules import (
    corroborated,
    merge,
    needs_model,
    neighbour_of,
    reworded,
    row_of,
    trust_of,
)
from memory_app.memories.succession import (
    claimed_by,
    interval_of,
    is_about,
    is_open_at,
    placed_in_time,
    reinforced,
)
from memory_app.records.records import HISTORICAL

__all__ = [
    "Candidate",
    "Decision",
    "Insert",
    "InsertClosed",
    "InsertLinked",
    "Merge",
    "Neighbour",
    "Pairs",
    "Reinforce",
    "Supersede",
    "Thresholds",
    "Trust",
    "cohesive",
    "corroborated",
    "decide",
    "merge",
    "needs_model",
    "neighbour_of",
    "outcome_of",
    "reworded",
    "row_of",
    "trust_of",
]


def decide(
    candidate: Candidate,
    neighbours: Sequence[Neighbour],
    *,
    thresholds: Thresholds,
    pairs: Pairs,
    deduplicate: bool = True,
) -> Decision:
    """What to do with ``candidate``. The order of ``neighbours`` does not matter.

    Without ``deduplicate`` similar wordings are not taken for the same. The same text still is, and facts still
    follow each other in time, since two rows of either cannot be current at once.
    """
    visible = sorted((n for n in neighbours if _is_visible(n, candidate)), key=_nearest_first)
    live = [n for n in visible if n.memory.kind == candidate.statement.kind]
    decision = placed_in_time(candidate, live, thresholds) or _same_text(candidate, live)
    if decision is None and not is_open_at(candidate.valid_until, candidate.now):
        decision = InsertClosed((claimed_by(candidate),))
    if decision is None and deduplicate:
        current = [n for n in live if _is_current(n, candidate.now)]
        decision = _same_meaning(candidate, current, thresholds) or _merged(
            candidate, current, thresholds=thresholds, pairs=pairs
        )
    return decision or _linked(candidate, visible, thresholds) or Insert()


def cohesive(
    memories: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs
) -> tuple[tuple[Neighbour, ...], ...]:
    """Groups of two and more among ``memories`` that may be merged, nearest first; no memory is in two of them.

    The caller hands over current rows of one scope.
    """
    remaining = {n.memory.id: n for n in memories if n.memory.retired_at is None}
    groups = []
    for pair, cosine in sorted(pairs.items(), key=lambda item: (-item[1], sorted(item[0]))):
        if cosine < thresholds.merge or len(pair) < 2 or not pair <= remaining.keys():
            continue
        seed, *others = (remaining[id] for id in sorted(pair))
        nearest = sorted(
            remaining.values(), key=lambda n: -pairs.get(frozenset({seed.memory.id, n.memory.id}), 0)
        )
        group = [seed]
        for other in [*others, *nearest]:
            if len(group) < thresholds.merge_most and _fits(other, group, thresholds, pairs):
                group.append(other)
        if len(group) > 1:
            groups.append(tuple(group))
            remaining = {id: n for id, n in remaining.items() if n not in group}
    return tuple(groups)


# --- who counts ---------------------------------------------------------------------------------------------


def _is_visible(neighbour: Neighbour, candidate: Candidate) -> bool:
    memory = neighbour.memory
    is_history = memory.retired_reason in HISTORICAL and memory.valid_until is not None
    return memory.session == candidate.session and (memory.retired_at is None or is_history)


def _is_current(neighbour: Neighbour, now: datetime) -> bool:
    return neighbour.memory.retired_at is None and is_open_at(neighbour.memory.valid_until, now)


def _nearest_first(neighbour: Neighbour) -> tuple[float, float, UUID]:
    return (-neighbour.similarity, -neighbour.memory.valid_from.timestamp(), neighbour.memory.id)


# --- the same again -----------------------------------------------------------------------------------------


def _same_text(candidate: Candidate, live: Sequence[Neighbour]) -> Decision | None:
    is_current = is_open_at(candidate.valid_until, candidate.now)
    twins = [
        n
        for n in live
        if n.canonical_key == candidate.canonical_key
        and overlaps(interval_of(n), claimed_by(candidate))
        and (is_current or not _lacks_fact(candidate, n))
    ]
    current = [n for n in twins if n.memory.valid_until is None]
    return _again(candidate, (current or twins)[0]) if twins else None


def _again(candidate: Candidate, neighbour: Neighbour) -> Reinforce | Merge:
    """Reinforces, unless the new statement says which fact it is and the stored row does not."""
    if _lacks_fact(candidate, neighbour):
        return Merge((neighbour.memory.id,), merge([neighbour], candidate))
    return reinforced(candidate, neighbour)


def _lacks_fact(candidate: Candidate, neighbour: Neighbour) -> bool:
    if candidate.single_valued and not neighbour.single_valued:
        return True
    return candidate.relation is not None and neighbour.memory.relation is None


# --- the same in other words --------------------------------------------------------------------------------


def _is_compatible(fact: Candidate | Neighbour, other: Neighbour) -> bool:
    """Is what both say about subject, relation and object the same? What only one of them states does not count.

    Two rows of a single-valued relation are never one: their order in time was decided before.
    """
    if fact.single_valued and other.single_valued:
        return False
    pairs = (
        (fact.subject_key, other.subject_key),
        (_relation(fact), other.memory.relation),
        (fact.object_key, other.object_key),
    )
    return all(own == others for own, others in pairs if own is not None and others is not None)


def _relation(fact: Candidate | Neighbour) -> str | None:
    return fact.relation if isinstance(fact, Candidate) else fact.memory.relation


def _same_meaning(
    candidate: Candidate, current: Sequence[Neighbour], thresholds: Thresholds
) -> Decision | None:
    text = candidate.statement.text
    for n in current:
        if n.similarity < min(thresholds.same, thresholds.fact):
            return None
        same_fact = _is_restated(candidate, n) and n.similarity >= thresholds.fact
        if not same_fact and (n.similarity < thresholds.same or not _is_compatible(candidate, n)):
            continue
        reason = conflicting(text, n.memory.text)
        if reason is not None and not (same_fact and reason == SUBSTITUTION):
            continue
        says_more = len(text) > len(n.memory.text) and n.similarity < thresholds.same
        if says_more and n.trust == candidate.trust:
            return Merge((n.memory.id,), merge([n], candidate))
        return _again(candidate, n)
    return None


def _is_restated(candidate: Candidate, neighbour: Neighbour) -> bool:
    known = candidate.subject_key and candidate.relation and candidate.object_key
    return bool(known) and is_about(candidate, neighbour) and neighbour.object_key == candidate.object_key


def _merged(
    candidate: Candidate, current: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs
) -> Decision | None:
    group: list[Neighbour] = []
    for n in (near for near in current if _is_mergeable(candidate, near, thresholds)):
        if len(group) + 1 < thresholds.merge_most and _fits(n, group, thresholds, pairs):
            group.append(n)
    if not group:
        return None
    return Merge(tuple(n.memory.id for n in group), merge(group, candidate))


def _is_mergeable(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    cohesion = neighbour.similarity if neighbour.cohesion is None else neighbour.cohesion
    return (
        min(cohesion, neighbour.similarity) >= thresholds.merge
        and neighbour.trust == candidate.trust
        and _is_compatible(candidate, neighbour)
        and conflicting(candidate.statement.text, neighbour.memory.text) is None
    )


def _fits(neighbour: Neighbour, group: Sequence[Neighbour], thresholds: Thresholds, pairs: Pairs) -> bool:
    """Is it like every one of ``group``? A chain of likenesses would snowball from one topic to the next."""
    return all(
        pairs.get(frozenset({neighbour.memory.id, other.memory.id}), 0.0) >= thresholds.merge
        and (neighbour.memory.kind, neighbour.memory.session) == (other.memory.kind, other.memory.session)
        and neighbour.trust == other.trust
        and _is_compatible(neighbour, other)
        and conflicting(neighbour.memory.text, other.memory.text) is None
        for other in group
    )


def _linked(
    candidate: Candidate, visible: Sequence[Neighbour], thresholds: Thresholds
) -> InsertLinked | None:
    links = tuple(
        (n.memory.id, n.similarity)
        for n in visible
        if n.similarity >= thresholds.link and _is_current(n, candidate.now)
    )
    return InsertLinked(links) if links else None
