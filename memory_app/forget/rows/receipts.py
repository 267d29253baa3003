"""Receipts of erasures, and the names and ids that a receipt is held against in a restored database.

A receipt is a row of `erasures`; of what kind it is and which rows went with a memory stands in the report of its run,
which is written in the same transaction and so at the same time (`created_at` of the run, `finished_at` here).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import insert

from memory_app.db.expressions import columns_of
from memory_app.db.tables.forget import erasures
from memory_app.db.tables.memories import memories
from memory_app.db.tables.tenancy import agents, scopes, tenants, users
from memory_app.db.tables.turns import sessions, turns
from memory_app.forget.receipt import ErasureState, Receipt, Subject, session_name
from memory_app.records.run import RunName

BATCH = 5_000
"""Names and ids fetched from the server at a time."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """A receipt as its tenant sees it: how many rows of which table went, and nothing of what they said."""

    id: UUID
    state: str
    counts: Mapping[str, int]
    created_at: datetime
    finished_at: datetime | None


_TENANT = select(tenants.c.name).where(tenants.c.id == bindparam("tenant")).scalar_subquery()
_RECORD = (
    insert(erasures)
    .values(state=ErasureState.DONE, finished_at=func.now())
    .returning(erasures.c.id, erasures.c.created_at, _TENANT.label("tenant"))
)
_RECORD_AGAIN = (
    insert(erasures)
    .values(state=ErasureState.DONE, finished_at=func.now())
    .on_conflict_do_nothing(index_elements=[erasures.c.id])
    .inline()
)
_READ = select(*columns_of(erasures, Erasure)).where(erasures.c.id == bindparam("erasure"))
_RECEIPTS = text(
    f"""
    SELECT e.id, e.tenant_id, t.name AS tenant, r.options ->> 'of' AS of, r.report -> 'digests' AS digests,
           e.subject_digest, e.created_at, e.counts
    FROM erasures e
    JOIN tenants t ON t.id = e.tenant_id
    LEFT JOIN runs r ON r.scope_id IS NULL AND r.created_at = e.finished_at AND r.tenant_id = e.tenant_id
        AND r.name = '{RunName.FORGET}' AND r.report ->> 'erasure' = e.id::text
    WHERE e.tenant_id = :tenant
    ORDER BY e.created_at DESC, e.id DESC LIMIT :limit
    """
)
_IDS = select(erasures.c.id).where(erasures.c.tenant_id == bindparam("tenant"))
_NAMES: dict[Subject, Select[Any]] = {
    Subject.USER: select(users.c.name).where(users.c.tenant_id == bindparam("tenant")),
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
    """Write a receipt down. Of what was named only the first digest is kept here; the run's report has the others."""
    values = {
        "tenant": tenant_id,
        "tenant_id": tenant_id,
        "subject_digest": digests[0],
        "counts": dict(counts),
    }
    row = connection.execute(_RECORD, values).one()
    return Receipt(row.id, tenant_id, row.tenant, of, tuple(digests), row.created_at, dict(counts))


def record_again(connection: Connection, receipt: Receipt) -> None:
    """Write a receipt of a file down as it was first, which says that it has taken effect here."""
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


def listed(connection: Connection, tenant_id: int, *, limit: int | None = None) -> tuple[Receipt, ...]:
    """Receipts of the tenant, newest first: all of them, or so many."""
    rows = connection.execute(_RECEIPTS, {"tenant": tenant_id, "limit": limit})
    return tuple(
        Receipt(
            row.id,
            row.tenant_id,
            row.tenant,
            None if row.of is None else Subject(row.of),
            tuple(bytes.fromhex(digest) for digest in row.digests or ()) or (bytes(row.subject_digest),),
            row.created_at,
            row.counts,
        )
        for row in rows
    )


def ids(connection: Connection, tenant_id: int) -> frozenset[UUID]:
    """Ids of all receipts of the tenant."""
    return frozenset(connection.execute(_IDS, {"tenant": tenant_id}).scalars())


def names(connection: Connection, tenant_id: int, of: Subject) -> Iterator[str]:
    """What each user, session, turn or memory of the tenant is called in a digest, without holding all of them."""
    options = {"stream_results": True, "yield_per": BATCH}
    with connection.execute(_NAMES[of], {"tenant": tenant_id}, execution_options=options) as rows:
        for row in rows:
            yield session_name(*row) if of is Subject.SESSION else str(row[0])
