"""What changed, in the order in which it became visible."""

from __future__ import annotations

import time
from collections.abc import Iterator

from memory_app.errors import InvalidInput, Transient
from memory_app.events.event import Choice, Event, EventPage, types_of
from memory_app.events.read import PAGE_LIMIT, Feed, wait_for_page
from memory_app.facade.base import Facade

WAIT_SECONDS = 20.0
AWAY_SECONDS = 2.0


class Events(Facade):
    """See `MemoryApp`."""

    __slots__ = ()

    def event_page(
        self,
        *,
        after: str | None = None,
        types: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        limit: int = 100,
        wait_seconds: float = 0,
    ) -> EventPage:
        """What changed after the event ``after`` (``oldest``: from the first that is kept; None: from now on), in the
        order in which it became visible; waits for the first event for ``wait_seconds`` (at most 30).

        ``types`` has commas between: ``turn.extracted,memory``. Go on with the page's ``cursor``.
        """
        if not 1 <= limit <= PAGE_LIMIT:
            raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
        feed = Feed(self.runtime, self.tenant_id, Choice(types_of(types), agent, user), after, limit)
        return wait_for_page(feed, wait_seconds=wait_seconds)

    def events(
        self,
        *,
        after: str | None = None,
        types: str | None = None,
        agent: str | None = None,
        user: str | None = None,
    ) -> Iterator[Event]:
        """Events as they come, without an end; goes on where it was when the database was away. Keep the ``id`` of the
        last one that you are done with, and begin after it the next time."""
        feed = Feed(self.runtime, self.tenant_id, Choice(types_of(types), agent, user), after, PAGE_LIMIT)
        while True:
            try:
                page = wait_for_page(feed, wait_seconds=0 if feed.cursor is None else WAIT_SECONDS)
            except Transient as error:
                time.sleep(error.retry_after or AWAY_SECONDS)
                continue
            yield from page.events
