"""Webhooks in the home shard: what is configured, how far each has come, who has it in hand, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
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
    delete,
    func,
    insert,
    null,
    or_,
    select,
    text,
    update,
)

from memory_app.db.tables.events import deliveries, webhooks
from memory_app.events.event import Choice, EventType
from memory_app.events.webhooks.records import (
    Batch,
    Delivery,
    PausedReason,
    Webhook,
    WebhookClaim,
    WebhookState,
    Work,
)
from memory_app.events.webhooks.secret import SecretSource
from memory_app.events.webhooks.send import Outcome

_W, _D = webhooks.c, deliveries.c

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
_IS_ONE = and_(_W.tenant_id == bindparam("tenant"), _W.id == bindparam("webhook"))
_IS_CLAIMED = and_(_IS_ONE, _W.fence == bindparam("claimed_fence"))
_IS_FREE = and_(
    _W.due_at <= func.now(),
    or_(_W.lease_until.is_(None), _W.lease_until <= func.now()),
)
_WITHOUT_BATCH: dict[str, Any] = {"batch_id": null(), "batch_end": null(), "waiting_since": null()}
# Whoever has it in hand can say nothing more about it.
_TAKEN_BACK: dict[str, Any] = {"lease_until": null(), "fence": _W.fence + 1}
_FRESH: dict[str, Any] = {"attempts": 0, "failing_since": null()}

_LOCK_TENANT = text("SELECT pg_advisory_xact_lock(hashtextextended('webhooks', :tenant))")
_COUNT = select(func.count()).select_from(webhooks).where(_W.tenant_id == bindparam("tenant"))
_LIST = select(*_SHOWN).where(_W.tenant_id == bindparam("tenant")).order_by(_W.id)
_READ = select(*_SHOWN).where(_IS_ONE)
_LOCK = select(*_SHOWN).where(_IS_ONE).with_for_update()
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
).where(_IS_ONE)
_DUE_WORK = _WORK.where(_IS_FREE)
_ROTATE = (
    update(webhooks)
    .where(_IS_ONE)
    .values(
        salt=bindparam("new_salt"),
        made_with=bindparam("new_made_with"),
        previous_salt=_W.salt,
        previous_made_with=_W.made_with,
        previous_until=func.now() + bindparam("overlap", type_=Interval),
    )
    .returning(*_SHOWN)
)
_DELETE = delete(webhooks).where(_IS_ONE)
_DUE = text("SELECT tenant_id, webhook_id FROM due_webhooks(:most)")
_STATE = text("SELECT active, failing, given_up, oldest_waiting_seconds FROM webhook_state()")
# What was read is delivered only where nobody changed the webhook meanwhile.
_CLAIM = (
    update(webhooks)
    .where(
        _IS_ONE,
        _IS_FREE,
        _W.position == bindparam("from_position"),
        _W.batch_end.is_not_distinct_from(bindparam("known_end", type_=Text)),
    )
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
_ADVANCE = (
    update(webhooks)
    .where(
        _IS_ONE,
        _IS_FREE,
        _W.position == bindparam("from_position"),
        _W.batch_end.is_not_distinct_from(bindparam("known_end", type_=Text)),
    )
    .values(**_WITHOUT_BATCH, position=bindparam("to_position"))
)
_DELIVERED = (
    update(webhooks)
    .where(_IS_CLAIMED)
    .values(**_WITHOUT_BATCH, **_FRESH, position=_W.batch_end, lease_until=null(), due_at=func.now())
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
_LOG = insert(deliveries).values(at=func.now())
_TRIM = delete(deliveries).where(
    _D.webhook_id == bindparam("webhook"),
    _D.id
    <= select(_D.id)
    .where(_D.webhook_id == bindparam("webhook"))
    .order_by(_D.id.desc())
    .offset(bindparam("rows"))
    .limit(1)
    .scalar_subquery(),
)
_DELIVERIES = (
    select(
        _D.id,
        _D.message_id,
        _D.from_event,
        _D.to_event,
        _D.events,
        _D.attempt,
        _D.outcome,
        _D.status,
        _D.duration_ms,
        _D.at,
    )
    .where(_D.tenant_id == bindparam("tenant"), _D.webhook_id == bindparam("webhook"))
    .where(or_(bindparam("before", type_=Uuid).is_(None), _D.id < bindparam("before", type_=Uuid)))
    .order_by(_D.id.desc())
    .limit(bindparam("limit"))
)


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
    statement = update(webhooks).where(_IS_ONE)
    row = connection.execute(
        statement.values(**values, **_WITHOUT_BATCH, **_TAKEN_BACK, attempts=0).returning(*_SHOWN),
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


def due(connection: Connection, *, most: int) -> tuple[tuple[int, UUID], ...]:
    """Webhooks at which somebody should look, with their tenants, which come in turn."""
    return tuple((row.tenant_id, row.webhook_id) for row in connection.execute(_DUE, {"most": most}))


def state(connection: Connection) -> WebhookState:
    return WebhookState(**connection.execute(_STATE).one()._mapping)


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
    since: Any,
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


def log(
    connection: Connection,
    tenant_id: int,
    id: UUID,
    *,
    message_id: UUID,
    ends: tuple[str | None, str | None],
    events: int,
    attempt: int,
    outcome: Outcome,
    status: int | None,
    duration_ms: int,
    keep: int,
) -> None:
    """Add a try, and delete the oldest beyond ``keep``."""
    connection.execute(
        _LOG,
        {
            "tenant_id": tenant_id,
            "webhook_id": id,
            "message_id": message_id,
            "from_event": ends[0],
            "to_event": ends[1],
            "events": events,
            "attempt": attempt,
            "outcome": outcome,
            "status": status,
            "duration_ms": duration_ms,
        },
    )
    connection.execute(_TRIM, {"webhook": id, "rows": keep})


def tries(
    connection: Connection, tenant_id: int, id: UUID, *, before: UUID | None, limit: int
) -> tuple[Delivery, ...]:
    """The latest tries, the newest first."""
    values = {"tenant": tenant_id, "webhook": id, "before": before, "limit": limit}
    return tuple(
        Delivery(**{**row._mapping, "outcome": Outcome(row.outcome)})
        for row in connection.execute(_DELIVERIES, values)
    )


def columns_of(choice: Choice) -> dict[str, Any]:
    """The columns of which events a webhook hears."""
    return {"types": _names(choice), "agent_name": choice.agent, "user_name": choice.user}


def _names(choice: Choice) -> list[str] | None:
    return None if choice.types is None else sorted(choice.types)


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
