"""Checkpoints, and files that wait to be imported."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from memory_app.db.tables.schema import (
    JSON_VALUE,
    instant,
    metadata,
    of_scope,
    reference,
    tenant_of_scope,
    time_ordered,
)

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

import_parts = Table(
    "import_parts",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("scope_id", "run_id", "number"),
    of_scope(),
    reference("import_parts_run_id_fkey", ("run_id",), "runs"),
    Index("import_parts_run_idx", "run_id", "number"),
)
"""A file of another program, in parts, until the run that imports it has ended."""
