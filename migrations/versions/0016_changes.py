"""The transactions in which rows changed, from which events are read in the order in which changes became visible.

Rows that are there have none: events begin with this revision. On a database with millions of turns make the indexes
before, ``CONCURRENTLY``, after the columns.
"""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

COLUMNS = {
    "turns": ("accepted_xact", "indexed_xact", "settled_xact"),
    "memories": ("stored_xact", "altered_xact"),
    "runs": ("created_xact", "finished_xact"),
    "erasures": ("created_xact",),
}
OF_INSERT = ("accepted_xact", "stored_xact", "created_xact")


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        added = ", ".join(f"ADD COLUMN IF NOT EXISTS {column} bigint" for column in columns)
        op.execute(f"ALTER TABLE {table} {added}")
        only = " AND name <> 'extract'" if table == "runs" else ""
        for column in columns:
            # Apart from the column: as its default it would be computed for every row that is there.
            if column in OF_INSERT:
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT xact_number()")
            op.execute(
                f"""CREATE INDEX IF NOT EXISTS {table}_{column}_idx ON {table} (tenant_id, {column}, id)
                WHERE {column} IS NOT NULL{only}"""
            )


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
