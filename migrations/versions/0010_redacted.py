"""How many private parts of which kind were taken out of a turn before it was stored."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE turns ADD COLUMN redacted jsonb")


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
