"""Webhooks of a tenant: make, list, change, rotate and delete them, see what was tried, send again, and test.

They are the tenant's, so whoever calls these administers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

from memory_app import correlation
from memory_app.db.db import transaction
from memory_app.db.shards import HOME
from memory_app.errors import Conflict, InvalidInput, NotFound, RateLimited
from memory_app.events.cursor import Cursor
from memory_app.events.event import Choice, checked_types
from memory_app.events.read import OLDEST, read_page
from memory_app.events.rows import deliveries, due_webhooks
from memory_app.events.rows import webhooks as rows
from memory_app.events.webhooks.address import check_reachable, read_url, rules_of
from memory_app.events.webhooks.attempt import attempt, post_of
from memory_app.events.webhooks.message import PING
from memory_app.events.webhooks.records import Delivery, NewWebhook, Webhook, WebhookChange
from memory_app.events.webhooks.secret import Keyring, SecretSource, keyring_of
from memory_app.events.webhooks.send import Post
from memory_app.events.webhooks.signature import text_of
from memory_app.language.text import clean
from memory_app.records.scope import check_name
from memory_app.records.unchanged import UNCHANGED
from memory_app.runtime import Runtime

DESCRIPTION_LIMIT = 200
OVERLAP_HOURS_LIMIT = 8_760
"""As for keys."""

PAGE_LIMIT = 200
"""Most deliveries of a page."""

PINGS = 2
"""Pings of a process at the same time: each may take as long as a delivery."""

_pings = BoundedSemaphore(PINGS)


def list_webhooks(runtime: Runtime, tenant_id: int) -> tuple[Webhook, ...]:
    """The webhooks of the tenant, the oldest first; never their secrets."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        return rows.listed(connection, tenant_id)


def make_webhook(
    runtime: Runtime,
    tenant_id: int,
    *,
    url: str,
    types: Sequence[str] | None = None,
    agent: str | None = None,
    user: str | None = None,
    description: str | None = None,
    after: str | None = None,
) -> NewWebhook:
    """Make a webhook for events after ``after`` (``oldest``: from the first that is kept; None: from now on).

    Looks the host up. Raises `InvalidInput` naming the field, and `Conflict` at the limit and where the settings have
    no secret.
    """
    _check_url(runtime, url)
    choice = _choice(types, agent, user)
    description = _description(description)
    keyring = keyring_of(runtime.settings)
    source = keyring.new()
    position = _position(runtime, tenant_id, after)
    most = runtime.settings.webhooks.tenant_webhooks
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        if rows.count_alone(connection, tenant_id) >= most:
            raise Conflict(
                f"there are {most} webhooks; delete one, or raise MEMORY_WEBHOOKS__TENANT_WEBHOOKS"
            )
        webhook = rows.add(
            connection,
            tenant_id,
            url=url,
            description=description,
            choice=choice,
            source=source,
            position=position,
        )
    return _with_secret(webhook, keyring, source)


def change_webhook(runtime: Runtime, tenant_id: int, id: UUID, *, change: WebhookChange) -> Webhook:
    """Change parts of a webhook. A message that is being tried is begun anew, with another id.

    Raises `InvalidInput` naming the field and `NotFound`.
    """
    values: dict[str, Any] = {}
    if change.url is not UNCHANGED:
        _check_url(runtime, change.url)
        values["url"] = change.url
    if change.description is not UNCHANGED:
        values["description"] = _description(change.description)
    if change.paused is not UNCHANGED:
        values |= rows.PAUSED if change.paused else rows.RESUMED
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        webhook = rows.lock(connection, tenant_id, id)
        if webhook is None:
            raise _not_found(id)
        values |= rows.columns_of(_changed_choice(webhook, change))
        # A pause that has its own reason keeps it: somebody may have to do something about that.
        if change.paused is True and webhook.paused_reason is not None:
            values = {name: value for name, value in values.items() if name not in rows.PAUSED}
        return rows.change(connection, tenant_id, id, values)


def rotate_webhook(runtime: Runtime, tenant_id: int, id: UUID, *, overlap_hours: float = 24) -> NewWebhook:
    """Give a webhook another secret; messages have a signature with the old one, too, for ``overlap_hours``.

    Raises `InvalidInput`, `NotFound`, and `Conflict` where the settings have no secret.
    """
    if not 0 <= overlap_hours <= OVERLAP_HOURS_LIMIT:
        raise InvalidInput(f"overlap_hours: 0 to {OVERLAP_HOURS_LIMIT}", field="overlap_hours")
    keyring = keyring_of(runtime.settings)
    source = keyring.new()
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        webhook = rows.rotate(
            connection, tenant_id, id, source=source, overlap=timedelta(hours=overlap_hours)
        )
    if webhook is None:
        raise _not_found(id)
    return _with_secret(webhook, keyring, source)


def delete_webhook(runtime: Runtime, tenant_id: int, id: UUID) -> None:
    """Delete a webhook and its log. A delivery that is under way ends. Raises `NotFound`."""
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        if not rows.remove(connection, tenant_id, id):
            raise _not_found(id)


def list_deliveries(
    runtime: Runtime, tenant_id: int, id: UUID, *, limit: int = 50, cursor: UUID | None = None
) -> tuple[Delivery, ...]:
    """The latest tries, the newest first, before ``cursor``. Raises `InvalidInput` and `NotFound`."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise InvalidInput(f"limit: 1 to {PAGE_LIMIT}", field="limit")
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        if rows.read(connection, tenant_id, id) is None:
            raise _not_found(id)
        return deliveries.listed(connection, tenant_id, id, before=cursor, limit=limit)


def resend_webhook(runtime: Runtime, tenant_id: int, id: UUID, *, after: str) -> Webhook:
    """Send again what came after an event (``oldest``: everything that is kept), in messages with new ids.

    Raises `InvalidInput` for what is no id of an event, and `NotFound`.
    """
    position = _position(runtime, tenant_id, after)
    with transaction(runtime.at(HOME).engine, tenant_id) as connection:
        if rows.lock(connection, tenant_id, id) is None:
            raise _not_found(id)
        return rows.change(connection, tenant_id, id, {"position": position})


def ping_webhook(runtime: Runtime, tenant_id: int, id: UUID, *, post: Post | None = None) -> Delivery:
    """Send a message of the type ``ping`` now, to a paused webhook too; what came of it. Changes nothing but the log.

    Raises `NotFound`, and `RateLimited` while this process sends others.
    """
    home = runtime.at(HOME)
    with transaction(home.engine, tenant_id) as connection:
        work = due_webhooks.work(connection, tenant_id, id, is_due=False)
    if work is None:
        raise _not_found(id)
    if not _pings.acquire(blocking=False):
        raise RateLimited("other pings are under way", retry_after=home.settings.webhooks.total_seconds)
    message_id = correlation.new_id()
    try:
        way = post or post_of(home.settings.webhooks)
        result = attempt(way, keyring_of(home.settings), work, type=PING, message_id=message_id)
    finally:
        _pings.release()
    with transaction(home.engine, tenant_id) as connection:
        # It may have been deleted meanwhile, and then nothing is to be written.
        if rows.lock(connection, tenant_id, id) is None:
            raise _not_found(id)
        deliveries.add(
            connection,
            tenant_id,
            id,
            message_id=message_id,
            ends=(None, None),
            events=0,
            attempt=1,
            outcome=result.answer.outcome,
            status=result.answer.status,
            duration_ms=result.duration_ms,
            keep=home.settings.webhooks.log_rows,
        )
        return deliveries.listed(connection, tenant_id, id, before=None, limit=1)[0]


def _check_url(runtime: Runtime, url: str) -> None:
    rules = rules_of(runtime.settings.webhooks)
    check_reachable(read_url(url, rules), rules)


def _choice(types: Sequence[str] | None, agent: str | None, user: str | None) -> Choice:
    for name, value in (("agent", agent), ("user", user)):
        if value is not None:
            check_name(value, field=name)
    return Choice(None if types is None else checked_types(types, field="types"), agent, user)


def _changed_choice(webhook: Webhook, change: WebhookChange) -> Choice:
    wanted = replace(
        change,
        types=webhook.types if change.types is UNCHANGED else change.types,
        agent=webhook.agent if change.agent is UNCHANGED else change.agent,
        user=webhook.user if change.user is UNCHANGED else change.user,
    )
    assert wanted.types is not UNCHANGED and wanted.agent is not UNCHANGED and wanted.user is not UNCHANGED
    return _choice(wanted.types, wanted.agent, wanted.user)


def _description(text: str | None) -> str | None:
    if text is None:
        return None
    cleaned = clean(text)[0]
    if len(cleaned) > DESCRIPTION_LIMIT:
        raise InvalidInput(f"description: at most {DESCRIPTION_LIMIT} characters", field="description")
    return cleaned


def _position(runtime: Runtime, tenant_id: int, after: str | None) -> str:
    if after is not None and after != OLDEST:
        return str(Cursor.read(after))
    now = read_page(runtime, tenant_id, Choice(), after=None, limit=1).cursor
    return now if after is None else str(Cursor(Cursor.read(now).epoch, 0))


def _with_secret(webhook: Webhook, keyring: Keyring, source: SecretSource) -> NewWebhook:
    secret = keyring.secret(source)
    assert secret is not None  # It was made with a secret of this very keyring.
    return NewWebhook(webhook, text_of(secret))


def _not_found(id: UUID) -> NotFound:
    return NotFound(f"webhook {id} was not found")
