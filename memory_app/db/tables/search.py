"""What search needs besides vectors: document frequencies, the models of a scope, its size, who spoke in it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from memory_app.db.tables.schema import metadata, of_scope, tenant_of_scope

terms = Table(
    "terms",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("term", Integer, nullable=False),
    Column("row_count", Integer, nullable=False),
    PrimaryKeyConstraint("scope_id", "term"),
    of_scope(),
    # Counts change with every row that is indexed; with room on its page, a new version touches no index.
    postgresql_with={"fillfactor": "70"},
)

scope_models = Table(
    "scope_models",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("model", Text, nullable=False),
    Column("is_indexed", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("scope_id", "model"),
    of_scope(),
    Index("scope_models_model_idx", "model", "scope_id"),
)

scope_sizes = Table(
    "scope_sizes",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("row_count", Integer, nullable=False),
    PrimaryKeyConstraint("scope_id"),
    of_scope(),
    Index("scope_sizes_row_count_idx", "row_count"),
)
"""How many rows a scope holds, about: noted at every 64th. The exact number is a count in `terms`, which is written
with every row; an index on it would have to follow."""

speakers = Table(
    "speakers",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("scope_id", "name"),
    of_scope(),
)
