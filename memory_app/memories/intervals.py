"""Compute with half-open intervals in which statements hold, and place a new one among its rivals.

Rivals cannot be true together (two homes of one person, liking and disliking one thing). Of two claims the
one that begins later wins from its beginning on, so the order of arrival does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``start`` to before ``until``; None is open, so still true."""

    start: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rival:
    """A stored row that cannot be true together with the new claim.

    ``confirmed_at`` is the latest instant from which somebody said that it holds: its start, or later when it
    was said again, or earlier when the row resumes after an interruption. ``immovable`` never gives way,
    ``yielding`` always does (a source trusted more, or less, than that of the new claim).
    """

    id: UUID
    interval: Interval
    confirmed_at: datetime
    immovable: bool = False
    yielding: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """The row ``target`` ends at ``at``. For each of ``resumes`` a copy of it is stored, with its counters and
    evidence, which holds in that interval."""

    target: UUID
    at: datetime
    resumes: tuple[Interval, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the new claim holds (in order, empty when an immovable rival covers it), and what that ends."""

    holds: tuple[Interval, ...]
    cuts: tuple[Cut, ...] = ()


_NEVER = datetime.max.replace(tzinfo=UTC)
"""Later than every instant that is stored; for comparing only."""


def contains(interval: Interval, at: datetime) -> bool:
    """Whether ``at`` is inside. The start is, the end is not."""
    return interval.start <= at < _end(interval)


def overlaps(first: Interval, second: Interval) -> bool:
    """Whether the two have an instant in common. Intervals that touch have none."""
    if not (_is_filled(first) and _is_filled(second)):
        return False
    earlier, later = sorted((first, second), key=lambda interval: interval.start)
    # Strictly before: where one ends, the next begins.
    return later.start < _end(earlier)


def subtracted(interval: Interval, blocks: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return what of ``interval`` lies in none of ``blocks``, in order; empty pieces are left out."""
    pieces = [interval]
    # A block without length would split a piece in two that touch.
    for block in filter(_is_filled, blocks):
        pieces = [piece for whole in pieces for piece in _without(whole, block)]
    return tuple(filter(_is_filled, pieces))


def insert_fact(rivals: Sequence[Rival], new: Interval) -> Placement:
    """Place ``new`` among ``rivals``, which do not overlap each other; nor do they afterwards.

    A rival that began earlier ends where the new one begins, and resumes where a new one with an end of its
    own is over. Where a rival began or was confirmed later, the new one gives way.
    """
    blocks = (_block(rival, new.start) for rival in rivals)
    holds = subtracted(new, filter(None, blocks))
    # A claim is never stored with a later beginning than its own.
    if not holds or holds[0].start != new.start:
        return Placement(())
    cuts = (_cut(rival, holds) for rival in rivals)
    return Placement(holds, tuple(filter(None, cuts)))


def _block(rival: Rival, start: datetime) -> Interval | None:
    """The time that a claim which begins at ``start`` cannot take from ``rival``."""
    interval = rival.interval
    if rival.immovable:
        return interval
    if rival.yielding or rival.confirmed_at <= start:
        return None
    if interval.start > start:
        return interval
    # Up to the confirmation nobody said that it still held, so the new claim may have that time.
    return Interval(rival.confirmed_at, interval.until)


def _cut(rival: Rival, holds: Sequence[Interval]) -> Cut | None:
    """What ends ``rival`` and where it resumes; None when ``holds`` takes nothing of it."""
    interval = rival.interval
    rest = subtracted(interval, holds)
    if rival.immovable or rest == (interval,) or not _is_filled(interval):
        return None
    if not rest or rest[0].start != interval.start:
        # Nothing remains of its beginning: the row ends where it began, and what remains is stored as copies.
        return Cut(rival.id, interval.start, resumes=rest)
    # A first piece without an end is the whole interval, which was returned above.
    return Cut(rival.id, rest[0].until or rest[0].start, resumes=rest[1:])


def _without(whole: Interval, block: Interval) -> Iterable[Interval]:
    if block.start > whole.start:
        is_touched = block.start < _end(whole)
        yield Interval(whole.start, block.start if is_touched else whole.until)
    # An open block leaves nothing behind it.
    if block.until is not None:
        rest = Interval(max(whole.start, block.until), whole.until)
        if _is_filled(rest):
            yield rest


def _is_filled(interval: Interval) -> bool:
    return interval.start < _end(interval)


def _end(interval: Interval) -> datetime:
    return interval.until or _NEVER
