"""Runs of jobs, and when a periodic job is due next."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from memory_app.db.literals import literals
from memory_app.db.tables.schema import (
    JSON_VALUE,
    NO_FIELDS,
    changes,
    count,
    found_by,
    instant,
    metadata,
    of_scope,
    reference,
    tenant,
    tenant_of_scope,
    time_ordered,
    xact,
)
from memory_app.records.run import RunName, RunState

runs = Table(
    "runs",
    metadata,
    time_ordered(),
    tenant(),
    Column("scope_id", BigInteger),
    Column("session_id", BigInteger),
    Column("name", Text, nullable=False),
    Column("period", Text),
    Column("state", Text, nullable=False),
    Column("options", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    Column("from_seq", Integer),
    Column("to_seq", Integer),
    Column("answer", JSON_VALUE),
    Column("report", JSON_VALUE),
    Column("reason", Text),
    Column("model", Text),
    Column("prompt_version", Text),
    count("attempts"),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    instant("lease_until"),
    instant("due_at"),
    count("starts"),
    instant("failing_since"),
    instant("created_at", now=True),
    instant("started_at"),
    instant("finished_at"),
    instant("kept_at"),
    # That asked for it, if one did, and the task that did it last.
    Column("request_id", Uuid),
    Column("task_id", Uuid),
    Column("waits_for_cap", Boolean, nullable=False, server_default=text("false")),
    xact("created_xact", now=True),
    # Of its end, or of its undo.
    xact("finished_xact"),
    PrimaryKeyConstraint("id"),
    ForeignKeyConstraint(
        ["tenant_id", "scope_id"],
        ["scopes.tenant_id", "scopes.id"],
        name="runs_scope_fkey",
        ondelete="CASCADE",
    ),
    reference("runs_session_id_fkey", ("scope_id", "session_id"), "sessions"),
    # What a run did refers to it.
    UniqueConstraint("id", "tenant_id", name="runs_reference_key"),
    CheckConstraint(f"state IN ({literals(RunState)})", name="state"),
    CheckConstraint(f"state <> '{RunState.FAILED}' OR reason IS NOT NULL", name="reason"),
    # One run of a job for each scope and period, however many Beats and finders ask for it. A job without a scope
    # counts too, hence NULLS NOT DISTINCT.
    Index(
        "runs_period_key",
        "tenant_id",
        "name",
        "scope_id",
        "period",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("period IS NOT NULL"),
    ),
    Index(
        "runs_extract_key",
        "session_id",
        "from_seq",
        unique=True,
        postgresql_where=text(f"name = '{RunName.EXTRACT}' AND state = '{RunState.RUNNING}'"),
    ),
    Index("runs_cap_idx", "tenant_id", postgresql_where=text("waits_for_cap")),
    Index("runs_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    # The oldest first; one that was looked at and kept counts from then.
    Index(
        "runs_finished_idx",
        text("(coalesce(kept_at, finished_at))"),
        postgresql_where=text("finished_at IS NOT NULL"),
    ),
    Index("runs_scope_idx", "scope_id", "created_at"),
    # Serves the end of a tenant, and nothing else: row-level security names the tenant in every statement, so a planner
    # without statistics would take a B-tree of it for finding one run, and read all of the tenant's.
    Index("runs_tenant_idx", "tenant_id", postgresql_using="brin"),
    Index("runs_session_idx", "scope_id", "session_id"),
    # What an extraction does is seen in its turns.
    changes("runs", "created_xact", only=f"name <> '{RunName.EXTRACT}'"),
    changes("runs", "finished_xact", only=f"name <> '{RunName.EXTRACT}'"),
    found_by("runs_request_idx", "request_id"),
    found_by("runs_task_idx", "task_id"),
)

schedules = Table(
    "schedules",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("job", Text, nullable=False),
    instant("due_at"),
    count("missed"),
    PrimaryKeyConstraint("scope_id", "job"),
    of_scope(),
    Index("schedules_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)
"""When a periodic job of a scope is next due; without a time it waits until something happens there."""
