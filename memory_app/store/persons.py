"""Everything that is stored about one person, gone in one transaction; and the receipts of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from uuid import UUID

from sqlalchemy import Connection, text

TABLES = (
    "feedback",
    "evidence",
    "mentions",
    "links",
    "checkpoints",
    "memories",
    "entities",
    "turns",
    "terms",
    "speakers",
    "runs",
    "sessions",
)
"""What hangs on a scope and is counted in a receipt, in an order in which no row still refers to one that is gone."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """A receipt: how many rows of which table went, and nothing of what they said."""

    id: UUID
    state: str
    counts: Mapping[str, int]
    created_at: datetime
    finished_at: datetime | None


_USER = text("SELECT id FROM users WHERE tenant_id = :tenant AND name = :user FOR NO KEY UPDATE")
_SCOPES = text(
    "SELECT id FROM scopes WHERE tenant_id = :tenant AND user_id = :user ORDER BY id FOR NO KEY UPDATE"
)
_LOCK_SESSIONS = text("SELECT id FROM sessions WHERE scope_id = ANY(:scopes) ORDER BY id FOR UPDATE")
_COUNTS_ELSEWHERE = text(
    "DELETE FROM evidence WHERE turn_scope_id = ANY(:scopes) AND scope_id <> ALL(:scopes)"
)
_DELETE_SCOPES = text("DELETE FROM scopes WHERE tenant_id = :tenant AND id = ANY(:scopes)")
_DELETE_USER = text("DELETE FROM users WHERE tenant_id = :tenant AND id = :user")
_RECORD = text(
    """
    INSERT INTO erasures (tenant_id, subject_digest, state, counts, finished_at)
    VALUES (:tenant, :digest, 'done', CAST(:counts AS jsonb), now()) RETURNING id
    """
)
_READ = text("SELECT id, state, counts, created_at, finished_at FROM erasures WHERE id = :id")


def lock_user(connection: Connection, tenant_id: int, user: str) -> int | None:
    """The user's id, held until the end of the transaction; None for nobody we know."""
    return connection.execute(_USER, {"tenant": tenant_id, "user": user}).scalar_one_or_none()


def lock_scopes(connection: Connection, tenant_id: int, user_id: int) -> tuple[int, ...]:
    """The scopes of a user with all agents, and their sessions, held until the end of the transaction.

    Whoever is about to add a memory waits and then finds the scope gone; whoever adds turns is waited for.
    """
    scopes = tuple(connection.execute(_SCOPES, {"tenant": tenant_id, "user": user_id}).scalars())
    connection.execute(_LOCK_SESSIONS, {"scopes": list(scopes)})
    return scopes


def delete_user(
    connection: Connection, tenant_id: int, user_id: int, scope_ids: Sequence[int]
) -> dict[str, int]:
    """Delete the user and everything in the scopes; rows by table."""
    values = {"tenant": tenant_id, "user": user_id, "scopes": list(scope_ids)}
    counts = {"evidence elsewhere": connection.execute(_COUNTS_ELSEWHERE, values).rowcount}
    for table in TABLES:
        statement = text(f"DELETE FROM {table} WHERE tenant_id = :tenant AND scope_id = ANY(:scopes)")
        counts[table] = connection.execute(statement, values).rowcount
    counts["scopes"] = connection.execute(_DELETE_SCOPES, values).rowcount
    counts["users"] = connection.execute(_DELETE_USER, values).rowcount
    return {table: count for table, count in counts.items() if count}


def record(connection: Connection, tenant_id: int, *, of: str, name: str, counts: Mapping[str, int]) -> UUID:
    """Write a receipt; of the name only a digest is kept."""
    digest = blake2b(f"{tenant_id}:{of}:{name}".encode(), digest_size=16).digest()
    values = {"tenant": tenant_id, "digest": digest, "counts": json.dumps(dict(counts))}
    return connection.execute(_RECORD, values).scalar_one()  # type: ignore[no-any-return]


def read(connection: Connection, erasure_id: UUID) -> Erasure | None:
    row = connection.execute(_READ, {"id": erasure_id}).one_or_none()
    return None if row is None else Erasure(*row)
