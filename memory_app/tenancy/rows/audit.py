"""Rows of the audit log: added through a function of the database, which chains them, and read. Never changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    LargeBinary,
    Text,
    bindparam,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from memory_app.db.expressions import before_if_given, columns_of
from memory_app.db.tables.audit import audit
from memory_app.records.audit import Entry, Event

BATCH = 1_000
"""Rows fetched from the server at a time."""

_ADD = text(
    """SELECT add_audit(CAST(:key AS bigint), :action, CAST(:agent AS text), CAST(:subject AS bytea),
        CAST(:target AS text), :outcome, CAST(:request AS uuid))"""
)
_COLUMNS = columns_of(audit, Entry)
_OF_TENANT = audit.c.tenant_id == bindparam("tenant")
_ACTION = bindparam("action", type_=Text)
_SUBJECTS = bindparam("subjects", type_=ARRAY(LargeBinary))
_KEY = bindparam("key", type_=BigInteger)
_SINCE = bindparam("since", type_=DateTime(timezone=True))
_LIST = (
    select(*_COLUMNS)
    .where(
        _OF_TENANT,
        before_if_given(audit.c.seq, "before"),
        before_if_given(audit.c.at, "until"),
        or_(_SINCE.is_(None), audit.c.at >= _SINCE),
        or_(_KEY.is_(None), audit.c.key_id == _KEY),
        or_(_ACTION.is_(None), audit.c.action == _ACTION),
        or_(_SUBJECTS.is_(None), audit.c.subject == _SUBJECTS.any_()),
    )
    .order_by(audit.c.seq.desc())
    .limit(bindparam("limit"))
)
_ALL = (
    select(*_COLUMNS)
    .where(_OF_TENANT, audit.c.seq > bindparam("after", type_=BigInteger))
    .order_by(audit.c.seq)
)


def add(connection: Connection, event: Event, *, outcome: str) -> None:
    """Add an entry to the log of the transaction's tenant. Entries of a tenant wait for each other until the commit."""
    values = {
        "key": event.key_id,
        "action": event.action,
        "agent": event.agent,
        "subject": event.subject,
        "target": event.target,
        "outcome": outcome,
        "request": event.request_id,
    }
    connection.execute(_ADD, values)


def listed(
    connection: Connection,
    tenant_id: int,
    *,
    limit: int,
    before: int | None = None,
    action: str | None = None,
    subjects: Sequence[bytes] | None = None,
    key_id: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[Entry, ...]:
    """Entries, newest first. ``before`` is the last number of the page before; ``subjects`` digests of one person.

    ``until`` is exclusive."""
    values = {
        "tenant": tenant_id,
        "limit": limit,
        "before": before,
        "action": action,
        "subjects": None if subjects is None else list(subjects),
        "key": key_id,
        "since": since,
        "until": until,
    }
    return tuple(Entry(**row._mapping) for row in connection.execute(_LIST, values))


def all_of(connection: Connection, tenant_id: int) -> Iterator[Entry]:
    """All entries of a tenant in their order, fetched as they are read."""
    options = {"stream_results": True, "yield_per": BATCH}
    with connection.execute(_ALL, {"tenant": tenant_id, "after": 0}, execution_options=options) as rows:
        for row in rows:
            yield Entry(**row._mapping)
