"""Near pairs equal a plain comparison of all, and a cluster is alike in every pair."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_app.memories.guards import conflicting
from memory_app.memories.ladder import Neighbour, Thresholds
from memory_app.providers.embedders.embedder import Vectors
from memory_app.records.records import Memory
from memory_app.sleep import clusters as found
from memory_app.sleep.clusters import clusters, components, near_pairs

AT = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("Mira likes tea", "Mira does not like tea", "Mira ran 5 km", "Mira ran 7 km", "Mira sings")


def unit(count: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    unit_rows: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit_rows


def memory(n: int, said: str) -> Neighbour:
    return Neighbour(Memory("fact", said, id=UUID(int=n + 1), created_at=AT, valid_from=AT), f"{n}")


@given(count=st.integers(0, 40), seed=st.integers(0, 10_000), least=st.floats(-0.5, 0.95))
def test_near_pairs_are_those_of_a_plain_comparison(count: int, seed: int, least: float) -> None:
    rows = unit(count, seed) if count else np.zeros((0, 8), np.float32)
    plain = {(i, j) for i, j in combinations(range(count), 2) if float(rows[i] @ rows[j]) >= least + 1e-6}
    near = set(near_pairs(rows, least=least, limit=count + 1))
    assert plain <= near
    assert all(i < j and float(rows[i] @ rows[j]) >= least - 1e-6 for i, j in near)


def test_a_row_is_paired_only_with_its_nearest_also_across_blocks() -> None:
    rows = unit(found.BLOCK + 30, seed=1)
    near = set(near_pairs(rows, least=-1.0, limit=2))
    assert len(near) <= 2 * len(rows)
    nearest = np.argsort(-(rows @ rows.T), axis=1)[:, 1]
    assert all((min(i, int(j)), max(i, int(j))) in near for i, j in enumerate(nearest))


def test_what_hangs_together_is_one_component() -> None:
    assert components([(1, 2), (2, 5), (7, 8), (8, 7)]) == [[1, 2, 5], [7, 8]]


@given(
    said=st.lists(st.sampled_from(WORDS), min_size=2, max_size=9),
    cosines=st.lists(st.floats(0.5, 1.0), min_size=36, max_size=36),
)
def test_a_cluster_is_alike_and_free_of_conflict_in_every_pair(said: list[str], cosines: list[float]) -> None:
    memories = [memory(n, f"{words}{' indeed' * n}.") for n, words in enumerate(said)]
    text_of = {n.memory.id: n.memory.text for n in memories}
    pairs = {frozenset(pair): cosine for pair, cosine in zip(combinations(text_of, 2), cosines, strict=False)}
    made = clusters(memories, thresholds=Thresholds(), pairs=pairs)
    members = [id for cluster in made for id in cluster.members]
    assert len(members) == len(set(members)), "nothing is in two clusters"
    for cluster in made:
        for one, other in combinations(cluster.members, 2):
            assert pairs[frozenset((one, other))] >= 0.85
            assert conflicting(text_of[one], text_of[other]) is None
        longest = max(len(text_of[id]) for id in cluster.members)
        assert len(text_of[cluster.text_of]) == longest
