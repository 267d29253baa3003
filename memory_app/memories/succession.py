"""Facts in time: what a new statement repeats, what it ends, and when it holds itself.

Two facts of one line (a subject and a single-valued relation, or a thing that is liked and disliked) are never
true together. Their order in time decides, and whom they come from; their wording does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memory_app.memories.decisions import (
    Candidate,
    Decision,
    Insert,
    InsertClosed,
    InsertLinked,
    Neighbour,
    Reinforce,
    Supersede,
    Thresholds,
)
from memory_app.memories.guards import NEGATION, SUBSTITUTION, conflicting
from memory_app.memories.intervals import Cut, Interval, Rival, contains, insert_fact, overlaps


def placed_in_time(
    candidate: Candidate, live: Sequence[Neighbour], thresholds: Thresholds
) -> Decision | None:
    """What follows from facts that exclude the candidate, or say the same of a single-valued relation; else None."""
    claimed = claimed_by(candidate)
    if not (candidate.subject_key and candidate.relation) or not overlaps(claimed, claimed):
        return None
    same = [n for n in live if _is_same_fact(candidate, n, thresholds)]
    rivals = [n for n in live if _is_rival(candidate, n) and n not in same]
    if not rivals and not candidate.single_valued and candidate.valid_until is None:
        return None
    holding = next((n for n in same if contains(interval_of(n), candidate.valid_from)), None)
    if holding is not None:
        return reinforced(candidate, holding)
    later = min((n for n in same if overlaps(interval_of(n), claimed)), key=_start, default=None)
    if not rivals:
        return reinforced(candidate, later) if later else None
    return _among_rivals(candidate, live, rivals, later)


def reinforced(candidate: Candidate, neighbour: Neighbour) -> Reinforce:
    """Said again, with an earlier start or a newly known end where the statement may say so."""
    memory, until = neighbour.memory, candidate.valid_until
    may_correct = candidate.trust >= neighbour.trust and _may_date(candidate, neighbour)
    begins = may_correct and candidate.valid_from < memory.valid_from
    ends = may_correct and until is not None and memory.valid_until is None and _confirmed(neighbour) < until
    return Reinforce(
        memory.id,
        confirmed_at=candidate.valid_from,
        valid_from=candidate.valid_from if begins else None,
        valid_until=until if ends else None,
    )


def _may_date(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Only the same fact moves the bounds of a fact: others do not know what came before and after it."""
    if neighbour.memory.relation is None:
        return True
    return is_about(candidate, neighbour) and _value(candidate) == _value(neighbour)


def _is_same_fact(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    """One fact in the words of either. Events may share subject, relation and object; they differ in wording."""
    if not is_about(candidate, neighbour) or _value(neighbour) != _value(candidate):
        return False
    if neighbour.single_valued != candidate.single_valued:
        return False
    if neighbour.canonical_key == candidate.canonical_key:
        return True
    reason = conflicting(candidate.statement.text, neighbour.memory.text)
    if candidate.single_valued:
        return reason != NEGATION
    return reason in (None, SUBSTITUTION) and neighbour.similarity >= thresholds.fact


def _is_rival(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Can the two not be true together?"""
    if candidate.single_valued and neighbour.single_valued and is_about(candidate, neighbour):
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
    stored = [_as_rival(candidate, rival, rivals) for rival in rivals]
    if later is not None:
        stored.append(Rival(later.memory.id, Interval(_start(later)), _start(later), immovable=True))
    placement = insert_fact(stored, claimed_by(candidate))
    holds, cuts = placement.holds, placement.cuts
    if not holds:
        return _contested(candidate, live, rivals)
    if later is not None and not cuts and holds == (Interval(candidate.valid_from, _start(later)),):
        return reinforced(candidate, later)
    if not is_open_at(holds[-1].until, candidate.now):
        return InsertClosed(holds, cuts)
    cuts = (*cuts, *_overruled(candidate, live, rivals))
    if cuts:
        return Supersede(holds, cuts)
    return None if holds == (claimed_by(candidate),) else Insert(holds)


def _as_rival(candidate: Candidate, rival: Neighbour, rivals: Sequence[Neighbour]) -> Rival:
    return Rival(
        rival.memory.id,
        interval_of(rival),
        _last_confirmed(rival, rivals),
        immovable=rival.trust > candidate.trust,
        yielding=rival.trust < candidate.trust,
    )


def _last_confirmed(rival: Neighbour, rivals: Sequence[Neighbour]) -> datetime:
    """A row that resumes after an interruption is confirmed by what was said again of the part before it."""
    confirmed = _confirmed(rival)
    if confirmed >= _start(rival):
        return confirmed
    fact = (rival.memory.relation, _value(rival))
    parts = [_confirmed(n) for n in rivals if (n.memory.relation, _value(n)) == fact]
    return max(at for at in parts if at <= _start(rival))


def _contested(candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour]) -> Decision:
    """Something trusted more says otherwise: kept beside it, once."""
    for n in live:
        repeated = n.canonical_key == candidate.canonical_key or (
            is_about(candidate, n) and _value(n) == _value(candidate) and n not in rivals
        )
        if repeated and overlaps(interval_of(n), claimed_by(candidate)):
            return Reinforce(n.memory.id, confirmed_at=candidate.valid_from)
    stronger = [
        n for n in rivals if n.trust > candidate.trust and overlaps(interval_of(n), claimed_by(candidate))
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
    return outside and is_about(candidate, neighbour) and neighbour.trust <= candidate.trust


def is_open_at(until: datetime | None, now: datetime) -> bool:
    """Is what ends at ``until`` still true at ``now``? None has no end."""
    return until is None or until > now


def claimed_by(candidate: Candidate) -> Interval:
    """The interval in which a statement says that it holds."""
    return Interval(candidate.valid_from, candidate.valid_until)


def interval_of(neighbour: Neighbour) -> Interval:
    """The interval in which a stored row holds."""
    return Interval(neighbour.memory.valid_from, neighbour.memory.valid_until)


def is_about(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Have the two the same subject and relation?"""
    return (neighbour.subject_key, neighbour.memory.relation) == (candidate.subject_key, candidate.relation)


def _value(fact: Candidate | Neighbour) -> str:
    return fact.object_key or fact.canonical_key


def _start(neighbour: Neighbour) -> datetime:
    return neighbour.memory.valid_from


def _confirmed(neighbour: Neighbour) -> datetime:
    return neighbour.confirmed_at or neighbour.memory.valid_from
