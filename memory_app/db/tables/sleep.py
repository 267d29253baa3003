"""What a job changed, so that it can be undone."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from memory_app.db.literals import literals
from memory_app.db.tables.schema import JSON_VALUE, metadata, of_scope, reference, serial, tenant_of_scope
from memory_app.records.run import Change

images = Table(
    "images",
    metadata,
    serial(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("source", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("row_key", JSON_VALUE, nullable=False),
    Column("before", JSON_VALUE),
    Column("after", JSON_VALUE),
    PrimaryKeyConstraint("scope_id", "id"),
    of_scope(),
    reference("images_run_id_fkey", ("run_id",), "runs"),
    CheckConstraint(f"change IN ({literals(Change)})", name="change"),
    Index("images_run_idx", "run_id", "id"),
)
"""What a job changed, row by row and without any text: enough to put everything back."""
