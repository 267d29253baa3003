"""Find clusters of memories that say one thing: near pairs first, then groups in which every pair is similar.

Pure. There may be thousands of rows, so the cosines are computed by blocks. The ladder decides what is in a group.
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
    """Memories that say one thing. ``text_of`` is the one whose text stands, ``similarity`` the lowest cosine inside.

    ``needs_model``: that text loses much of the words of the others.
    """

    members: tuple[UUID, ...]
    text_of: UUID
    similarity: float
    needs_model: bool


def near_pairs(vectors: NDArray[np.float32], *, least: float, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the places (i < j) of rows whose cosine is at least ``least``, for each row its ``limit`` nearest.

    Shape of ``vectors``: (n, dimensions), unit rows. A pair may come twice.
    """
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        for place, row in enumerate(cosines, start=start):
            # No row is near itself.
            row[place] = -1.0
            near = np.flatnonzero(row >= least)
            if len(near) > limit:
                # A partition instead of a sort: the order of the nearest does not matter.
                near = near[np.argpartition(-row[near], limit)[:limit]]
            for other in near.tolist():
                yield min(place, other), max(place, other)


def components(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the connected components of the graph of ``pairs``, each in order (union-find with path halving)."""
    parent: dict[int, int] = {}

    def root(place: int) -> int:
        while parent.setdefault(place, place) != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for first, second in pairs:
        parent[root(first)] = root(second)
    members: dict[int, list[int]] = defaultdict(list)
    for place in sorted(parent):
        members[root(place)].append(place)
    return sorted(members.values())


def clusters(memories: Sequence[Neighbour], *, thresholds: Thresholds, pairs: Pairs) -> tuple[Cluster, ...]:
    """Return the clusters among ``memories``, current rows of one scope, of whatever size.

    Every two members are similar and without conflict, so they may be merged in any order.
    """
    texts = {n.memory.id: n.memory.text for n in memories}
    mergeable: dict[frozenset[UUID], float] = {}
    for pair, cosine in pairs.items():
        # The cosine first: it rules out most pairs, and reading two texts takes far longer.
        if cosine < thresholds.merge:
            continue
        first, second = sorted(pair)
        if conflicting(texts[first], texts[second]) is None:
            mergeable[pair] = cosine
    # The ladder's limit is for one operation; how a large cluster is merged is the caller's to say.
    unlimited = replace(thresholds, merge_most=max(len(memories), 2))
    groups = ladder.cohesive(memories, thresholds=unlimited, pairs=mergeable)
    # By their oldest members, so that plans over the same rows are equal.
    result = [_cluster(group, mergeable) for group in groups]
    return tuple(sorted(result, key=lambda cluster: cluster.members[0]))


def _cluster(group: Sequence[Neighbour], pairs: Pairs) -> Cluster:
    text = ladder.merge(group).memory.text
    members = tuple(sorted(n.memory.id for n in group))
    cosines = [pairs[frozenset(pair)] for pair in combinations(members, 2)]
    return Cluster(
        members=members,
        # Of several with this text the oldest, which is the same in every plan.
        text_of=min(n.memory.id for n in group if n.memory.text == text),
        similarity=round(min(cosines), 4),
        needs_model=ladder.needs_model([n.memory.text for n in group]),
    )
