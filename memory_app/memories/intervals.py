"""Compute with half-open intervals in which statements hold, and place a new one among its rivals.

Rivals cannot be true together (two homes of one person, liking and disliking one thing). The claim that somebody
vouched for last is the one that still holds, so the order of arrival does not matter. A claim may reach back over the
time in which another was said ("I moved last month"): for that time both stay, since both were said of it.
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

    ``confirmed_at`` is the latest instant at which somebody said that it holds, ``first_confirmed_at`` the earliest
    (None: when it begins); a row that resumes after an interruption was confirmed before it begins. ``immovable`` never
    gives way, ``yielding`` always does (a source trusted more, or less, than that of the new claim).
    """

    id: UUID
    interval: Interval
    confirmed_at: datetime
    immovable: bool = False
    yielding: bool = False
    first_confirmed_at: datetime | None = None

    @property
    def first_confirmed(self) -> datetime:
        return min(self.first_confirmed_at or self.interval.start, self.confirmed_at)


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


def insert_fact(rivals: Sequence[Rival], new: Interval, *, confirmed_at: datetime | None = None) -> Placement:
    """Place ``new`` among ``rivals``. Of two open claims the one that was confirmed later is open afterwards.

    ``confirmed_at`` is when somebody said that ``new`` holds (None: when it begins). A rival that was confirmed before
    ends where the new one begins, or, where that reaches back behind its confirmation, when the new one was said; it
    resumes where a new one with an end of its own is over. To a rival that was confirmed later the new one gives way.
    """
    confirmed = confirmed_at or new.start
    blocks = (_block(rival, confirmed) for rival in rivals)
    holds = subtracted(new, filter(None, blocks))
    # A claim is never stored with a later beginning than its own.
    if not holds or holds[0].start != new.start:
        return Placement(())
    cuts = (_cut(rival, holds, confirmed) for rival in rivals)
    return Placement(holds, tuple(filter(None, cuts)))


def _block(rival: Rival, confirmed: datetime) -> Interval | None:
    """The time that a claim which was said at ``confirmed`` cannot take from ``rival``."""
    interval = rival.interval
    if rival.immovable:
        return interval
    if rival.yielding or rival.confirmed_at <= confirmed:
        return None
    if rival.first_confirmed <= confirmed:
        # Up to its next confirmation nobody said that it still held, so the new claim may have that time.
        return Interval(rival.confirmed_at, interval.until)
    if interval.start > confirmed:
        return interval
    # It reaches back over the moment at which the new claim was said: that was true until somebody said otherwise.
    return Interval(rival.first_confirmed, interval.until)


def _cut(rival: Rival, holds: Sequence[Interval], confirmed: datetime) -> Cut | None:
    """What ends ``rival`` and where it resumes; None when ``holds`` takes nothing of it."""
    interval = rival.interval
    rest = subtracted(interval, _lost(rival, holds, confirmed))
    if rival.immovable or rest == (interval,) or not _is_filled(interval):
        return None
    if not rest or rest[0].start != interval.start:
        # Nothing remains of its beginning: the row ends where it began, and what remains is stored as copies.
        return Cut(rival.id, interval.start, resumes=rest)
    # A first piece without an end is the whole interval, which was returned above.
    return Cut(rival.id, rest[0].until or rest[0].start, resumes=rest[1:])


def _lost(rival: Rival, holds: Sequence[Interval], confirmed: datetime) -> Iterable[Interval]:
    """The time of ``holds`` that ``rival`` loses to it."""
    start = holds[0].start
    if rival.yielding:
        return holds
    if rival.first_confirmed > confirmed:
        # Said later, so it knows better; where the two overlap both were said.
        return ()
    last_before = rival.confirmed_at if rival.confirmed_at <= confirmed else rival.first_confirmed
    # Whoever said it at that moment was not wrong: it ends no earlier than somebody says otherwise.
    lost_from = start if start > last_before else confirmed
    return [Interval(max(hold.start, lost_from), hold.until) for hold in holds]


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
