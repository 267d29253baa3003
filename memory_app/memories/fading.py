"""Choose the memories to retire: those that have faded, and the weakest where there are too many. Pure.

Pinned and vital memories are never chosen, nor are hubs, which have many links. In a scope where everything is linked
with everything only the best linked tenth are hubs, or nothing could ever be retired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

HUB_SHARE = 0.1
"""Largest share of a scope's capacity that counts as hubs."""


@dataclass(frozen=True, slots=True)
class MemoryStrength:
    """A current memory as retirement sees it: ``strength`` 0–1, ``degree`` (its links).

    ``expires``: it is retired when it has faded. ``vital``: it is not even evicted for want of room.
    """

    id: UUID
    strength: float
    degree: int
    pinned: bool
    expires: bool = True
    vital: bool = False


def hubs(memories: Sequence[MemoryStrength], *, degree: int, capacity: int) -> frozenset[UUID]:
    """Ids of the best linked memories with at least ``degree`` links, at most `HUB_SHARE` of ``capacity``."""
    linked = [memory for memory in memories if memory.degree >= degree]
    # The best linked first; of equals the stronger, then the id, so that the choice is the same each time.
    linked.sort(key=lambda memory: (-memory.degree, -memory.strength, memory.id))
    # A scope that may hold fewer than ten still has one hub.
    limit = max(int(capacity * HUB_SHARE), 1)
    return frozenset(memory.id for memory in linked[:limit])


def faded(
    memories: Sequence[MemoryStrength], *, threshold: float, spared: frozenset[UUID]
) -> tuple[UUID, ...]:
    """Ids of the memories that are no stronger than ``threshold``, the weakest first."""
    # A fact may be weak (low importance, no use, long ago) and still must not expire by age.
    fading = [memory for memory in _movable(memories, spared) if memory.expires]
    return tuple(memory.id for memory in fading if memory.strength <= threshold)


def weakest(memories: Sequence[MemoryStrength], *, limit: int, spared: frozenset[UUID]) -> tuple[UUID, ...]:
    """Ids of the ``limit`` weakest, pinned, vital and ``spared`` ones excepted; fewer when there are no more."""
    return tuple(memory.id for memory in _movable(memories, spared)[: max(limit, 0)])


def _movable(memories: Sequence[MemoryStrength], spared: frozenset[UUID]) -> list[MemoryStrength]:
    movable = [
        memory for memory in memories if not memory.pinned and not memory.vital and memory.id not in spared
    ]
    # The id decides between equals, so that a dry run and the run choose the same.
    return sorted(movable, key=lambda memory: (memory.strength, memory.id))
