"""When the words of a turn were deleted because the agent's policy limits how long they are kept."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE turns ADD COLUMN IF NOT EXISTS words_deleted_at timestamp with time zone",
    "CREATE INDEX IF NOT EXISTS turns_words_idx ON turns (scope_id, accepted_at) WHERE words_deleted_at IS NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
