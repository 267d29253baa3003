"""The log of deliveries: the latest tries of each webhook."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, Uuid, bindparam, delete, func, insert, or_, select

from memory_app.db.tables.events import deliveries
from memory_app.events.webhooks.records import Delivery
from memory_app.events.webhooks.send import Outcome

_D = deliveries.c

_ADD = insert(deliveries).values(at=func.now())
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
_LISTED = (
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


def add(
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
        _ADD,
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


def listed(
    connection: Connection, tenant_id: int, id: UUID, *, before: UUID | None, limit: int
) -> tuple[Delivery, ...]:
    """The latest tries, the newest first."""
    values = {"tenant": tenant_id, "webhook": id, "before": before, "limit": limit}
    return tuple(
        Delivery(**{**row._mapping, "outcome": Outcome(row.outcome)})
        for row in connection.execute(_LISTED, values)
    )
