"""The audit log."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE audit (
        tenant_id bigint NOT NULL,
        seq bigint NOT NULL,
        at timestamp with time zone NOT NULL,
        key_id bigint,
        action text NOT NULL,
        agent text,
        subject bytea,
        target text,
        outcome text NOT NULL,
        request_id uuid,
        previous bytea NOT NULL,
        digest bytea NOT NULL,
        CONSTRAINT audit_pkey PRIMARY KEY (tenant_id, seq),
        CONSTRAINT audit_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
    )""",
    "CREATE INDEX audit_subject_idx ON audit (tenant_id, subject, seq)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
