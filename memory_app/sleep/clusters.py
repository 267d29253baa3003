"""Which of many memories say one thing: near pairs over all of them, then groups in which every pair is alike.

Pure, but over thousands of rows, so the cosines are computed by blocks. What is in a group is the ladder's to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_app.memories import ladder
from memory_app.memories.guards import conflicting
from memory_app.memories.ladder import Neighbour, Pairs, Thresholds

BLOCK = 512
"""Rows compared with all others at once: with 100,000 others that is 200 MB of cosines."""

PIECE = 300
"""Most memories of one component that are looked at together; the rest of a huge one waits for the next run."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Memories that say one thing; ``text_of`` is the one whose words stand, ``similarity`` the lowest cosine inside.

    ``needs_model``: the words that stand lose much of the others.
    """

    members: tuple[UUID, ...]
    text_of: UUID
    similarity: float
    needs_model: bool


def near_pairs(vectors: NDArray[np.float32], *, least: float, most: int) -> Iterator[tuple[int, int]]:
    """Places (i < j) of rows whose cosine is at least ``least``, for each row its ``most`` nearest.

    Shape of ``vectors``: (n, dimensions), unit rows. A pair may come twice.
    """
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        for place, row in enumerate(cosines, start=start):
            row[place] = -1.0
            near = np.flatnonzero(row >= least)
            if len(near) > most:
                near = near[np.argpartition(-row[near], most)[:most]]
            yield from ((min(place, other), max(place, other)) for other in near.tolist())


def components(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Sets of places that hang together by pairs, each in order."""
    root: dict[int, int] = {}

    def find(place: int) -> int:
        while root.setdefault(place, place) != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    for one, other in pairs:
        root[find(one)] = find(other)
    found: dict[int, list[int]] = defaultdict(list)
    for place in sorted(root):
        found[find(place)].append(place)
    return sorted(found.values())


def clusters(memories: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs) -> tuple[Cluster, ...]:
    """What of ``memories`` (current rows of one scope) may become one row each, however many they are.

    Every two members are alike and without conflict, so they may be united in any order.
    """
    said = {n.memory.id: n.memory.text for n in memories}
    alike = {
        pair: cosine
        for pair, cosine in pairs.items()
        if cosine >= thresholds.merge and conflicting(*(said[id] for id in sorted(pair))) is None
    }
    unlimited = replace(thresholds, merge_most=max(len(memories), 2))
    groups = ladder.cohesive(memories, thresholds=unlimited, pairs=alike)
    return tuple(sorted((_cluster(group, alike) for group in groups), key=lambda cluster: cluster.members[0]))


def _cluster(group: Sequence[Neighbour], alike: Pairs) -> Cluster:
    text = ladder.merge(group).memory.text
    members = tuple(sorted(n.memory.id for n in group))
    return Cluster(
        members,
        text_of=min(n.memory.id for n in group if n.memory.text == text),
        similarity=round(min(alike[frozenset(pair)] for pair in combinations(members, 2)), 4),
        needs_model=ladder.needs_model([n.memory.text for n in group]),
    )
