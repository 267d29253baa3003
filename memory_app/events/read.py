"""Read events after a place in their order, from all shards, in one state of the database."""

from __future__ import annotations

import time
from dataclasses import dataclass

from memory_app.db.db import one_state
from memory_app.db.shards import HOME
from memory_app.errors import Conflict, ShardMissing
from memory_app.events.cursor import Cursor
from memory_app.events.event import Choice, Event, EventPage, EventType
from memory_app.events.rows import changes
from memory_app.records.scope import check_name
from memory_app.runtime import Runtime
from memory_app.tenancy.digests import USER, digests_of
from memory_app.turns.tickets import pauses, waiting

OLDEST = "oldest"
"""In the place of a cursor: from the first event that is kept."""

PAGE_LIMIT = 500
"""Most events of a page."""

WINDOW = 1_000_000
"""Numbers of transactions that one statement looks through. Those of other tenants cost nothing; a listener who is far
behind, and hears of few of its tenant's changes, comes up in several pages."""


def read_page(
    runtime: Runtime, tenant_id: int, choice: Choice, *, after: str | None, limit: int
) -> EventPage:
    """Events of a tenant after ``after``, at most ``limit``; None begins now, `OLDEST` with the oldest that is kept.

    Where ``after`` is of another state of the database than this (a backup was restored, a standby took over), the
    page has one event of the type ``reset``, and what follows begins now. Raises `InvalidInput` for what is no cursor,
    `ShardMissing` where a shard cannot be read: passing it over would leave events out. Raises `Conflict` where shards
    are on several servers, which do not number their transactions in one order.
    """
    cursor = None if after is None or after == OLDEST else Cursor.read(after)
    for name, value in (("agent", choice.agent), ("user", choice.user)):
        if value is not None:
            check_name(value, field=name)
    _check_shards(runtime)
    with one_state(runtime.at(HOME).engine, tenant_id) as connection:
        state = changes.order_state(connection)
        # Nobody knows yet what comes at the horizon or above it.
        now = Cursor(state.epoch, state.horizon - 1)
        if after is None:
            return EventPage((), str(now), is_last=True)
        if cursor is None:
            cursor = Cursor(state.epoch, 0)
        elif cursor.epoch != state.epoch or cursor.number > now.number:
            return EventPage((Event(str(now), EventType.RESET),), str(now), is_last=False)
        if cursor == now:
            return EventPage((), str(now), is_last=True)
        below = min(state.horizon, cursor.number + 1 + WINDOW)
        events = changes.changes(
            connection,
            tenant_id,
            choice=choice,
            shards=state.shards,
            after=cursor,
            below=below,
            limit=limit,
            digests=_digests(runtime, tenant_id, choice),
        )
    if len(events) >= limit:
        return EventPage(events, events[-1].id, is_last=False)
    # All of them were seen, however few there were.
    return EventPage(events, str(Cursor(state.epoch, below - 1)), is_last=below == state.horizon)


@dataclass(slots=True)
class Feed:
    """Reads on from where it is. ``cursor`` None: it begins with what comes from the first look on."""

    runtime: Runtime
    tenant_id: int
    choice: Choice
    cursor: str | None
    limit: int

    def look(self) -> EventPage:
        """The next events, none where there are no more now. Raises as `read_page`."""
        while True:
            page = read_page(self.runtime, self.tenant_id, self.choice, after=self.cursor, limit=self.limit)
            self.cursor = page.cursor
            if page.events or page.is_last:
                return page


def wait_for_page(feed: Feed, *, wait_seconds: float) -> EventPage:
    """The next events, waited for up to ``wait_seconds``, at most `WAIT_LIMIT_SECONDS`. Raises as `read_page`, and
    `RateLimited` when too many calls are waiting."""
    page = feed.look()
    if page.events or wait_seconds <= 0:
        return page
    with waiting(feed.tenant_id):
        for pause in pauses(wait_seconds):
            # No connection is held meanwhile.
            time.sleep(pause)
            page = feed.look()
            if page.events:
                break
    return page


def _check_shards(runtime: Runtime) -> None:
    for shard in runtime.directory.shards():
        if shard.server is not None:
            raise Conflict(
                f"events: shard {shard.id} is on server {shard.server!r}; events are not numbered over several servers "
                "yet, so none are told while there is such a shard"
            )
        if shard.difference is not None and shard.revision is not None:
            raise ShardMissing(shard.difference, retry_after=5)


def _digests(runtime: Runtime, tenant_id: int, choice: Choice) -> tuple[bytes, ...]:
    if choice.user is None:
        return ()
    return digests_of(runtime.settings).possible(tenant_id, USER, choice.user)
