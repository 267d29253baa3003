"""The audit log."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, Uuid

from memory_app.db.tables.schema import instant, metadata, tenant

audit = Table(
    "audit",
    metadata,
    tenant(),
    Column("seq", BigInteger, nullable=False),
    instant("at", required=True),
    Column("key_id", BigInteger),
    Column("action", Text, nullable=False),
    Column("agent", Text),
    Column("subject", LargeBinary),
    Column("target", Text),
    Column("outcome", Text, nullable=False),
    Column("request_id", Uuid),
    Column("previous", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant_id", "seq"),
    # What was done about a person.
    Index("audit_subject_idx", "tenant_id", "subject", "seq"),
)
"""Who did what, in the home shard. The application reads it, and adds through a function of the database only."""
