"""Which request brought a turn or a run, and which task indexed the turn or did the run."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE turns ADD COLUMN request_id uuid, ADD COLUMN index_task_id uuid",
    "ALTER TABLE runs ADD COLUMN request_id uuid, ADD COLUMN task_id uuid",
    "CREATE INDEX turns_request_idx ON turns USING brin (request_id uuid_minmax_multi_ops) "
    "WITH (pages_per_range = 16)",
    "CREATE INDEX turns_task_idx ON turns USING brin (index_task_id uuid_minmax_multi_ops) "
    "WITH (pages_per_range = 16)",
    "CREATE INDEX runs_request_idx ON runs USING brin (request_id uuid_minmax_multi_ops) "
    "WITH (pages_per_range = 16)",
    "CREATE INDEX runs_task_idx ON runs USING brin (task_id uuid_minmax_multi_ops) WITH (pages_per_range = 16)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
