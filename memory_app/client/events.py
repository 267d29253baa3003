"""The call of events, and how a client follows them across everything that may go wrong on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from memory_app.client.call import Call, answer_of, query_of
from memory_app.errors import Transient
from memory_app.events.answers import EventAnswer, EventsAnswer

PAGE_LIMIT = 500
WAIT_SECONDS = 20.0
"""Of a call that waits for events: below the half minute after which proxies end a silent one."""

LONGEST_PAUSE_SECONDS = 30.0


def event_page(
    *,
    after: str | None = None,
    types: str | None = None,
    agent: str | None = None,
    user: str | None = None,
    limit: int = 100,
    wait_seconds: float = 0,
) -> Call[EventsAnswer]:
    """What changed after the event ``after`` (``oldest``: from the first that is kept; None: from now on), in the order
    in which it became visible; waits for the first event for ``wait_seconds`` (at most 30).

    ``types`` has commas between: ``turn.extracted,memory``. Go on with the page's ``cursor``.
    """
    query = query_of(after=after, types=types, agent=agent, user=user, limit=limit, wait_seconds=wait_seconds)
    return Call("GET", "/v1/events", answer_of(EventsAnswer), query=query, further_seconds=wait_seconds)


@dataclass(slots=True)
class Following:
    """Where a listener is, and how often in a row it could not be served."""

    cursor: str | None
    types: str | None
    agent: str | None
    user: str | None
    failures: int = 0

    def call(self) -> Call[EventsAnswer]:
        """The next call. The first one only learns where "now" is: a wait that broke off would lose that place."""
        return event_page(
            after=self.cursor,
            types=self.types,
            agent=self.agent,
            user=self.user,
            limit=PAGE_LIMIT,
            wait_seconds=0 if self.cursor is None else WAIT_SECONDS,
        )

    def read(self, page: EventsAnswer) -> Iterator[EventAnswer]:
        """The events of the answer; the next call begins behind them."""
        self.failures = 0
        self.cursor = page.cursor
        yield from page.events

    def pause(self, error: Transient) -> float:
        """Seconds until the same call again."""
        self.failures += 1
        grown = min(0.5 * 2.0 ** min(self.failures, 10), LONGEST_PAUSE_SECONDS)
        return (error.retry_after or 0.0) + grown * random.uniform(0.5, 1.0)
