"""Indexes that find what is due without walking past what is not, tenant by tenant, and notes of how big a scope is.

The indexes that these replace go at once: functions of ``access.sql`` used them, and nothing of the release before.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    """CREATE INDEX turns_waiting_idx ON turns (tenant_id, (coalesce(lease_until, '-infinity'::timestamptz)), id)
    WHERE indexed_at IS NULL AND failed_at IS NULL""",
    """CREATE INDEX turns_suspect_idx ON turns (lease_until)
    WHERE indexed_at IS NULL AND failed_at IS NULL AND starts > 0""",
    """CREATE INDEX turns_set_aside_idx ON turns (tenant_id, id)
    WHERE failed_at IS NOT NULL AND extracted_at IS NULL""",
    "DROP INDEX turns_failed_idx",
    "CREATE INDEX turns_searched_idx ON turns (scope_id, accepted_at) WHERE keywords IS NOT NULL",
    "ALTER TABLE sessions ADD COLUMN asked_seq integer NOT NULL DEFAULT 0",
    "CREATE INDEX sessions_tenant_due_idx ON sessions (tenant_id, due_at) WHERE due_at IS NOT NULL",
    "DROP INDEX sessions_due_idx",
    """CREATE INDEX sessions_unasked_idx
    ON sessions (tenant_id, (CASE WHEN ended_at IS NULL THEN last_activity_at ELSE '-infinity'::timestamptz END))
    WHERE due_at IS NULL AND synthesized_seq < next_seq - 1 AND asked_seq < next_seq - 1""",
    "ALTER TABLE runs ADD COLUMN kept_at timestamptz",
    "CREATE INDEX runs_tenant_due_idx ON runs (tenant_id, due_at) WHERE due_at IS NOT NULL",
    "DROP INDEX runs_due_idx",
    "CREATE INDEX runs_finished_idx ON runs ((coalesce(kept_at, finished_at))) WHERE finished_at IS NOT NULL",
    # A memory names the run that made it also when that is no longer kept; to take the name out would rewrite the row.
    "ALTER TABLE memories DROP CONSTRAINT memories_run_id_fkey",
    """CREATE INDEX memories_fact_idx ON memories (scope_id, subject_key, relation, object_key, valid_from)
    WHERE subject_key IS NOT NULL""",
    "DROP INDEX memories_subject_idx",
    "CREATE INDEX schedules_tenant_due_idx ON schedules (tenant_id, due_at) WHERE due_at IS NOT NULL",
    "DROP INDEX schedules_due_idx",
    "ALTER TABLE scopes ADD COLUMN most_memories integer, ADD COLUMN most_links integer",
    "CREATE INDEX scope_models_model_idx ON scope_models (model, scope_id)",
    """CREATE TABLE scope_sizes (
        tenant_id bigint NOT NULL,
        scope_id bigint NOT NULL,
        row_count integer NOT NULL,
        CONSTRAINT scope_sizes_pkey PRIMARY KEY (scope_id),
        CONSTRAINT scope_sizes_tenant_id_fkey FOREIGN KEY (tenant_id, scope_id)
            REFERENCES scopes (tenant_id, id) ON DELETE CASCADE
    )""",
    "CREATE INDEX scope_sizes_row_count_idx ON scope_sizes (row_count)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup of the revision before")
