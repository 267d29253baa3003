"""Webhooks, and the log of their deliveries."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE TABLE webhooks (
        id uuid DEFAULT new_id() NOT NULL,
        tenant_id bigint NOT NULL,
        url text NOT NULL,
        description text,
        types text[],
        agent_name text,
        user_name text,
        created_at timestamp with time zone DEFAULT now() NOT NULL,
        salt bytea NOT NULL,
        made_with bytea NOT NULL,
        previous_salt bytea,
        previous_made_with bytea,
        previous_until timestamp with time zone,
        position text NOT NULL,
        batch_id uuid,
        batch_end text,
        waiting_since timestamp with time zone,
        attempts integer DEFAULT 0 NOT NULL,
        failing_since timestamp with time zone,
        due_at timestamp with time zone DEFAULT now(),
        paused_reason text,
        lease_until timestamp with time zone,
        fence bigint DEFAULT 0 NOT NULL,
        CONSTRAINT webhooks_pkey PRIMARY KEY (id),
        CONSTRAINT webhooks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
        CONSTRAINT webhooks_tenant_id_id_key UNIQUE (tenant_id, id),
        CONSTRAINT webhooks_paused_check CHECK ((due_at IS NULL) = (paused_reason IS NOT NULL)),
        CONSTRAINT webhooks_batch_check CHECK ((batch_id IS NULL) = (batch_end IS NULL))
    )""",
    "CREATE INDEX webhooks_tenant_due_idx ON webhooks (tenant_id, due_at) WHERE due_at IS NOT NULL",
    """CREATE TABLE deliveries (
        id uuid DEFAULT new_id() NOT NULL,
        tenant_id bigint NOT NULL,
        webhook_id uuid NOT NULL,
        message_id uuid NOT NULL,
        from_event text,
        to_event text,
        events integer DEFAULT 0 NOT NULL,
        attempt integer DEFAULT 1 NOT NULL,
        outcome text NOT NULL,
        status integer,
        duration_ms integer DEFAULT 0 NOT NULL,
        at timestamp with time zone DEFAULT now() NOT NULL,
        CONSTRAINT deliveries_pkey PRIMARY KEY (id),
        CONSTRAINT deliveries_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
        CONSTRAINT deliveries_webhook_fkey FOREIGN KEY (tenant_id, webhook_id)
            REFERENCES webhooks (tenant_id, id) ON DELETE CASCADE
    )""",
    "CREATE INDEX deliveries_webhook_idx ON deliveries (webhook_id, id)",
    "CREATE INDEX deliveries_tenant_idx ON deliveries (tenant_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
