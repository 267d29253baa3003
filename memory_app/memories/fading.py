"""Which memories go: what has faded, and what is weakest where there are too many. Pure.

Pinned ones never go, nor do hubs, which hold others together. A hub has many links; in a scope where everything is
linked with everything only the best linked tenth counts, or nothing could ever go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

HUB_SHARE = 0.1
"""Most of what a scope may hold that counts as hubs."""


@dataclass(frozen=True, slots=True)
class Held:
    """A current memory as capacity sees it. ``strength`` 0–1; ``degree`` its links; ``fades``: its kind does."""

    id: UUID
    strength: float
    degree: int
    pinned: bool
    fades: bool = True


def hubs(held: Sequence[Held], *, degree: int, capacity: int) -> frozenset[UUID]:
    """Ids of the best linked memories with at least ``degree`` links, at most `HUB_SHARE` of ``capacity``."""
    linked = sorted((m for m in held if m.degree >= degree), key=lambda m: (-m.degree, -m.strength, m.id))
    return frozenset(m.id for m in linked[: max(int(capacity * HUB_SHARE), 1)])


def faded(held: Sequence[Held], *, threshold: float, spared: frozenset[UUID]) -> tuple[UUID, ...]:
    """Ids of what is no stronger than ``threshold``, the weakest first."""
    gone = [m for m in held if m.fades and not m.pinned and m.id not in spared and m.strength <= threshold]
    return tuple(m.id for m in sorted(gone, key=lambda m: (m.strength, m.id)))


def weakest(held: Sequence[Held], *, most: int, spared: frozenset[UUID]) -> tuple[UUID, ...]:
    """Ids of the ``most`` weakest, pinned and ``spared`` ones excepted; fewer when there are no more."""
    movable = [m for m in held if not m.pinned and m.id not in spared]
    return tuple(m.id for m in sorted(movable, key=lambda m: (m.strength, m.id))[: max(most, 0)])
