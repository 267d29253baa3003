"""Receipts of erasures, what must not come back after one, and messages that were refused.

All in the home shard: whoever comes back may come to another shard than before.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text

from memory_app.db.literals import literals
from memory_app.db.tables.schema import (
    JSON_VALUE,
    NO_FIELDS,
    changes,
    instant,
    metadata,
    tenant,
    time_ordered,
    xact,
)
from memory_app.records.erased import Refusal

erasures = Table(
    "erasures",
    metadata,
    time_ordered(),
    tenant(),
    Column("subject_digest", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("counts", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    instant("created_at", now=True),
    instant("finished_at"),
    xact("created_xact", now=True),
    PrimaryKeyConstraint("id"),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="state"),
    Index("erasures_tenant_id_idx", "tenant_id"),
    changes("erasures", "created_xact"),
    # When a name was erased last.
    Index("erasures_subject_idx", "tenant_id", "subject_digest", "created_at"),
)

erased_turns = Table(
    "erased_turns",
    metadata,
    tenant(),
    Column("digest", LargeBinary, nullable=False),
    instant("erased_at", now=True),
    PrimaryKeyConstraint("tenant_id", "digest"),
    # Those that are old enough to go.
    Index("erased_turns_age_idx", "tenant_id", "erased_at"),
)
"""Digests of turns that were erased, each with its idempotency key: the same turn sent again is not stored again."""

refused_messages = Table(
    "refused_messages",
    metadata,
    time_ordered(),
    tenant(),
    Column("message_id", Text, nullable=False),
    Column("reason", Text, nullable=False),
    instant("sent_at"),
    instant("refused_at", now=True),
    PrimaryKeyConstraint("id"),
    CheckConstraint(f"reason IN ({literals(Refusal)})", name="reason"),
    # A message may be delivered twice.
    Index("refused_messages_key", "tenant_id", "message_id", unique=True),
    Index("refused_messages_age_idx", "tenant_id", "refused_at"),
)
"""Messages of the broker that were refused for an erasure or a limit: their ids, and nothing of them."""
