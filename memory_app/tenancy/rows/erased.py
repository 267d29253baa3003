"""What was erased and must not come back: when a name was erased last, turns that were, messages that were refused.

Rows of the home shard, looked at from any shard: whoever comes back may come to another shard than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, text

from memory_app.db.expressions import before_if_given, columns_of
from memory_app.db.locks import locking
from memory_app.db.shards import directory_of
from memory_app.db.tables.forget import refused_messages
from memory_app.records.erased import Refusal

OLD_ROWS = 1_000
"""Most rows that are dropped for their age whenever some are added."""

# Two numbers make a lock of their own sort; 64 bits of a name's hash may be shared by two names, who then wait once.
_HOLD = locking("name", text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, :tenant))"))
_TAKE = locking("name", text("SELECT pg_advisory_xact_lock(hashtextextended(:name, :tenant))"))
_NEWEST = text(
    """
    SELECT max(created_at) AS erased_at, now() AS now FROM public.erasures
    WHERE tenant_id = :tenant AND subject_digest = ANY(CAST(:digests AS bytea[]))
    """
)
_ADD_TURNS = text(
    """
    INSERT INTO public.erased_turns (tenant_id, digest)
    SELECT DISTINCT CAST(:tenant AS bigint), d FROM unnest(CAST(:digests AS bytea[])) AS d
    ON CONFLICT (tenant_id, digest) DO UPDATE SET erased_at = excluded.erased_at
    """
)
_DROP_OLD_TURNS = text(
    """
    DELETE FROM public.erased_turns WHERE tenant_id = :tenant AND digest IN (
        SELECT digest FROM public.erased_turns WHERE tenant_id = :tenant AND erased_at < now() - :age
        ORDER BY erased_at LIMIT :most FOR UPDATE SKIP LOCKED)
    """
)
_ADD_MESSAGE = text(
    """
    INSERT INTO refused_messages (tenant_id, message_id, reason, sent_at)
    VALUES (:tenant, :message, :reason, :sent_at) ON CONFLICT (tenant_id, message_id) DO NOTHING
    """
)
_DROP_OLD_MESSAGES = text(
    """
    DELETE FROM refused_messages WHERE tenant_id = :tenant AND id IN (
        SELECT id FROM refused_messages WHERE tenant_id = :tenant AND refused_at < now() - :age
        ORDER BY refused_at LIMIT :most FOR UPDATE SKIP LOCKED)
    """
)


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message of the broker that was refused, by the id that its producer knows."""

    id: UUID
    message_id: str
    reason: Refusal
    sent_at: datetime | None
    refused_at: datetime


_LIST = (
    select(*columns_of(refused_messages, RefusedMessage))
    .where(
        refused_messages.c.tenant_id == bindparam("tenant"), before_if_given(refused_messages.c.id, "before")
    )
    .order_by(refused_messages.c.id.desc())
    .limit(bindparam("limit"))
)


def hold_name(connection: Connection, tenant_id: int, user: str) -> None:
    """Keep this person from being erased until the end of the transaction, also when nothing is stored of them yet."""
    directory_of(connection).execute(_HOLD, {"tenant": tenant_id, "name": user})


def take_name(connection: Connection, tenant_id: int, user: str) -> None:
    """Wait for those who hold the person's name, and let others wait until the end of the transaction."""
    directory_of(connection).execute(_TAKE, {"tenant": tenant_id, "name": user})


def newest(
    connection: Connection, tenant_id: int, digests: Sequence[bytes]
) -> tuple[datetime | None, datetime]:
    """When anything with one of the digests was erased last, or None; and the database's clock."""
    row = directory_of(connection).execute(_NEWEST, {"tenant": tenant_id, "digests": list(digests)}).one()
    return row.erased_at, row.now


def add_turns(connection: Connection, tenant_id: int, digests: Sequence[bytes], *, keep: timedelta) -> None:
    """Note turns that are erased; some of those that were noted longer ago than ``keep`` are dropped."""
    if not digests:
        return
    directory = directory_of(connection, writes=True)
    directory.execute(_DROP_OLD_TURNS, {"tenant": tenant_id, "age": keep, "most": OLD_ROWS + len(digests)})
    # In one order, as everywhere: two erasures of the same turns must not wait for each other in a circle.
    directory.execute(_ADD_TURNS, {"tenant": tenant_id, "digests": sorted(set(digests))})


def add_message(
    connection: Connection,
    tenant_id: int,
    *,
    message_id: str,
    reason: Refusal,
    sent_at: datetime | None,
    keep: timedelta,
) -> None:
    """List a refused message; some of those that were listed longer ago than ``keep`` are dropped."""
    connection.execute(_DROP_OLD_MESSAGES, {"tenant": tenant_id, "age": keep, "most": OLD_ROWS})
    values = {"tenant": tenant_id, "message": message_id, "reason": reason, "sent_at": sent_at}
    connection.execute(_ADD_MESSAGE, values)


def messages(
    connection: Connection, tenant_id: int, *, limit: int, before: UUID | None = None
) -> tuple[RefusedMessage, ...]:
    """Refused messages, newest first; ``before`` is the last id of the page before."""
    rows = connection.execute(_LIST, {"tenant": tenant_id, "limit": limit, "before": before})
    return tuple(RefusedMessage(**row._mapping) for row in rows)
