"""What was erased and must not come back: digests of turns, and messages of the broker that were refused.

On a database with millions of receipts make the index before, ``CONCURRENTLY``.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE erased_turns (
        tenant_id bigint NOT NULL,
        digest bytea NOT NULL,
        erased_at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT erased_turns_pkey PRIMARY KEY (tenant_id, digest),
        CONSTRAINT erased_turns_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
    )""",
    "CREATE INDEX erased_turns_age_idx ON erased_turns (tenant_id, erased_at)",
    """CREATE TABLE refused_messages (
        id uuid DEFAULT new_id() NOT NULL,
        tenant_id bigint NOT NULL,
        message_id text NOT NULL,
        reason text NOT NULL,
        sent_at timestamp with time zone,
        refused_at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT refused_messages_pkey PRIMARY KEY (id),
        CONSTRAINT refused_messages_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
        CONSTRAINT refused_messages_reason_check
            CHECK (reason IN ('sent_before_erasure', 'no_sent_at', 'turn_erased'))
    )""",
    "CREATE UNIQUE INDEX refused_messages_key ON refused_messages (tenant_id, message_id)",
    "CREATE INDEX refused_messages_age_idx ON refused_messages (tenant_id, refused_at)",
    "CREATE INDEX IF NOT EXISTS erasures_subject_idx ON erasures (tenant_id, subject_digest, created_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
