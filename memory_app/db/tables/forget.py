"""Receipts of erasures."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text

from memory_app.db.tables.schema import JSON_VALUE, NO_FIELDS, instant, metadata, tenant, time_ordered

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
    PrimaryKeyConstraint("id"),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="state"),
    Index("erasures_tenant_id_idx", "tenant_id"),
)
