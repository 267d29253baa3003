"""Files of other programs that wait to be imported."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE import_parts (
        tenant_id bigint NOT NULL,
        scope_id bigint NOT NULL,
        run_id uuid NOT NULL,
        number integer NOT NULL,
        content bytea NOT NULL,
        CONSTRAINT import_parts_pkey PRIMARY KEY (scope_id, run_id, number),
        CONSTRAINT import_parts_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id)
            REFERENCES scopes (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT import_parts_run_id_fkey FOREIGN KEY (tenant_id, run_id)
            REFERENCES runs (tenant_id, id) ON DELETE CASCADE
    )""",
    "CREATE INDEX import_parts_run_idx ON import_parts (run_id, number)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
