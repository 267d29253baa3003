"""Keys for one agent or one person. Rights apart: a key that could write could record and erase, and still can."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE api_keys ADD COLUMN agent_name text, ADD COLUMN user_name text",
    # The owner makes these rows, so it sees them. The release before passes over rights that it does not know.
    """UPDATE api_keys SET rights = rights || '{record,erase}' WHERE 'write' = ANY(rights)""",
    # Its result has more columns now; access.sql makes it again. A new shard has none yet, and its search path would
    # lead to that of the home shard.
    """DO $$ BEGIN EXECUTE format('DROP FUNCTION IF EXISTS %I.authenticate(bytea)', current_schema()); END $$""",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
