"""What goes first when a scope holds too much, and what never goes."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memory_app.memories.fading import MemoryStrength, faded, hubs, weakest


def held(
    n: int,
    strength: float,
    *,
    degree: int = 0,
    pinned: bool = False,
    expires: bool = True,
    vital: bool = False,
) -> MemoryStrength:
    return MemoryStrength(UUID(int=n), strength, degree, pinned, expires, vital)


def ids(*numbers: int) -> tuple[UUID, ...]:
    return tuple(UUID(int=n) for n in numbers)


def test_the_weakest_go_first() -> None:
    assert weakest([held(1, 0.5), held(2, 0.1), held(3, 0.3)], limit=2, spared=frozenset()) == ids(2, 3)


def test_pinned_memories_and_hubs_never_go() -> None:
    own = [held(1, 0.0, pinned=True), held(2, 0.0, degree=12), held(3, 0.9)]
    kept = hubs(own, degree=10, capacity=10)
    assert kept == frozenset(ids(2))
    assert weakest(own, limit=3, spared=kept) == ids(3)


def test_where_everything_is_linked_only_the_best_linked_tenth_are_hubs() -> None:
    own = [held(n, 0.5, degree=20 + n) for n in range(1, 101)]
    assert hubs(own, degree=10, capacity=100) == frozenset(ids(*range(91, 101)))


def test_what_never_fades_does_not_expire() -> None:
    own = [held(1, 0.01), held(2, 0.01, expires=False), held(3, 0.01, pinned=True), held(4, 0.5)]
    assert faded(own, threshold=0.05, spared=frozenset()) == ids(1)


def test_what_is_vital_neither_expires_nor_is_evicted() -> None:
    own = [held(1, 0.01, vital=True), held(2, 0.02)]
    assert faded(own, threshold=0.05, spared=frozenset()) == ids(2)
    assert weakest(own, limit=2, spared=frozenset()) == ids(2)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.booleans()), max_size=60),
    st.integers(0, 80),
)
def test_no_more_go_than_asked_for_and_none_that_is_spared(
    drawn: list[tuple[float, int, bool]], most: int
) -> None:
    own = [
        held(n, strength, degree=degree, pinned=pinned) for n, (strength, degree, pinned) in enumerate(drawn)
    ]
    kept = hubs(own, degree=10, capacity=40)
    gone = weakest(own, limit=most, spared=kept)
    assert len(set(gone)) == len(gone) <= most
    assert not set(gone) & kept
    assert not any(m.pinned for m in own if m.id in set(gone))
    assert len(gone) == min(most, sum(not m.pinned and m.id not in kept for m in own))
