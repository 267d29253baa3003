"""Deliver events to the webhooks that are due: each in order, one message at a time, at least once.

A webhook is lent to a process for one try, with the batch that is tried; whoever dies with it leaves both in the row,
and the next try has the same ``webhook-id``. No transaction and no connection of the database is open while a receiver
answers.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import structlog
from sqlalchemy import Connection

from memory_app import correlation, queue
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import MemoryAppError
from memory_app.events.cursor import Cursor
from memory_app.events.event import Event, EventPage, EventType
from memory_app.events.read import PAGE_LIMIT, Feed
from memory_app.events.rows import deliveries, due_webhooks
from memory_app.events.webhooks.attempt import Try, attempt, post_of
from memory_app.events.webhooks.message import EVENTS
from memory_app.events.webhooks.pause import is_given_up, pause_seconds
from memory_app.events.webhooks.records import Batch, PausedReason, WebhookClaim, Work
from memory_app.events.webhooks.secret import Keyring, keyring_of
from memory_app.events.webhooks.send import Outcome, Post
from memory_app.hot import hints
from memory_app.hot.faults import HotUnavailable
from memory_app.runtime import Runtime

log = structlog.get_logger(__name__)

MOST_SECONDS = 20.0
"""No further delivery begins after this. With the last one's time below the limit of a task."""

LOOK_SECONDS = 0.5
"""Pause between two looks for further due webhooks while deliveries go on."""

LOOKS = 200
"""Webhooks looked at in one go."""

LEASE_MARGIN_SECONDS = 30.0
"""Beyond the longest try, for looking up the name and for the transactions around it."""

FAR = 100_000
"""Numbers of transactions behind which a position is moved on although there was nothing to deliver: a look need not
pass over the same ones again and again, and an idle webhook need not be written at each."""

RUNNING = "webhooks"
"""The name under which one task at a time delivers."""

_ENDED = {Outcome.GONE: PausedReason.GONE}
_dice = Random()


@dataclass(slots=True)
class _Places:
    """Webhooks under way, and those in which there was nothing to do a moment ago."""

    limit: int
    under_way: dict[Future[bool], tuple[int, UUID]] = field(default_factory=dict)
    idle_until: dict[UUID, float] = field(default_factory=dict)

    def may_begin(self, tenant_id: int, id: UUID) -> bool:
        """Whether a webhook is not under way, and its tenant has less than half of all places."""
        counts = Counter(tenant for tenant, _ in self.under_way.values())
        if len(self.under_way) >= self.limit or counts[tenant_id] >= max(1, self.limit // 2):
            return False
        is_under_way = any(other == id for _, other in self.under_way.values())
        return not is_under_way and self.idle_until.get(id, 0) <= time.monotonic()


def has_due(runtime: Runtime) -> bool:
    """Whether some webhook is to be looked at, of any tenant."""
    with transaction(runtime.at(HOME).engine, None) as connection:
        return bool(due_webhooks.due(connection, most=1))


def deliver_on_hint(runtime: Runtime) -> None:
    """Deliver what is due, unless another task does: however many receivers hang, they hold one place of a worker."""
    try:
        hints.clear(runtime.hot, runtime.hint_name(queue.DELIVER_WEBHOOKS))
        life_ms = round((MOST_SECONDS + runtime.settings.webhooks.total_seconds) * 1_000)
        if not hints.claim(runtime.hot, RUNNING, life_ms=life_ms):
            return
    except HotUnavailable:
        # Two tasks do no harm.
        pass
    try:
        deliver_due(runtime)
    finally:
        try:
            hints.clear(runtime.hot, RUNNING)
        except HotUnavailable:
            log.debug("hint_not_cleared")


def deliver_due(runtime: Runtime, *, post: Post | None = None) -> int:
    """Deliver to every due webhook, several at the same time, until there is nothing to do or the time is over; how
    many messages were tried. A receiver that hangs holds up no other webhook."""
    settings = runtime.settings.webhooks
    home = runtime.at(HOME)
    way, keyring = post or post_of(settings), keyring_of(runtime.settings)
    until = time.monotonic() + MOST_SECONDS
    places = _Places(settings.deliveries)
    tried = 0
    with ThreadPoolExecutor(settings.deliveries, thread_name_prefix="webhook") as threads:
        while True:
            if time.monotonic() < until:
                for tenant_id, id in _due(home):
                    if places.may_begin(tenant_id, id):
                        job = threads.submit(_deliver_or_wait, home, tenant_id, id, way, keyring)
                        places.under_way[job] = (tenant_id, id)
            if not places.under_way:
                return tried
            done, _ = wait(places.under_way, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for job in done:
                _, id = places.under_way.pop(job)
                if job.result():
                    tried += 1
                else:
                    places.idle_until[id] = time.monotonic() + LOOK_SECONDS


def _due(home: Runtime) -> tuple[tuple[int, UUID], ...]:
    with transaction(home.engine, None) as connection:
        return due_webhooks.due(connection, most=LOOKS)


def _deliver_or_wait(home: Runtime, tenant_id: int, id: UUID, post: Post, keyring: Keyring) -> bool:
    try:
        return deliver(home, tenant_id, id, post=post, keyring=keyring)
    except MemoryAppError as error:
        # The row stays due, or its lease runs out.
        log.warning("webhook_waits", webhook_id=str(id), error=error.kind)
    except Exception as error:
        # A fault of ours with one webhook must not hold up the others, whose deliveries end with this call.
        log.error("webhook_broke", webhook_id=str(id), exc_info=error)
    return False


def deliver(home: Runtime, tenant_id: int, id: UUID, *, post: Post, keyring: Keyring) -> bool:
    """Try the next message of one webhook, if it is due and free; whether there was something to do.

    Raises `StoreUnavailable`: where that comes after the try, the message is sent once more.
    """
    with transaction(home.engine, tenant_id) as connection:
        work = due_webhooks.work(connection, tenant_id, id, is_due=True)
    if work is None:
        return False
    limit = home.settings.webhooks.batch if work.batch is None else PAGE_LIMIT
    page = Feed(home, tenant_id, work.choice, work.position, limit).look()
    events = _events_of(work, page)
    if not events:
        return _pass_over(home, tenant_id, work, page)
    claim = _claim(home, tenant_id, work, page, events)
    if claim is None:
        return False
    result = attempt(post, keyring, work, type=EVENTS, message_id=claim.batch.id, events=events)
    _settle(home, tenant_id, work, claim, events, result)
    return True


def _events_of(work: Work, page: EventPage) -> tuple[Event, ...]:
    """The events of the page that belong to the message: of one that was tried before, those up to its end."""
    if work.batch is None:
        return page.events
    end = work.batch.end
    # What changed again meanwhile has moved behind the end. A reset is of no batch that was begun before it.
    return tuple(event for event in page.events if event.type is not EventType.RESET and event.id <= end)


def _pass_over(home: Runtime, tenant_id: int, work: Work, page: EventPage) -> bool:
    """Move on where there is nothing to deliver; whether to look again at once."""
    if work.batch is not None:
        is_reset = any(event.type is EventType.RESET for event in page.events)
        to = work.position if is_reset else work.batch.end
    elif Cursor.read(page.cursor).number - Cursor.read(work.position).number > FAR:
        to = page.cursor
    else:
        return False
    with transaction(home.engine, tenant_id) as connection:
        due_webhooks.advance(connection, tenant_id, work, to=to)
    return work.batch is not None


def _claim(
    home: Runtime, tenant_id: int, work: Work, page: EventPage, events: tuple[Event, ...]
) -> WebhookClaim | None:
    seconds = home.settings.webhooks.total_seconds + LEASE_MARGIN_SECONDS
    with transaction(home.engine, tenant_id) as connection:
        return due_webhooks.claim(
            connection,
            tenant_id,
            work,
            new=Batch(correlation.new_id(), page.cursor),
            since=events[0].at,
            lease=timedelta(seconds=seconds),
        )


def _settle(
    home: Runtime,
    tenant_id: int,
    work: Work,
    claim: WebhookClaim,
    events: tuple[Event, ...],
    result: Try,
) -> None:
    """Write down what came of a try, and when the next one is."""
    outcome = result.answer.outcome
    with transaction(home.engine, tenant_id) as connection:
        if outcome is Outcome.DELIVERED:
            is_ours = due_webhooks.delivered(connection, tenant_id, work.id, fence=claim.fence)
        else:
            is_ours = _settle_failure(connection, home, tenant_id, work, claim, result)
        if is_ours:
            deliveries.add(
                connection,
                tenant_id,
                work.id,
                message_id=claim.batch.id,
                ends=(events[0].id, events[-1].id),
                events=len(events),
                attempt=claim.attempt,
                outcome=outcome,
                status=result.answer.status,
                duration_ms=result.duration_ms,
                keep=home.settings.webhooks.log_rows,
            )
    say = log.info if outcome is Outcome.DELIVERED else log.warning
    say(
        "webhook_tried",
        webhook_id=str(work.id),
        outcome=outcome,
        events=len(events),
        attempt=claim.attempt,
        ms=result.duration_ms,
    )


def _settle_failure(
    connection: Connection, home: Runtime, tenant_id: int, work: Work, claim: WebhookClaim, result: Try
) -> bool:
    settings = home.settings.webhooks
    reason = _ENDED.get(result.answer.outcome)
    after = timedelta(days=settings.give_up_days)
    if reason is None and is_given_up(claim.failing_since, now=datetime.now(UTC), after=after):
        reason = PausedReason.FAILING
    if reason is not None:
        log.error("webhook_given_up", webhook_id=str(work.id), reason=reason)
        return due_webhooks.give_up(connection, tenant_id, work.id, fence=claim.fence, reason=reason)
    seconds = pause_seconds(
        claim.attempt,
        base_seconds=settings.retry_base_seconds,
        longest_seconds=settings.retry_max_seconds,
        retry_after=result.answer.retry_after,
        dice=_dice,
    )
    return due_webhooks.failed(
        connection, tenant_id, work.id, fence=claim.fence, pause=timedelta(seconds=seconds)
    )
