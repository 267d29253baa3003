"""Limits of keys and tenants: requests and bytes a minute, tokens a day, stored turns and memories."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE tenants ADD COLUMN limits jsonb NOT NULL DEFAULT '{}'::jsonb",
    "ALTER TABLE api_keys ADD COLUMN limits jsonb NOT NULL DEFAULT '{}'::jsonb",
    """ALTER TABLE refused_messages DROP CONSTRAINT refused_messages_reason_check,
    ADD CONSTRAINT refused_messages_reason_check CHECK (reason IN
        ('sent_before_erasure', 'no_sent_at', 'turn_erased', 'rate_limited', 'quota_exceeded'))""",
    # Its result has more columns now; access.sql makes it again. A new shard has none yet, and its search path would
    # lead to that of the home shard.
    """DO $$ BEGIN EXECUTE format('DROP FUNCTION IF EXISTS %I.authenticate(bytea)', current_schema()); END $$""",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
