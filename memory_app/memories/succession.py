"""Facts in time: what a new statement repeats, what it ends, and when it holds itself.

Two facts of one line (a subject and a single-valued relation, or a thing that is liked and disliked) are never
true together. Their order in time decides, and whom they come from; their wording does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from memory_app.memories.relations import ended_relations


def placed_in_time(
    candidate: Candidate, live: Sequence[Neighbour], thresholds: Thresholds
) -> Decision | None:
    """What follows from facts that exclude the candidate, or say the same of a single-valued relation; else None."""
    claimed = claimed_by(candidate)
    # An interval that ends before it begins overlaps nothing, not even itself: it has no place in time.
    if not (candidate.subject_key and candidate.relation) or not overlaps(claimed, claimed):
        return None
    same = [n for n in live if _is_same_fact(candidate, n, thresholds)]
    rivals = [n for n in live if _is_rival(candidate, n) and n not in same]
    # What is said to hold again after it had ended is a claim of its own.
    same = [n for n in same if not is_said_after_end(candidate, n)]
    # An open fact of a many-valued relation excludes nothing, so its wording may decide.
    is_in_time = candidate.single_valued or candidate.valid_until is not None
    if not rivals and not is_in_time:
        return None
    holding = next((n for n in same if contains(interval_of(n), candidate.valid_from)), None)
    if holding is not None:
        return reinforced(candidate, holding)
    # The same fact with a later beginning: this one may be what was true before it, told late.
    overlapping = [n for n in same if overlaps(interval_of(n), claimed)]
    later = min(overlapping, key=_start, default=None)
    if rivals:
        return _among_rivals(candidate, live, rivals=rivals, later=later)
    return reinforced(candidate, later) if later else None


def reinforced(candidate: Candidate, neighbour: Neighbour) -> Reinforce:
    """Said again, with an earlier start or a newly known end where the statement may say so."""
    decision = Reinforce(neighbour.memory.id, confirmed_at=candidate.confirmed_at)
    # Who is trusted less repeats a fact, but does not move its dates.
    if candidate.trust < neighbour.trust or not _may_date(candidate, neighbour):
        return decision
    if candidate.valid_from < _start(neighbour):
        decision = replace(decision, valid_from=candidate.valid_from)
    until = candidate.valid_until
    is_open = neighbour.memory.valid_until is None
    # Whoever confirmed the fact later than this end said that it still held then.
    if until is not None and is_open and _confirmed(neighbour) < until:
        decision = replace(decision, valid_until=until)
    return decision


def is_said_after_end(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Whether the statement says that something is true which the row says is over by then."""
    until = neighbour.memory.valid_until
    if until is None or candidate.confirmed_at < until:
        return False
    return candidate.valid_until is None or candidate.valid_until > until


def _may_date(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Only the same fact moves the bounds of a fact: others do not know what came before and after it."""
    return neighbour.memory.relation is None or _states_same(candidate, neighbour)


def _is_same_fact(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    """One fact in the words of either. Events may share subject, relation and object; they differ in wording."""
    if neighbour.single_valued != candidate.single_valued or not _states_same(candidate, neighbour):
        return False
    if neighbour.canonical_key == candidate.canonical_key:
        return True
    reason = conflicting(candidate.statement.text, neighbour.memory.text)
    if candidate.single_valued:
        # Subject, relation and object leave nothing to differ in, but for "no longer".
        return reason != NEGATION
    # Two visits to Rome are two facts: here the wording has to be near as well.
    return reason in (None, SUBSTITUTION) and neighbour.similarity >= thresholds.fact


def _is_rival(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Can the two not be true together?"""
    if candidate.single_valued and neighbour.single_valued and _is_about(candidate, neighbour):
        return True
    if candidate.subject_key == neighbour.subject_key and _ends_relation(candidate, neighbour):
        return True
    # Without an object nothing is opposed: "stopped" alone does not end every habit.
    if candidate.object_key is None or neighbour.memory.relation not in candidate.opposes:
        return False
    ends = (neighbour.subject_key, neighbour.object_key)
    return ends == (candidate.subject_key, candidate.object_key)


def _ends_relation(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Whether one of the two says that the relation of the other is over, whoever it was with."""
    relation, value = neighbour.memory.relation, neighbour.memory.object
    if relation is None:
        return False
    return relation in candidate.ends or candidate.relation in ended_relations(relation, value)


def _among_rivals(
    candidate: Candidate,
    live: Sequence[Neighbour],
    *,
    rivals: Sequence[Neighbour],
    later: Neighbour | None,
) -> Decision | None:
    stored = [_as_rival(candidate, rival, rivals) for rival in rivals]
    if later is not None:
        # The same fact, said of a later time, keeps its row: the new one reaches up to it at most.
        stored.append(
            Rival(
                later.memory.id,
                interval=Interval(_start(later)),
                confirmed_at=_start(later),
                immovable=True,
            )
        )
    placement = insert_fact(stored, claimed_by(candidate), confirmed_at=candidate.confirmed_at)
    holds, cuts = placement.holds, placement.cuts
    if not holds:
        return _contested(candidate, live, rivals)
    if later is not None and holds == (Interval(candidate.valid_from, _start(later)),):
        widened = reinforced(candidate, later)
        if widened.valid_from is not None:
            # Nothing stands between the two, so one row with the earlier start says it all.
            return replace(widened, cuts=cuts)
    if not is_open_at(holds[-1].until, candidate.now):
        return InsertClosed(holds, cuts)
    cuts = (*cuts, *_overruled(candidate, live, rivals))
    if cuts:
        return Supersede(holds, cuts)
    # It holds as it claims to, and ends nothing: the steps by wording may still know it.
    return None if holds == (claimed_by(candidate),) else Insert(holds)


def _as_rival(candidate: Candidate, rival: Neighbour, rivals: Sequence[Neighbour]) -> Rival:
    return Rival(
        rival.memory.id,
        interval=interval_of(rival),
        confirmed_at=_last_confirmed(rival, rivals),
        immovable=rival.trust > candidate.trust,
        yielding=rival.trust < candidate.trust,
        first_confirmed_at=rival.first_confirmed_at,
    )


def _last_confirmed(rival: Neighbour, rivals: Sequence[Neighbour]) -> datetime:
    """A row that resumes after an interruption is confirmed by what was said again of the part before it."""
    confirmed = _confirmed(rival)
    if confirmed >= _start(rival):
        return confirmed
    # Only a copy that resumes is confirmed before it begins; what it was copied from is among the rivals.
    fact = (rival.memory.relation, _value(rival))
    parts = [_confirmed(n) for n in rivals if (n.memory.relation, _value(n)) == fact]
    return max(at for at in parts if at <= _start(rival))


def _contested(candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour]) -> Decision:
    """Something trusted more says otherwise: the claim is stored beside it, once."""
    claimed = claimed_by(candidate)
    for neighbour in live:
        if _is_repeated(candidate, neighbour, rivals) and overlaps(interval_of(neighbour), claimed):
            return Reinforce(neighbour.memory.id, confirmed_at=candidate.confirmed_at)
    stronger = [n for n in rivals if n.trust > candidate.trust and overlaps(interval_of(n), claimed)]
    # The weight of a link is 0 to 1, a cosine may be below.
    links = [(n.memory.id, max(n.similarity, 0.0)) for n in stronger]
    return InsertLinked(tuple(links), contested=True)


def _is_repeated(candidate: Candidate, neighbour: Neighbour, rivals: Sequence[Neighbour]) -> bool:
    """Whether the row is the same contested claim, stored when it was first made."""
    if neighbour.canonical_key == candidate.canonical_key:
        return True
    return neighbour not in rivals and _states_same(candidate, neighbour)


def _overruled(
    candidate: Candidate, live: Sequence[Neighbour], rivals: Sequence[Neighbour]
) -> tuple[Cut, ...]:
    """Rows outside the order of time that the new current one ends: its own text, and contested claims."""
    # Rivals were cut by their place in time already.
    outside = [n for n in live if n not in rivals and n.memory.valid_until is None]
    ended = [n for n in outside if _is_overruled(candidate, n)]
    # None ends before it began, however far back the new one reaches.
    return tuple(Cut(n.memory.id, max(_start(n), candidate.valid_from)) for n in ended)


def _is_overruled(candidate: Candidate, neighbour: Neighbour) -> bool:
    # Two current rows of one text cannot be: a unique index of the table refuses the second.
    if neighbour.canonical_key == candidate.canonical_key:
        return True
    is_contested = candidate.single_valued and not neighbour.single_valued
    return is_contested and _is_about(candidate, neighbour) and neighbour.trust <= candidate.trust


def is_open_at(until: datetime | None, now: datetime) -> bool:
    """Is what ends at ``until`` still true at ``now``? None has no end."""
    return until is None or until > now


def claimed_by(candidate: Candidate) -> Interval:
    """The interval in which a statement says that it holds."""
    return Interval(candidate.valid_from, candidate.valid_until)


def interval_of(neighbour: Neighbour) -> Interval:
    """The interval in which a stored row holds."""
    return Interval(neighbour.memory.valid_from, neighbour.memory.valid_until)


def _is_about(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Have the two the same subject and relation?"""
    return neighbour.triple[:2] == candidate.triple[:2]


def _states_same(candidate: Candidate, neighbour: Neighbour) -> bool:
    return _is_about(candidate, neighbour) and _value(neighbour) == _value(candidate)


def _value(fact: Candidate | Neighbour) -> str:
    return fact.object_key or fact.canonical_key


def _start(neighbour: Neighbour) -> datetime:
    return neighbour.memory.valid_from


def _confirmed(neighbour: Neighbour) -> datetime:
    return neighbour.confirmed_at or neighbour.memory.valid_from
