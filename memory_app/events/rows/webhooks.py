"""Webhooks in the home shard: what is configured, and how they all are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Interval,
    Row,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    null,
    select,
    text,
    update,
)

from memory_app.db.locks import locking
from memory_app.db.tables.events import webhooks
from memory_app.events.event import Choice
from memory_app.events.webhooks.records import (
    PausedReason,
    Webhook,
    WebhookState,
)
from memory_app.events.webhooks.secret import SecretSource

_W = webhooks.c

_SHOWN = (
    _W.id,
    _W.url,
    _W.description,
    _W.types,
    _W.agent_name,
    _W.user_name,
    _W.created_at,
    _W.position,
    _W.attempts,
    _W.failing_since,
    _W.waiting_since,
    # One that waits for nothing is due all the time.
    case((_W.failing_since.is_not(None), _W.due_at)).label("next_try_at"),
    _W.paused_reason,
)
IS_ONE = and_(_W.tenant_id == bindparam("tenant"), _W.id == bindparam("webhook"))
WITHOUT_BATCH: dict[str, Any] = {"batch_id": null(), "batch_end": null(), "waiting_since": null()}
# Whoever has it in hand can say nothing more about it.
_TAKEN_BACK: dict[str, Any] = {"lease_until": null(), "fence": _W.fence + 1}

_LOCK_TENANT = locking(
    "webhooks", text("SELECT pg_advisory_xact_lock(hashtextextended('webhooks', :tenant))")
)
_COUNT = select(func.count()).select_from(webhooks).where(_W.tenant_id == bindparam("tenant"))
_LIST = select(*_SHOWN).where(_W.tenant_id == bindparam("tenant")).order_by(_W.id)
_READ = select(*_SHOWN).where(IS_ONE)
_LOCK = locking("webhooks", select(*_SHOWN).where(IS_ONE).with_for_update())
_ROTATE = (
    update(webhooks)
    .where(IS_ONE)
    .values(
        salt=bindparam("new_salt"),
        made_with=bindparam("new_made_with"),
        previous_salt=_W.salt,
        previous_made_with=_W.made_with,
        previous_until=func.now() + bindparam("overlap", type_=Interval),
    )
    .returning(*_SHOWN)
)
_DELETE = delete(webhooks).where(IS_ONE)
_STATE = text("SELECT active, failing, given_up, oldest_waiting_seconds FROM webhook_state()")


def listed(connection: Connection, tenant_id: int) -> tuple[Webhook, ...]:
    return tuple(map(_webhook, connection.execute(_LIST, {"tenant": tenant_id})))


def read(connection: Connection, tenant_id: int, id: UUID) -> Webhook | None:
    row = connection.execute(_READ, {"tenant": tenant_id, "webhook": id}).one_or_none()
    return None if row is None else _webhook(row)


def lock(connection: Connection, tenant_id: int, id: UUID) -> Webhook | None:
    """The same, held until the end of the transaction."""
    row = connection.execute(_LOCK, {"tenant": tenant_id, "webhook": id}).one_or_none()
    return None if row is None else _webhook(row)


def count_alone(connection: Connection, tenant_id: int) -> int:
    """How many webhooks the tenant has; nobody adds one until the end of the transaction."""
    connection.execute(_LOCK_TENANT, {"tenant": tenant_id})
    return connection.execute(_COUNT, {"tenant": tenant_id}).scalar_one()


def add(
    connection: Connection,
    tenant_id: int,
    *,
    url: str,
    description: str | None,
    choice: Choice,
    source: SecretSource,
    position: str,
) -> Webhook:
    statement = insert(webhooks).values(
        tenant_id=tenant_id,
        url=url,
        description=description,
        types=_names(choice),
        agent_name=choice.agent,
        user_name=choice.user,
        salt=source.salt,
        made_with=source.made_with,
        position=position,
    )
    return _webhook(connection.execute(statement.returning(*_SHOWN)).one())


def change(connection: Connection, tenant_id: int, id: UUID, values: Mapping[str, Any]) -> Webhook:
    """Set columns. What is being delivered is begun anew, since it may be another address or other events."""
    statement = update(webhooks).where(IS_ONE)
    row = connection.execute(
        statement.values(**values, **WITHOUT_BATCH, **_TAKEN_BACK, attempts=0).returning(*_SHOWN),
        {"tenant": tenant_id, "webhook": id},
    ).one()
    return _webhook(row)


PAUSED: Mapping[str, Any] = {"due_at": null(), "paused_reason": PausedReason.ASKED}
RESUMED: Mapping[str, Any] = {"due_at": func.now(), "paused_reason": null(), "failing_since": null()}
"""Columns for `change`."""


def rotate(
    connection: Connection, tenant_id: int, id: UUID, *, source: SecretSource, overlap: timedelta
) -> Webhook | None:
    values = {
        "tenant": tenant_id,
        "webhook": id,
        "new_salt": source.salt,
        "new_made_with": source.made_with,
        "overlap": overlap,
    }
    row = connection.execute(_ROTATE, values).one_or_none()
    return None if row is None else _webhook(row)


def remove(connection: Connection, tenant_id: int, id: UUID) -> bool:
    return connection.execute(_DELETE, {"tenant": tenant_id, "webhook": id}).rowcount > 0


def state(connection: Connection) -> WebhookState:
    return WebhookState(**connection.execute(_STATE).one()._mapping)


def columns_of(choice: Choice) -> dict[str, Any]:
    """The columns of which events a webhook hears."""
    return {"types": _names(choice), "agent_name": choice.agent, "user_name": choice.user}


def _names(choice: Choice) -> list[str] | None:
    return None if choice.types is None else sorted(choice.types)


def _webhook(row: Row[*tuple[Any, ...]]) -> Webhook:
    return Webhook(
        id=row.id,
        url=row.url,
        description=row.description,
        types=None if row.types is None else tuple(row.types),
        agent=row.agent_name,
        user=row.user_name,
        created_at=row.created_at,
        position=row.position,
        attempts=row.attempts,
        failing_since=row.failing_since,
        waiting_since=row.waiting_since,
        next_try_at=row.next_try_at,
        paused_reason=row.paused_reason,
    )
