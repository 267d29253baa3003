"""Webhooks as those who deliver see them: which are due, who has one in hand, and how far each has come."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    DateTime,
    Interval,
    Row,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    text,
    update,
)

from memory_app.db.tables.events import webhooks
from memory_app.events.event import Choice, EventType
from memory_app.events.rows.webhooks import IS_ONE, WITHOUT_BATCH
from memory_app.events.webhooks.records import Batch, PausedReason, WebhookClaim, Work
from memory_app.events.webhooks.secret import SecretSource

_W = webhooks.c

_IS_CLAIMED = and_(IS_ONE, _W.fence == bindparam("claimed_fence"))
_IS_FREE = and_(
    _W.due_at <= func.now(),
    or_(_W.lease_until.is_(None), _W.lease_until <= func.now()),
)
_FRESH: dict[str, Any] = {"attempts": 0, "failing_since": null()}

_WORK = select(
    _W.id,
    _W.url,
    _W.types,
    _W.agent_name,
    _W.user_name,
    _W.position,
    _W.batch_id,
    _W.batch_end,
    _W.salt,
    _W.made_with,
    case((_W.previous_until > func.now(), _W.previous_salt)).label("previous_salt"),
    _W.previous_made_with,
).where(IS_ONE)
_DUE_WORK = _WORK.where(_IS_FREE)
_DUE = text("SELECT tenant_id, webhook_id FROM due_webhooks(:most)")
# What was read is delivered only where nobody changed the webhook meanwhile.
_IS_AS_READ = and_(
    IS_ONE,
    _IS_FREE,
    _W.position == bindparam("from_position"),
    _W.batch_end.is_not_distinct_from(bindparam("known_end", type_=Text)),
)
_CLAIM = (
    update(webhooks)
    .where(_IS_AS_READ)
    .values(
        batch_id=func.coalesce(_W.batch_id, bindparam("new_batch", type_=Uuid)),
        batch_end=func.coalesce(_W.batch_end, bindparam("end", type_=Text)),
        waiting_since=func.coalesce(
            _W.waiting_since, bindparam("since", type_=DateTime(timezone=True)), func.now()
        ),
        attempts=_W.attempts + 1,
        fence=_W.fence + 1,
        lease_until=func.now() + bindparam("lease", type_=Interval),
    )
    .returning(_W.batch_id, _W.batch_end, _W.fence, _W.attempts, _W.failing_since)
)
_ADVANCE = update(webhooks).where(_IS_AS_READ).values(**WITHOUT_BATCH, position=bindparam("to_position"))
_DELIVERED = (
    update(webhooks)
    .where(_IS_CLAIMED)
    .values(**WITHOUT_BATCH, **_FRESH, position=_W.batch_end, lease_until=null(), due_at=func.now())
)
_FAILED = (
    update(webhooks)
    .where(_IS_CLAIMED)
    .values(
        failing_since=func.coalesce(_W.failing_since, func.now()),
        lease_until=null(),
        due_at=func.now() + bindparam("pause", type_=Interval),
    )
)
_GIVEN_UP = (
    update(webhooks)
    .where(_IS_CLAIMED)
    .values(
        failing_since=func.coalesce(_W.failing_since, func.now()),
        lease_until=null(),
        due_at=null(),
        paused_reason=bindparam("reason"),
    )
)


def due(connection: Connection, *, most: int) -> tuple[tuple[int, UUID], ...]:
    """Webhooks at which somebody should look, with their tenants, which come in turn."""
    return tuple((row.tenant_id, row.webhook_id) for row in connection.execute(_DUE, {"most": most}))


def work(connection: Connection, tenant_id: int, id: UUID, *, is_due: bool) -> Work | None:
    """What a delivery needs; with ``is_due`` None where nothing is due or another process has it in hand."""
    statement = _DUE_WORK if is_due else _WORK
    row = connection.execute(statement, {"tenant": tenant_id, "webhook": id}).one_or_none()
    if row is None:
        return None
    sources = [SecretSource(row.salt, row.made_with)]
    if row.previous_salt is not None:
        sources.append(SecretSource(row.previous_salt, row.previous_made_with))
    batch = None if row.batch_id is None else Batch(row.batch_id, row.batch_end)
    return Work(row.id, row.url, _choice(row), row.position, batch, tuple(sources))


def claim(
    connection: Connection,
    tenant_id: int,
    work: Work,
    *,
    new: Batch,
    since: datetime | None,
    lease: timedelta,
) -> WebhookClaim | None:
    """Borrow a webhook for one try of its batch, which is ``new`` where it has none. None where it is not as it was
    read, or another process has it."""
    values = _as_read(tenant_id, work) | {
        "new_batch": new.id,
        "end": new.end,
        "since": since,
        "lease": lease,
    }
    row = connection.execute(_CLAIM, values).one_or_none()
    if row is None:
        return None
    return WebhookClaim(Batch(row.batch_id, row.batch_end), row.fence, row.attempts, row.failing_since)


def advance(connection: Connection, tenant_id: int, work: Work, *, to: str) -> None:
    """Note that there is nothing to deliver up to ``to``."""
    connection.execute(_ADVANCE, _as_read(tenant_id, work) | {"to_position": to})


def delivered(connection: Connection, tenant_id: int, id: UUID, *, fence: int) -> bool:
    """Go on behind the batch. False where somebody took the webhook back."""
    return connection.execute(_DELIVERED, _claimed(tenant_id, id, fence)).rowcount > 0


def failed(connection: Connection, tenant_id: int, id: UUID, *, fence: int, pause: timedelta) -> bool:
    values = _claimed(tenant_id, id, fence) | {"pause": pause}
    return connection.execute(_FAILED, values).rowcount > 0


def give_up(connection: Connection, tenant_id: int, id: UUID, *, fence: int, reason: PausedReason) -> bool:
    values = _claimed(tenant_id, id, fence) | {"reason": reason}
    return connection.execute(_GIVEN_UP, values).rowcount > 0


def _choice(row: Row[*tuple[Any, ...]]) -> Choice:
    types = None if row.types is None else frozenset(map(EventType, row.types))
    return Choice(types, row.agent_name, row.user_name)


def _as_read(tenant_id: int, work: Work) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "webhook": work.id,
        "from_position": work.position,
        "known_end": None if work.batch is None else work.batch.end,
    }


def _claimed(tenant_id: int, id: UUID, fence: int) -> dict[str, Any]:
    return {"tenant": tenant_id, "webhook": id, "claimed_fence": fence}
