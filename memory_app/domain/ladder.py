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

from memory_app.domain.decisions import (
    Candidate,
    Decision,
    Insert,
    InsertClosed,
    InsertLinked,
    Merge,
    MergedFields,
    Neighbour,
    Pairs,
    Reinforce,
    Supersede,
    Thresholds,
    Trust,
    outcome_of,
)
from memory_app.domain.guards import NEGATION, SUBSTITUTION, conflicting
from memory_app.domain.intervals import Cut, Held, Interval, contains, insert_fact, overlaps
from memory_app.domain.merging import corroborated, merge, needs_model, trust_of

__all__ = [
    "Candidate",
    "Decision",
    "Insert",
    "InsertClosed",
    "InsertLinked",
    "Merge",
    "MergedFields",
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
    "outcome_of",
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
    decision = _in_time(candidate, live, thresholds) or _same_text(candidate, live)
    if decision is None and not _is_open_at(candidate.valid_until, candidate.now):
        decision = InsertClosed((_claimed(candidate),))
    if decision is None and deduplicate:
        current = [n for n in live if _is_open_at(n.memory.valid_until, candidate.now)]
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
    left = {n.memory.id: n for n in memories if n.memory.retired_at is None}
    groups = []
    for pair, cosine in sorted(pairs.items(), key=lambda item: (-item[1], sorted(item[0]))):
        if cosine < thresholds.merge or len(pair) < 2 or not pair <= left.keys():
            continue
        seed, *others = (left[id] for id in sorted(pair))
        nearest = sorted(left.values(), key=lambda n: -pairs.get(frozenset({seed.memory.id, n.memory.id}), 0))
        group = [seed]
        for other in [*others, *nearest]:
            if len(group) < thresholds.merge_most and _fits(other, group, thresholds, pairs):
                group.append(other)
        if len(group) > 1:
            groups.append(tuple(group))
            left = {id: n for id, n in left.items() if n not in group}
    return tuple(groups)


# --- who counts ---------------------------------------------------------------------------------------------


def _is_visible(neighbour: Neighbour, candidate: Candidate) -> bool:
    memory = neighbour.memory
    return memory.retired_at is None and memory.session == candidate.session


def _nearest_first(neighbour: Neighbour) -> tuple[float, float, UUID]:
    return (-neighbour.similarity, -neighbour.memory.valid_from.timestamp(), neighbour.memory.id)


def _is_open_at(until: datetime | None, now: datetime) -> bool:
    return until is None or until > now


def _claimed(candidate: Candidate) -> Interval:
    return Interval(candidate.valid_from, candidate.valid_until)


def _interval(neighbour: Neighbour) -> Interval:
    return Interval(neighbour.memory.valid_from, neighbour.memory.valid_until)


def _confirmed(neighbour: Neighbour) -> datetime:
    return neighbour.confirmed_at or neighbour.memory.valid_from


# --- the same again -----------------------------------------------------------------------------------------


def _same_text(candidate: Candidate, live: Sequence[Neighbour]) -> Decision | None:
    twins = [
        n
        for n in live
        if n.canonical_key == candidate.canonical_key and overlaps(_interval(n), _claimed(candidate))
    ]
    current = [n for n in twins if n.memory.valid_until is None]
    return _again(candidate, (current or twins)[0]) if twins else None


def _again(candidate: Candidate, neighbour: Neighbour) -> Reinforce | Merge:
    """Reinforces, unless the new statement says which fact it is and the stored row does not."""
    known = neighbour.subject_key is not None and neighbour.memory.relation is not None
    if candidate.subject_key and candidate.relation and not known:
        return Merge((neighbour.memory.id,), merge([neighbour], candidate))
    if candidate.single_valued and not neighbour.single_valued:
        return Merge((neighbour.memory.id,), merge([neighbour], candidate))
    return _reinforced(candidate, neighbour)


def _reinforced(candidate: Candidate, neighbour: Neighbour) -> Reinforce:
    memory, until = neighbour.memory, candidate.valid_until
    may_correct = candidate.trust >= neighbour.trust
    begins = may_correct and candidate.valid_from < memory.valid_from
    ends = may_correct and until is not None and memory.valid_until is None and _confirmed(neighbour) < until
    return Reinforce(
        memory.id,
        confirmed_at=candidate.valid_from,
        valid_from=candidate.valid_from if begins else None,
        valid_until=until if ends else None,
    )


# --- facts in time ------------------------------------------------------------------------------------------


def _in_time(candidate: Candidate, live: Sequence[Neighbour], thresholds: Thresholds) -> Decision | None:
    """What follows from facts that exclude the candidate, or say the same of a single-valued relation; else None."""
    claimed = _claimed(candidate)
    if not (candidate.subject_key and candidate.relation) or not overlaps(claimed, claimed):
        return None
    same = [n for n in live if _is_same_fact(candidate, n, thresholds)]
    rivals = [n for n in live if _is_rival(candidate, n) and n not in same]
    if not rivals and not candidate.single_valued and candidate.valid_until is None:
        return None
    holding = next((n for n in same if contains(_interval(n), candidate.valid_from)), None)
    if holding is not None:
        return _reinforced(candidate, holding)
    later = min((n for n in same if overlaps(_interval(n), claimed)), key=_start, default=None)
    if not rivals:
        return _reinforced(candidate, later) if later else None
    return _among_rivals(candidate, live, rivals, later)


def _start(neighbour: Neighbour) -> datetime:
    return neighbour.memory.valid_from


def _is_same_fact(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    """One fact in the words of either. Events may share subject, relation and object; they differ in wording."""
    if not _is_about(candidate, neighbour) or _value(neighbour) != _value(candidate):
        return False
    if neighbour.single_valued != candidate.single_valued:
        return False
    if neighbour.canonical_key == candidate.canonical_key:
        return True
    reason = conflicting(candidate.statement.text, neighbour.memory.text)
    if candidate.single_valued:
        return reason != NEGATION
    return reason in (None, SUBSTITUTION) and neighbour.similarity >= thresholds.fact


def _is_about(candidate: Candidate, neighbour: Neighbour) -> bool:
    return (neighbour.subject_key, neighbour.memory.relation) == (candidate.subject_key, candidate.relation)


def _value(fact: Candidate | Neighbour) -> str:
    return fact.object_key or fact.canonical_key


def _is_rival(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Can the two not be true together?"""
    if candidate.single_valued and neighbour.single_valued and _is_about(candidate, neighbour):
        return True
    return (
        neighbour.subject_key == candidate.subject_key
        and neighbour.memory.relation in candidate.opposes
        and candidate.object_key is not None
        and neighbour.object_key == candidate.object_key
    )


def _among_rivals(
    candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour], later: Neighbour | None
) -> Decision | None:
    held = [_held(candidate, rival) for rival in rivals]
    if later is not None:
        held.append(Held(later.memory.id, Interval(_start(later)), _start(later), immovable=True))
    placement = insert_fact(held, _claimed(candidate))
    holds, cuts = placement.holds, placement.cuts
    if not holds:
        return _contested(candidate, live, rivals)
    if later is not None and not cuts and holds == (Interval(candidate.valid_from, _start(later)),):
        return _reinforced(candidate, later)
    if not _is_open_at(holds[-1].until, candidate.now):
        return InsertClosed(holds, cuts)
    cuts = (*cuts, *_overruled(candidate, live, rivals))
    if cuts:
        return Supersede(holds, cuts)
    return None if holds == (_claimed(candidate),) else Insert(holds)


def _held(candidate: Candidate, rival: Neighbour) -> Held:
    return Held(
        rival.memory.id,
        _interval(rival),
        _confirmed(rival),
        immovable=rival.trust > candidate.trust,
        yielding=rival.trust < candidate.trust,
    )


def _contested(candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour]) -> Decision:
    """Something trusted more says otherwise: kept beside it, once."""
    for n in live:
        repeated = n.canonical_key == candidate.canonical_key or (
            _is_about(candidate, n) and _value(n) == _value(candidate) and n not in rivals
        )
        if repeated and overlaps(_interval(n), _claimed(candidate)):
            return _reinforced(candidate, n)
    stronger = [
        n for n in rivals if n.trust > candidate.trust and overlaps(_interval(n), _claimed(candidate))
    ]
    return InsertLinked(tuple((n.memory.id, max(n.similarity, 0.0)) for n in stronger), contested=True)


def _overruled(
    candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour]
) -> tuple[Cut, ...]:
    """Rows outside the order of time that the new current one ends: its own text, and contested claims."""
    ended = [
        n
        for n in live
        if n not in rivals
        and n.memory.valid_until is None
        and (n.canonical_key == candidate.canonical_key or _is_contested_by(candidate, n))
    ]
    return tuple(Cut(n.memory.id, max(_start(n), candidate.valid_from)) for n in ended)


def _is_contested_by(candidate: Candidate, neighbour: Neighbour) -> bool:
    outside = candidate.single_valued and not neighbour.single_valued
    return outside and _is_about(candidate, neighbour) and neighbour.trust <= candidate.trust


# --- the same in other words --------------------------------------------------------------------------------


def _is_compatible(one: Candidate | Neighbour, other: Neighbour) -> bool:
    """Is what both say about subject, relation and object the same? What only one of them says does not count."""
    pairs = (
        (one.subject_key, other.subject_key),
        (_relation(one), other.memory.relation),
        (one.object_key, other.object_key),
    )
    return all(left == right for left, right in pairs if left is not None and right is not None)


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
    return bool(known) and _is_about(candidate, neighbour) and neighbour.object_key == candidate.object_key


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
        if n.similarity >= thresholds.link and _is_open_at(n.memory.valid_until, candidate.now)
    )
    return InsertLinked(links) if links else None
