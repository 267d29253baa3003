"""The tenant in every foreign key: an insert could tell whether another tenant has an id, and name its turn or run.

The indexes that found rows by their id alone make room for unique ones that begin with it; one that an operator made
before, under its name here, is taken. Each reference keeps its name, and holds at once for what is written: `memory
migrate` looks at the rows that are there afterwards, when the tables are no longer locked.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

KEYS = {
    "memories": "id, scope_id, tenant_id",
    "turns": "id, scope_id, tenant_id",
    "sessions": "id, scope_id, tenant_id",
    "entities": "id, scope_id, tenant_id",
    "runs": "id, tenant_id",
}
REFERENCES = (
    ("entities", "merged_into", "scope_id, merged_into", "entities", ""),
    ("evidence", "memory_id", "scope_id, memory_id", "memories", "ON DELETE CASCADE"),
    ("evidence", "turn_id", "turn_scope_id, turn_id", "turns", "ON DELETE CASCADE"),
    ("feedback", "memory_id", "scope_id, memory_id", "memories", "ON DELETE CASCADE"),
    ("feedback", "turn_id", "scope_id, turn_id", "turns", "ON DELETE CASCADE"),
    ("images", "run_id", "run_id", "runs", "ON DELETE CASCADE"),
    ("links", "source_id", "scope_id, source_id", "memories", "ON DELETE CASCADE"),
    ("links", "target_id", "scope_id, target_id", "memories", "ON DELETE CASCADE"),
    ("memories", "session_id", "scope_id, session_id", "sessions", "ON DELETE CASCADE"),
    ("memories", "successor", "scope_id, successor", "memories", "ON DELETE SET NULL (successor)"),
    ("mentions", "entity_id", "scope_id, entity_id", "entities", "ON DELETE CASCADE"),
    ("mentions", "memory_id", "scope_id, memory_id", "memories", "ON DELETE CASCADE"),
    ("runs", "session_id", "scope_id, session_id", "sessions", "ON DELETE CASCADE"),
    ("turns", "session_id", "scope_id, session_id", "sessions", "ON DELETE CASCADE"),
)
"""Table, the column that its constraint is named after, columns, the table referred to, and what its deletion does."""


def upgrade() -> None:
    for table, columns in KEYS.items():
        key = f"{table}_reference_key"
        op.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {key} ON {table} ({columns})")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {key} UNIQUE USING INDEX {key}")
    for table in ("memories", "turns", "sessions"):
        op.execute(f"DROP INDEX {table}_id_idx")
    for table, column, columns, target, action in REFERENCES:
        name = f"{table}_{column}_fkey"
        keys = "tenant_id, id" if target == "runs" else "tenant_id, scope_id, id"
        op.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} "
            f"FOREIGN KEY (tenant_id, {columns}) REFERENCES {target} ({keys}) {action} NOT VALID"
        )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
