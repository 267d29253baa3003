"""The place in listings of a turn that replaced another."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE turns ADD COLUMN IF NOT EXISTS place integer")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
