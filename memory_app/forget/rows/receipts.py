"""Rows of receipts, and the names and ids of the database that a receipt is compared with.

A receipt is a row of `erasures`. Its kind, and the other digests of a memory, are in the report of its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import among, columns_of
from memory_app.db.tables.forget import erasures
from memory_app.db.tables.memories import memories
from memory_app.db.tables.tenancy import agents, scopes, tenants, users
from memory_app.db.tables.turns import sessions, turns
from memory_app.forget.receipt import ErasureState, Receipt, Subject
from memory_app.records.run import RunName
from memory_app.tenancy.digests import session_name

BATCH = 5_000
"""Names and ids fetched from the server at a time."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """A receipt as its tenant sees it: how many rows of each table went, and no content."""

    id: UUID
    state: str
    counts: Mapping[str, int]
    created_at: datetime
    finished_at: datetime | None


_TENANT = select(tenants.c.name).where(tenants.c.id == bindparam("tenant")).scalar_subquery()
_RECORD = (
    insert(erasures)
    # Not now(), the beginning of the transaction: whatever came while it waited for locks was erased, too.
    .values(state=ErasureState.DONE, created_at=func.clock_timestamp(), finished_at=func.now())
    .returning(erasures.c.id, erasures.c.created_at, _TENANT.label("tenant"))
)
_RECORD_AGAIN = (
    insert(erasures)
    .values(state=ErasureState.DONE, finished_at=func.now())
    .on_conflict_do_nothing(index_elements=[erasures.c.id])
    .inline()
)
_READ = select(*columns_of(erasures, Erasure)).where(erasures.c.id == bindparam("erasure"))
# Run and receipt are finished in one transaction, in which now() is one instant: joined by it, the run is found by an
# index, which the id in the report has not. That id tells apart two of the same instant.
_RECEIPTS = text(
    f"""
    SELECT e.id, e.tenant_id, t.name AS tenant, r.options ->> 'of' AS of, r.report -> 'digests' AS digests,
           e.subject_digest, e.created_at, e.counts
    FROM erasures e
    JOIN tenants t ON t.id = e.tenant_id
    LEFT JOIN runs r ON r.scope_id IS NULL AND r.finished_at IS NOT NULL
        AND coalesce(r.kept_at, r.finished_at) = e.finished_at AND r.tenant_id = e.tenant_id
        AND r.name = '{RunName.FORGET}' AND r.report ->> 'erasure' = e.id::text
    WHERE e.tenant_id = :tenant AND (CAST(:erasure AS uuid) IS NULL OR e.id = :erasure)
      AND (CAST(:before AS uuid) IS NULL OR (e.created_at, e.id) < (
          SELECT b.created_at, b.id FROM erasures b WHERE b.id = :before AND b.tenant_id = :tenant))
    ORDER BY e.created_at DESC, e.id DESC LIMIT :limit
    """
)
_SINCE = (
    select(erasures.c.id)
    .where(
        erasures.c.tenant_id == bindparam("tenant"),
        among(erasures.c.subject_digest, "digests"),
        erasures.c.created_at > bindparam("since"),
    )
    .order_by(erasures.c.created_at.desc())
    .limit(1)
)
_IDS = select(erasures.c.id).where(erasures.c.tenant_id == bindparam("tenant"))
_NAMES: dict[Subject, Select[Any]] = {
    Subject.USER: select(users.c.name).where(users.c.tenant_id == bindparam("tenant")),
    Subject.AGENT: select(agents.c.name).where(agents.c.tenant_id == bindparam("tenant")),
    Subject.SESSION: select(agents.c.name, users.c.name, sessions.c.name)
    .join_from(sessions, scopes, scopes.c.id == sessions.c.scope_id)
    .join(agents, agents.c.id == scopes.c.agent_id)
    .outerjoin(users, users.c.id == scopes.c.user_id)
    .where(sessions.c.tenant_id == bindparam("tenant")),
    Subject.TURN: select(turns.c.id).where(turns.c.tenant_id == bindparam("tenant")),
    Subject.MEMORY: select(memories.c.id).where(memories.c.tenant_id == bindparam("tenant")),
}


def record(
    connection: Connection,
    tenant_id: int,
    *,
    of: Subject,
    digests: Sequence[bytes],
    counts: Mapping[str, int],
) -> Receipt:
    """Write a receipt down. The row has only the first digest; the run's report has the others."""
    values = {
        "tenant": tenant_id,
        "tenant_id": tenant_id,
        "subject_digest": digests[0],
        "counts": dict(counts),
    }
    row = connection.execute(_RECORD, values).one()
    return Receipt(
        id=row.id,
        tenant_id=tenant_id,
        tenant=row.tenant,
        of=of,
        digests=tuple(digests),
        erased_at=row.created_at,
        counts=dict(counts),
    )


def record_again(connection: Connection, receipt: Receipt) -> None:
    """Write a receipt of a file down as it was first, which says that it has taken effect here."""
    # Two replays at once may both come here; the second one changes nothing.
    values = {
        "id": receipt.id,
        "tenant_id": receipt.tenant_id,
        "subject_digest": receipt.digests[0],
        "counts": dict(receipt.counts),
        "created_at": receipt.erased_at,
    }
    connection.execute(_RECORD_AGAIN, values)


def read(connection: Connection, erasure_id: UUID) -> Erasure | None:
    row = connection.execute(_READ, {"erasure": erasure_id}).one_or_none()
    return None if row is None else Erasure(**row._mapping)


def since(
    connection: Connection, tenant_id: int, digests: Sequence[bytes], *, since: datetime
) -> UUID | None:
    """The newest receipt of a subject that was erased after an instant."""
    values = {"tenant": tenant_id, "digests": list(digests), "since": since}
    return connection.execute(_SINCE, values).scalar_one_or_none()


def listed(
    connection: Connection, tenant_id: int, *, limit: int | None = None, before: UUID | None = None
) -> tuple[Receipt, ...]:
    """Receipts of the tenant, newest first: all of them, or so many. ``before`` is the last of the page before."""
    values = {"tenant": tenant_id, "limit": limit, "erasure": None, "before": before}
    return tuple(map(_receipt, connection.execute(_RECEIPTS, values)))


def read_receipt(connection: Connection, tenant_id: int, erasure_id: UUID) -> Receipt | None:
    """One receipt with its digests."""
    values = {"tenant": tenant_id, "limit": 1, "erasure": erasure_id, "before": None}
    row = connection.execute(_RECEIPTS, values).one_or_none()
    return None if row is None else _receipt(row)


def _receipt(row: Row[Any]) -> Receipt:
    # Old runs are deleted after a while. Without its run a receipt has no kind, and one digest.
    digests = tuple(bytes.fromhex(digest) for digest in row.digests or ())
    return Receipt(
        id=row.id,
        tenant_id=row.tenant_id,
        tenant=row.tenant,
        of=None if row.of is None else Subject(row.of),
        digests=digests or (bytes(row.subject_digest),),
        erased_at=row.created_at,
        counts=row.counts,
    )


def ids(connection: Connection, tenant_id: int) -> frozenset[UUID]:
    """Ids of all receipts of the tenant."""
    return frozenset(connection.execute(_IDS, {"tenant": tenant_id}).scalars())


def names(connection: Connection, tenant_id: int, of: Subject) -> Iterator[str]:
    """What each user, session, turn or memory of the tenant is called in a digest."""
    # A tenant may have millions of turns, so they come from a cursor on the server.
    options = {"stream_results": True, "yield_per": BATCH}
    with connection.execute(_NAMES[of], {"tenant": tenant_id}, execution_options=options) as rows:
        for row in rows:
            yield session_name(*row) if of is Subject.SESSION else str(row[0])
