"""Names of users: what the app calls a person, and further names of theirs."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE users ADD COLUMN label text, ADD COLUMN aliases text[] NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
