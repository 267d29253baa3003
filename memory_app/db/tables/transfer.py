"""Checkpoints."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from memory_app.db.tables.schema import JSON_VALUE, instant, metadata, of_scope, tenant_of_scope, time_ordered

checkpoints = Table(
    "checkpoints",
    metadata,
    time_ordered(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("session_name", Text),
    Column("content", JSON_VALUE, nullable=False),
    instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "id"),
    of_scope(),
)
