"""Shards on other servers: on which one each is, and the decisions about transactions over several servers."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE shards ADD COLUMN IF NOT EXISTS server text",
    "ALTER TABLE shards ADD COLUMN IF NOT EXISTS moves_to text",
    "ALTER TABLE shards ADD COLUMN IF NOT EXISTS is_closed boolean DEFAULT false NOT NULL",
    """CREATE TABLE IF NOT EXISTS decisions (
        id uuid NOT NULL,
        is_commit boolean DEFAULT true NOT NULL,
        decided_at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT decisions_pkey PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS decisions_decided_idx ON decisions (decided_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
