"""Webhooks, how far each has come, and the log of their latest deliveries."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from memory_app.db.tables.schema import NOW, count, instant, metadata, reference, tenant, time_ordered

webhooks = Table(
    "webhooks",
    metadata,
    time_ordered(),
    tenant(),
    Column("url", Text, nullable=False),
    Column("description", Text),
    # Which events, as for any listener; NULL: all.
    Column("types", ARRAY(Text)),
    Column("agent_name", Text),
    Column("user_name", Text),
    instant("created_at", now=True),
    # Of the secret, see `memory_app.events.webhooks.secret`; the one before signs too until then.
    Column("salt", LargeBinary, nullable=False),
    Column("made_with", LargeBinary, nullable=False),
    Column("previous_salt", LargeBinary),
    Column("previous_made_with", LargeBinary),
    instant("previous_until"),
    # Cursor of `memory_app.events`: everything up to here was delivered.
    Column("position", Text, nullable=False),
    # What is being delivered: its id, which stays over all tries, and the cursor at which it ends.
    Column("batch_id", Uuid),
    Column("batch_end", Text),
    # Time of its first event.
    instant("waiting_since"),
    count("attempts"),
    # The first failure after which none succeeded.
    instant("failing_since"),
    # NULL: paused, for the reason beside it.
    Column("due_at", DateTime(timezone=True), server_default=NOW),
    Column("paused_reason", Text),
    instant("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "id", name="webhooks_tenant_id_id_key"),
    CheckConstraint("(due_at IS NULL) = (paused_reason IS NOT NULL)", name="paused"),
    CheckConstraint("(batch_id IS NULL) = (batch_end IS NULL)", name="batch"),
    Index("webhooks_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)
"""In the home shard. An event costs no row here: a webhook reads on from its position."""

deliveries = Table(
    "deliveries",
    metadata,
    time_ordered(),
    tenant(),
    Column("webhook_id", Uuid, nullable=False),
    Column("message_id", Uuid, nullable=False),
    # Ids of the first and the last event; NULL for a ping.
    Column("from_event", Text),
    Column("to_event", Text),
    count("events"),
    count("attempt", start=1),
    Column("outcome", Text, nullable=False),
    Column("status", Integer),
    count("duration_ms"),
    instant("at", now=True),
    PrimaryKeyConstraint("id"),
    reference("deliveries_webhook_fkey", ("webhook_id",), "webhooks"),
    Index("deliveries_webhook_idx", "webhook_id", "id"),
    # Serves the end of a tenant.
    Index("deliveries_tenant_idx", "tenant_id"),
)
"""The latest tries of each webhook, no more than a number; ids and outcomes only."""
