"""Take back what was said by mistake: the claim that a statement corrects was never true.

"I meant Apex, not Acme" is no change of job. The row of the mistake holds for no time at all, as after a correction
by hand, and the right claim holds since the wrong one was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_app.memories.decisions import (
    Candidate,
    Decision,
    Insert,
    InsertClosed,
    InsertLinked,
    Merge,
    Neighbour,
    Reinforce,
    Supersede,
)
from memory_app.memories.intervals import Cut
from memory_app.memories.succession import claimed_by


def is_mistake(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Whether the candidate says that the claim of the row, which still stands, was never true."""
    if candidate.corrected_key is None or candidate.corrected_key == candidate.object_key:
        return False
    mistake = (candidate.subject_key, candidate.relation, candidate.corrected_key)
    is_standing = neighbour.memory.valid_until is None and neighbour.memory.retired_at is None
    # Whoever is trusted less, such as an assistant, corrects nobody.
    return is_standing and neighbour.triple == mistake and neighbour.trust <= candidate.trust


def since_mistake(candidate: Candidate, mistakes: Sequence[Neighbour]) -> Candidate:
    """The candidate with the beginning of what it corrects, unless it says since when it holds."""
    names_beginning = candidate.valid_from < candidate.confirmed_at
    if names_beginning:
        return candidate
    start = min(n.memory.valid_from for n in mistakes)
    said_at = candidate.said_at or candidate.valid_from
    return replace(candidate, valid_from=min(start, candidate.valid_from), said_at=said_at)


def taking_back(decision: Decision, candidate: Candidate, mistakes: Sequence[Neighbour]) -> Decision:
    """``decision`` with the end of ``mistakes``, each where it began."""
    cuts = tuple(Cut(n.memory.id, n.memory.valid_from) for n in mistakes)
    match decision:
        case Reinforce():
            return replace(decision, cuts=(*cuts, *decision.cuts))
        case Supersede() | InsertClosed():
            return replace(decision, cuts=(*cuts, *decision.cuts))
        case Insert():
            return Supersede(decision.holds or (claimed_by(candidate),), cuts)
        case InsertLinked() | Merge():
            # Somebody who is trusted more says otherwise, or the text gets its fact only now: the claim stays.
            return decision
