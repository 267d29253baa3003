"""The ladder: what the one write path does with a statement, given its neighbours. Pure: it reads and writes
nothing.

Steps, in this order: the same fact or text again, a fact that ends another, the same meaning, merge, link,
insert. The caller fetches the neighbours: the rows of the same canonical key, every row (closed ones too) of the
same subject with the same or an opposing relation, and the nearest by cosine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from memory_app.memories.mistakes import is_mistake, since_mistake, taking_back
from memory_app.memories.succession import (
    claimed_by,
    interval_of,
    is_open_at,
    is_said_after_end,
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
    visible = [n for n in neighbours if _is_visible(n, candidate)]
    # Every step takes the first row that fits, so the order of the rows decides.
    visible.sort(key=_nearest_first)
    live = [n for n in visible if n.memory.kind == candidate.statement.kind]
    mistakes = [n for n in live if is_mistake(candidate, n)]
    if mistakes:
        return _correction(candidate, live, mistakes, thresholds)
    # Time goes before wording: "I live in Rome" after a stay in Paris repeats an old text, and still ends that stay.
    decision = placed_in_time(candidate, live, thresholds) or _same_text(candidate, live)
    if decision is not None:
        return decision
    if not is_open_at(candidate.valid_until, candidate.now):
        # What is over by now is history of its own: it neither joins nor rewords what is true today.
        return InsertClosed((claimed_by(candidate),))
    if deduplicate:
        current = [n for n in live if _is_current(n, candidate.now)]
        decision = _same_meaning(candidate, current, thresholds) or _merged(
            candidate, current, thresholds=thresholds, pairs=pairs
        )
    return decision or _linked(candidate, visible, thresholds) or Insert()


def _correction(
    candidate: Candidate, live: Sequence[Neighbour], mistakes: Sequence[Neighbour], thresholds: Thresholds
) -> Decision:
    """What the candidate does without the claims that it takes back, and their end at their very beginning."""
    others = [n for n in live if n not in mistakes]
    candidate = since_mistake(candidate, mistakes)
    decision = placed_in_time(candidate, others, thresholds) or _same_text(candidate, others) or Insert()
    return taking_back(decision, candidate, mistakes)


def cohesive(
    memories: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs
) -> tuple[tuple[Neighbour, ...], ...]:
    """Groups of two and more among ``memories`` that may be merged, nearest first; no memory is in two of them.

    The caller hands over current rows of one scope.
    """
    remaining = {n.memory.id: n for n in memories if n.memory.retired_at is None}
    groups = []
    # The ids decide between equal cosines, so that a dry run and the run form the same groups.
    for pair, cosine in sorted(pairs.items(), key=lambda item: (-item[1], sorted(item[0]))):
        is_near = cosine >= thresholds.merge and len(pair) == 2
        if not is_near or not pair <= remaining.keys():
            continue
        group = _group_of(pair, remaining, thresholds=thresholds, pairs=pairs)
        if len(group) > 1:
            groups.append(tuple(group))
            remaining = {id: n for id, n in remaining.items() if n not in group}
    return tuple(groups)


def _group_of(
    pair: frozenset[UUID],
    remaining: Mapping[UUID, Neighbour],
    *,
    thresholds: Thresholds,
    pairs: Pairs,
) -> list[Neighbour]:
    """The first of ``pair`` with what may be merged with it: the other first, then the nearest to the first."""
    seed, other = (remaining[id] for id in sorted(pair))
    nearest = sorted(
        remaining.values(), key=lambda n: -pairs.get(frozenset({seed.memory.id, n.memory.id}), 0)
    )
    group = [seed]
    for neighbour in [other, *nearest]:
        has_room = len(group) < thresholds.merge_most
        if has_room and _fits(neighbour, group, thresholds=thresholds, pairs=pairs):
            group.append(neighbour)
    return group


# --- who counts ---------------------------------------------------------------------------------------------


def _is_visible(neighbour: Neighbour, candidate: Candidate) -> bool:
    memory = neighbour.memory
    # Rows that were ended count, or a late older fact would find no place before them; merged and evicted ones do not.
    is_history = memory.retired_reason in HISTORICAL and memory.valid_until is not None
    return memory.session == candidate.session and (memory.retired_at is None or is_history)


def _is_current(neighbour: Neighbour, now: datetime) -> bool:
    return neighbour.memory.retired_at is None and is_open_at(neighbour.memory.valid_until, now)


def _nearest_first(neighbour: Neighbour) -> tuple[float, float, UUID]:
    # The id comes last, so that one input always gives one decision.
    return (-neighbour.similarity, -neighbour.memory.valid_from.timestamp(), neighbour.memory.id)


# --- the same again -----------------------------------------------------------------------------------------


def _same_text(candidate: Candidate, live: Sequence[Neighbour]) -> Decision | None:
    twins = [n for n in live if _is_twin(candidate, n)]
    if not twins:
        return None
    # A closed row may have the same text; the open one is what is said again.
    current = [n for n in twins if n.memory.valid_until is None]
    return _again(candidate, (current or twins)[0])


def _is_twin(candidate: Candidate, neighbour: Neighbour) -> bool:
    if neighbour.canonical_key != candidate.canonical_key:
        return False
    if not overlaps(interval_of(neighbour), claimed_by(candidate)):
        return False
    if is_said_after_end(candidate, neighbour):
        return False
    # A statement about the past is not merged, so it cannot give a row the fact that it lacks.
    is_current = is_open_at(candidate.valid_until, candidate.now)
    return is_current or not _lacks_fact(candidate, neighbour)


def _again(candidate: Candidate, neighbour: Neighbour) -> Reinforce | Merge:
    """Reinforces, unless the new statement says which fact it is and the stored row does not."""
    if _lacks_fact(candidate, neighbour):
        return Merge((neighbour.memory.id,), merge([neighbour], candidate))
    return reinforced(candidate, neighbour)


def _lacks_fact(candidate: Candidate, neighbour: Neighbour) -> bool:
    # The relation alone is not all: a row may have been stored before the agent declared it single-valued.
    lacks_order = candidate.single_valued and not neighbour.single_valued
    lacks_relation = candidate.relation is not None and neighbour.memory.relation is None
    return lacks_order or lacks_relation


# --- the same in other words --------------------------------------------------------------------------------


def _is_compatible(fact: Candidate | Neighbour, other: Neighbour) -> bool:
    """Is what both say about subject, relation and object the same? What only one of them states does not count.

    Two rows of a single-valued relation are never one: their order in time was decided before.
    """
    if fact.single_valued and other.single_valued:
        return False
    return all(map(_agree, fact.triple, other.triple))


def _agree(first: str | None, second: str | None) -> bool:
    return first == second or None in (first, second)


def _same_meaning(
    candidate: Candidate, current: Sequence[Neighbour], thresholds: Thresholds
) -> Decision | None:
    text = candidate.statement.text
    for neighbour in current:
        if neighbour.similarity < min(thresholds.same, thresholds.fact):
            # The nearest come first: nothing after this one is near enough.
            return None
        if not _means_the_same(candidate, neighbour, thresholds):
            continue
        says_more = len(text) > len(neighbour.memory.text) and neighbour.similarity < thresholds.same
        # Of two sources that are trusted differently the words must not be mixed.
        if says_more and neighbour.trust == candidate.trust:
            return Merge((neighbour.memory.id,), merge([neighbour], candidate))
        return _again(candidate, neighbour)
    return None


def _means_the_same(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    """Either one fact by its parts, where a low cosine will do, or nearly the same words."""
    is_restated = all(candidate.triple) and candidate.triple == neighbour.triple
    is_same_fact = is_restated and neighbour.similarity >= thresholds.fact
    is_near = neighbour.similarity >= thresholds.same
    if not is_same_fact and not (is_near and _is_compatible(candidate, neighbour)):
        return False
    reason = conflicting(candidate.statement.text, neighbour.memory.text)
    # "is very fond of olives" and "loves olives" exchange words; the parts of the fact say that they mean the same.
    return reason is None or (is_same_fact and reason == SUBSTITUTION)


def _merged(
    candidate: Candidate, current: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs
) -> Decision | None:
    group: list[Neighbour] = []
    for neighbour in current:
        # The new statement is one of those that may be merged, hence one fewer from the store.
        has_room = len(group) + 1 < thresholds.merge_most
        if (
            has_room
            and _is_mergeable(candidate, neighbour, thresholds)
            and _fits(neighbour, group, thresholds=thresholds, pairs=pairs)
        ):
            group.append(neighbour)
    if not group:
        return None
    return Merge(tuple(n.memory.id for n in group), merge(group, candidate))


def _is_mergeable(candidate: Candidate, neighbour: Neighbour, thresholds: Thresholds) -> bool:
    # A merged row is as near as the farthest of its parts, or it would drift with each merge.
    cohesion = neighbour.similarity if neighbour.cohesion is None else neighbour.cohesion
    # The texts are compared last, since reading them takes far longer than all else.
    return (
        min(cohesion, neighbour.similarity) >= thresholds.merge
        and neighbour.trust == candidate.trust
        and _is_compatible(candidate, neighbour)
        and conflicting(candidate.statement.text, neighbour.memory.text) is None
    )


def _fits(neighbour: Neighbour, group: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs) -> bool:
    """Whether it may be merged with each of ``group``."""
    # With each, not with the nearest: a chain of likenesses would snowball from one topic to the next.
    return all(_may_unite(neighbour, other, thresholds=thresholds, pairs=pairs) for other in group)


def _may_unite(first: Neighbour, second: Neighbour, *, thresholds: Thresholds, pairs: Pairs) -> bool:
    # A pair without a cosine was not compared (vectors of two models), which must not count as alike.
    cosine = pairs.get(frozenset({first.memory.id, second.memory.id}), 0.0)
    place = (first.memory.kind, first.memory.session, first.trust)
    if place != (second.memory.kind, second.memory.session, second.trust):
        return False
    return (
        cosine >= thresholds.merge
        and _is_compatible(first, second)
        and conflicting(first.memory.text, second.memory.text) is None
    )


def _linked(
    candidate: Candidate, visible: Sequence[Neighbour], thresholds: Thresholds
) -> InsertLinked | None:
    current = [n for n in visible if _is_current(n, candidate.now)]
    links = tuple((n.memory.id, n.similarity) for n in current if n.similarity >= thresholds.link)
    return InsertLinked(links) if links else None
