"""Which sessions and runs wait because their tenant has spent what it may spend in a day."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE sessions ADD COLUMN waits_for_cap boolean NOT NULL DEFAULT false",
    "ALTER TABLE runs ADD COLUMN waits_for_cap boolean NOT NULL DEFAULT false",
    "CREATE INDEX sessions_cap_idx ON sessions (tenant_id) WHERE waits_for_cap",
    "CREATE INDEX runs_cap_idx ON runs (tenant_id) WHERE waits_for_cap",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
