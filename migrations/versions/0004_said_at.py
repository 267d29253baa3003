"""When a memory was first said, the zone in which a person speaks where none is set, and entities by first word."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE memories ADD COLUMN first_confirmed_at timestamptz",
    "ALTER TABLE users ADD COLUMN zone_is_set boolean NOT NULL DEFAULT false, ADD COLUMN utc_offset text",
    'CREATE INDEX entities_first_word_idx ON entities (scope_id, key COLLATE "C")',
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
