"""Shards: the list of them, the one that each user is in, and ids that name the shard in which they were made.

Idempotency keys are unique for a tenant and a user from here on. Turns that are there stay without their user, which is
looked up by their scope; for those of the release before, which works on beside this one, ``access.sql`` has a trigger.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE shards (
        id smallint NOT NULL,
        revision text,
        is_open boolean DEFAULT true NOT NULL,
        created_at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT shards_pkey PRIMARY KEY (id)
    )""",
    "ALTER TABLE users ADD COLUMN shard smallint NOT NULL DEFAULT 0",
    "CREATE INDEX users_shard_idx ON users (shard)",
    "ALTER TABLE turns ADD COLUMN user_id bigint",
    """CREATE UNIQUE INDEX turns_user_idempotency_key ON turns (tenant_id, idempotency_key, user_id)
    WHERE idempotency_key IS NOT NULL""",
    "DROP INDEX turns_idempotency_key",
    *(
        f"ALTER TABLE {table} ALTER COLUMN id SET DEFAULT new_id()"
        for table in ("checkpoints", "erasures", "memories", "runs", "turns")
    ),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
