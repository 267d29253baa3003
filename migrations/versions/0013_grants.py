"""Grants: what one agent knows of a person that another agent may recall."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE grants (
        tenant_id bigint NOT NULL,
        scope_id bigint NOT NULL,
        to_scope_id bigint NOT NULL,
        kinds text[] NOT NULL,
        until timestamp with time zone,
        created_at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT grants_pkey PRIMARY KEY (scope_id, to_scope_id),
        CONSTRAINT grants_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id)
            REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT grants_tenant_id_to_scope_fkey FOREIGN KEY (tenant_id, to_scope_id)
            REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT grants_kinds_check CHECK (cardinality(kinds) > 0
            AND kinds <@ ARRAY['expression', 'anchor', 'fact', 'artifact', 'episode']),
        CONSTRAINT grants_to_scope_id_check CHECK (to_scope_id <> scope_id)
    )""",
    "CREATE INDEX grants_to_scope_idx ON grants (to_scope_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
