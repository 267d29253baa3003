"""When a statement holds: half-open intervals, and where a new one finds its place among its rivals.

Rivals cannot be true together (two homes of one person, liking and disliking one thing). Of two claims the
one that begins later wins from its beginning on, so the order of arrival does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``start`` to before ``until``; None is open, so still true."""

    start: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A stored rival.

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


def contains(interval: Interval, at: datetime) -> bool:
    """Is ``at`` inside? The start is, the end is not."""
    return interval.start <= at and (interval.until is None or at < interval.until)


def overlaps(one: Interval, other: Interval) -> bool:
    """Have the two an instant in common? Intervals that touch have none."""
    first, second = sorted((one, other), key=lambda interval: interval.start)
    reaches = first.until is None or second.start < first.until
    return reaches and _is_filled(first) and _is_filled(second)


def subtracted(interval: Interval, blocks: Iterable[Interval]) -> tuple[Interval, ...]:
    """What of ``interval`` lies in none of ``blocks``, in order; empty pieces are left out."""
    pieces = [interval] if _is_filled(interval) else []
    for block in filter(_is_filled, blocks):
        pieces = [piece for whole in pieces for piece in _without(whole, block)]
    return tuple(pieces)


def insert_fact(held: Sequence[Held], new: Interval) -> Placement:
    """Place ``new`` among its rivals ``held``, which do not overlap each other; nor do they afterwards.

    A rival that began earlier ends where the new one begins, and resumes where a new one with an end of its
    own is over. Where a rival began or was confirmed later, the new one gives way.
    """
    blocks = [block for rival in held for block in _blocks(rival, new.start)]
    holds = subtracted(new, blocks)
    if not holds or holds[0].start != new.start:
        return Placement(())
    movable = (rival for rival in held if not rival.immovable)
    cuts = (_cut(rival, holds) for rival in movable)
    return Placement(holds, tuple(cut for cut in cuts if cut is not None))


def _blocks(rival: Held, start: datetime) -> tuple[Interval, ...]:
    interval = rival.interval
    if rival.immovable:
        return (interval,)
    if rival.yielding or rival.confirmed_at <= start:
        return ()
    first = interval.start if interval.start > start else rival.confirmed_at
    return (Interval(first, interval.until),)


def _cut(rival: Held, holds: Sequence[Interval]) -> Cut | None:
    rest = subtracted(rival.interval, holds)
    if rest == (rival.interval,) or not _is_filled(rival.interval):
        return None
    if rest and rest[0].start == rival.interval.start:
        return Cut(rival.id, rest[0].until or rest[0].start, rest[1:])
    return Cut(rival.id, rival.interval.start, rest)


def _without(whole: Interval, block: Interval) -> Iterable[Interval]:
    if block.start > whole.start:
        yield Interval(whole.start, _earlier(whole.until, block.start))
    if block.until is not None:
        rest = Interval(max(whole.start, block.until), whole.until)
        if _is_filled(rest):
            yield rest


def _is_filled(interval: Interval) -> bool:
    return interval.until is None or interval.start < interval.until


def _earlier(until: datetime | None, at: datetime) -> datetime:
    return at if until is None else min(until, at)
