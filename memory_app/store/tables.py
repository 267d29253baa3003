"""The tables, as SQLAlchemy sees them. The migration is compared with this file by a test.

Three rules shape every table: the tenant stands in each row (row-level security reads it), keys of what grows begin
with ``scope_id`` (so that it can be partitioned or distributed by scope), and every referencing column has an index
(or erasing a person takes minutes).
"""

from __future__ import annotations

from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_name)s_idx",
    }
)

NOW = text("now()")
NO_TEXTS = text("'{}'::text[]")
NO_FIELDS = text("'{}'::jsonb")


def _instant(name: str, *, required: bool = False, now: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=not (required or now), server_default=NOW if now else None
    )


def _tenant() -> Column[int]:
    """The tenant where no scope stands beside it."""
    return Column("tenant_id", BigInteger, ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False)


def _tenant_of_scope() -> Column[int]:
    """The tenant where (tenant_id, scope_id) refers to a scope, which proves the tenant."""
    return Column("tenant_id", BigInteger, nullable=False)


def _serial() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), nullable=False)


def _time_ordered() -> Column[object]:
    return Column("id", Uuid, server_default=text("uuidv7()"), nullable=False)


def _count(name: str, *, start: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(start)))


def _of_scope() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "scope_id"], ["scopes.tenant_id", "scopes.id"], ondelete="CASCADE"
    )


tenants = Table(
    "tenants",
    metadata,
    _serial(),
    Column("name", Text, nullable=False, unique=True),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    _serial(),
    _tenant(),
    Column("prefix", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("rights", ARRAY(Text), nullable=False),
    Column("label", Text),
    _instant("created_at", now=True),
    _instant("expires_at"),
    _instant("revoked_at"),
    _instant("last_used_at"),
    PrimaryKeyConstraint("id"),
    Index("api_keys_tenant_id_idx", "tenant_id"),
)

agents = Table(
    "agents",
    metadata,
    _serial(),
    _tenant(),
    Column("name", Text, nullable=False),
    Column("persona", JSONB),
    Column("policy", JSONB, nullable=False, server_default=NO_FIELDS),
    Column("default_memories", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "name"),
    UniqueConstraint("tenant_id", "id", name="agents_tenant_id_id_key"),
)

users = Table(
    "users",
    metadata,
    _serial(),
    _tenant(),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False, server_default="UTC"),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "name"),
    UniqueConstraint("tenant_id", "id", name="users_tenant_id_id_key"),
)

scopes = Table(
    "scopes",
    metadata,
    _serial(),
    _tenant_of_scope(),
    Column("agent_id", BigInteger, nullable=False),
    Column("user_id", BigInteger),
    _instant("created_at", now=True),
    _instant("seeded_at"),
    # No more current memories and links than these are in the scope; NULL: not counted.
    Column("most_memories", Integer),
    Column("most_links", Integer),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("tenant_id", "id"),
    UniqueConstraint(
        "tenant_id", "agent_id", "user_id", name="scopes_agent_user_key", postgresql_nulls_not_distinct=True
    ),
    ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(
        ["tenant_id", "user_id"],
        ["users.tenant_id", "users.id"],
        name="scopes_tenant_id_user_fkey",
        ondelete="CASCADE",
    ),
    Index("scopes_tenant_user_idx", "tenant_id", "user_id"),
)

sessions = Table(
    "sessions",
    metadata,
    _serial(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    _count("next_seq", start=1),
    _count("extracted_seq"),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    _instant("lease_until"),
    _instant("due_at"),
    _instant("pending_since"),
    _count("starts"),
    _count("failures"),
    _count("refusals"),
    _instant("failing_since"),
    Column("parked_reason", Text),
    Column("replay_seqs", ARRAY(Integer), nullable=False, server_default=text("'{}'::integer[]")),
    _instant("created_at", now=True),
    _instant("last_activity_at", now=True),
    _instant("ended_at"),
    Column("summary", Text),
    Column("summary_id", Uuid),
    _count("synthesized_seq"),
    _count("asked_seq"),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "name"),
    _of_scope(),
    CheckConstraint("next_seq >= 1", name="next_seq"),
    CheckConstraint("extracted_seq >= 0 AND extracted_seq < next_seq", name="extracted_seq"),
    Index("sessions_id_idx", "id"),
    Index("sessions_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    # Those that a synthesis has to be asked for, the longest silent first; ended ones before all.
    Index(
        "sessions_unasked_idx",
        "tenant_id",
        text("(CASE WHEN ended_at IS NULL THEN last_activity_at ELSE '-infinity'::timestamptz END)"),
        postgresql_where=text(
            "due_at IS NULL AND synthesized_seq < next_seq - 1 AND asked_seq < next_seq - 1"
        ),
    ),
    postgresql_with={"fillfactor": "60"},
)

turns = Table(
    "turns",
    metadata,
    _time_ordered(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("session_id", BigInteger, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("text", Text, nullable=False),
    _instant("at", required=True),
    _instant("accepted_at", now=True),
    Column("emotional_tone", Text),
    Column("tools_used", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("metadata", JSONB, nullable=False, server_default=NO_FIELDS),
    Column("idempotency_key", Text),
    Column("request_hash", LargeBinary),
    _instant("lease_until"),
    Column("starts", SmallInteger, nullable=False, server_default=text("0")),
    Column("failures", SmallInteger, nullable=False, server_default=text("0")),
    _instant("indexed_at"),
    _instant("extracted_at"),
    Column("reason", Text),
    _instant("failed_at"),
    Column("failed_reason", Text),
    Column("embedding", HALFVEC()),
    Column("embedding_model", Text),
    Column("keywords", SPARSEVEC()),
    Column("terms", ARRAY(Integer)),
    Column("traits", SmallInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "session_id", "seq"),
    _of_scope(),
    ForeignKeyConstraint(
        ["scope_id", "session_id"],
        ["sessions.scope_id", "sessions.id"],
        name="turns_session_id_fkey",
        ondelete="CASCADE",
    ),
    CheckConstraint("role IN ('user', 'assistant', 'tool', 'system')", name="role"),
    CheckConstraint("(failed_at IS NULL) = (failed_reason IS NULL)", name="failed"),
    CheckConstraint("(idempotency_key IS NULL) = (request_hash IS NULL)", name="idempotency"),
    CheckConstraint("(embedding IS NULL) = (embedding_model IS NULL)", name="embedding"),
    Index("turns_id_idx", "id"),
    Index(
        "turns_idempotency_key",
        "tenant_id",
        "idempotency_key",
        unique=True,
        postgresql_where=text("idempotency_key IS NOT NULL"),
    ),
    Index("turns_unindexed_idx", "id", postgresql_where=text("indexed_at IS NULL AND failed_at IS NULL")),
    Index(
        "turns_fresh_idx",
        "scope_id",
        "id",
        postgresql_where=text("indexed_at IS NULL AND failed_at IS NULL"),
    ),
    # What waits to be indexed, tenant by tenant: who never waited for a retry first, then by when the wait is over.
    Index(
        "turns_waiting_idx",
        "tenant_id",
        text("(coalesce(lease_until, '-infinity'::timestamptz))"),
        "id",
        postgresql_where=text("indexed_at IS NULL AND failed_at IS NULL"),
    ),
    Index(
        "turns_suspect_idx",
        "lease_until",
        postgresql_where=text("indexed_at IS NULL AND failed_at IS NULL AND starts > 0"),
    ),
    Index(
        "turns_set_aside_idx",
        "tenant_id",
        "id",
        postgresql_where=text("failed_at IS NOT NULL AND extracted_at IS NULL"),
    ),
    # What is searched. A turn leaves it when it lapses, so that no scan comes by it any more.
    Index("turns_searched_idx", "scope_id", "accepted_at", postgresql_where=text("keywords IS NOT NULL")),
)

entities = Table(
    "entities",
    metadata,
    _serial(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("aliases", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("summary", Text),
    _instant("first_seen", required=True),
    _instant("last_seen", required=True),
    _count("mention_count"),
    Column("merged_into", BigInteger),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "key"),
    _of_scope(),
    ForeignKeyConstraint(
        ["scope_id", "merged_into"], ["entities.scope_id", "entities.id"], name="entities_merged_into_fkey"
    ),
    CheckConstraint("type IN ('person', 'place', 'org', 'project', 'thing', 'concept')", name="type"),
    CheckConstraint("merged_into <> id", name="merged_into"),
    Index(
        "entities_merged_into_idx",
        "scope_id",
        "merged_into",
        postgresql_where=text("merged_into IS NOT NULL"),
    ),
)

runs = Table(
    "runs",
    metadata,
    _time_ordered(),
    _tenant(),
    Column("scope_id", BigInteger),
    Column("session_id", BigInteger),
    Column("name", Text, nullable=False),
    Column("period", Text),
    Column("state", Text, nullable=False),
    Column("options", JSONB, nullable=False, server_default=NO_FIELDS),
    Column("from_seq", Integer),
    Column("to_seq", Integer),
    Column("answer", JSONB),
    Column("report", JSONB),
    Column("reason", Text),
    Column("model", Text),
    Column("prompt_version", Text),
    _count("attempts"),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    _instant("lease_until"),
    _instant("due_at"),
    _count("starts"),
    _instant("failing_since"),
    _instant("created_at", now=True),
    _instant("started_at"),
    _instant("finished_at"),
    _instant("kept_at"),
    PrimaryKeyConstraint("id"),
    ForeignKeyConstraint(
        ["tenant_id", "scope_id"],
        ["scopes.tenant_id", "scopes.id"],
        name="runs_scope_fkey",
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(
        ["scope_id", "session_id"],
        ["sessions.scope_id", "sessions.id"],
        name="runs_session_id_fkey",
        ondelete="CASCADE",
    ),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="state"),
    CheckConstraint("state <> 'failed' OR reason IS NOT NULL", name="reason"),
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
        postgresql_where=text("name = 'extract' AND state = 'running'"),
    ),
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
)

memories = Table(
    "memories",
    metadata,
    _time_ordered(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("session_id", BigInteger),
    Column("run_id", Uuid),
    Column("kind", Text, nullable=False),
    Column("subtype", Text),
    Column("text", Text, nullable=False),
    Column("canonical_key", Text, nullable=False),
    Column("subject", Text),
    Column("relation", Text),
    Column("object", Text),
    Column("subject_key", Text),
    Column("object_key", Text),
    Column("single_valued", Boolean, nullable=False, server_default=text("false")),
    Column("importance", SmallInteger, nullable=False),
    Column("confidence", REAL, nullable=False),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("origin", Text, nullable=False),
    Column("sources", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("emotional_state", JSONB),
    Column("relational_context", JSONB),
    Column("tags", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("synthesis_type", Text),
    _instant("valid_from", required=True),
    _instant("valid_until"),
    _instant("created_at", now=True),
    _instant("stored_at", now=True),
    _instant("last_seen", required=True),
    _instant("confirmed_at", required=True),
    _instant("last_recalled"),
    _count("repeat_count", start=1),
    _count("recall_count"),
    Column("feedback_score", REAL, nullable=False, server_default=text("0")),
    Column("successor", Uuid),
    _instant("retired_at"),
    Column("retired_reason", Text),
    Column("embedding", HALFVEC()),
    Column("embedding_model", Text),
    Column("keywords", SPARSEVEC()),
    Column("terms", ARRAY(Integer)),
    Column("traits", SmallInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("scope_id", "id"),
    _of_scope(),
    ForeignKeyConstraint(
        ["scope_id", "session_id"],
        ["sessions.scope_id", "sessions.id"],
        name="memories_session_id_fkey",
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(
        ["scope_id", "successor"],
        ["memories.scope_id", "memories.id"],
        name="memories_successor_fkey",
        ondelete="SET NULL (successor)",
    ),
    CheckConstraint("valid_until >= valid_from", name="validity"),
    CheckConstraint("(retired_at IS NULL) = (retired_reason IS NULL)", name="retired"),
    CheckConstraint(
        "retired_reason IN ('merged', 'superseded', 'evicted', 'expired', 'invalidated')",
        name="retired_reason",
    ),
    CheckConstraint("importance BETWEEN 1 AND 10", name="importance"),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
    CheckConstraint("feedback_score BETWEEN -1 AND 1", name="feedback_score"),
    CheckConstraint("origin IN ('declared', 'extracted', 'synthesized', 'imported')", name="origin"),
    CheckConstraint("(embedding IS NULL) = (embedding_model IS NULL)", name="embedding"),
    CheckConstraint(
        "NOT single_valued OR (subject_key IS NOT NULL AND relation IS NOT NULL)", name="single_valued"
    ),
    Index(
        "memories_current_key",
        "scope_id",
        "session_id",
        "kind",
        "canonical_key",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("valid_until IS NULL AND retired_at IS NULL"),
    ),
    Index(
        "memories_single_valued_key",
        "scope_id",
        "session_id",
        "kind",
        "subject_key",
        "relation",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("single_valued AND valid_until IS NULL AND retired_at IS NULL"),
    ),
    Index("memories_canonical_idx", "scope_id", "canonical_key"),
    Index(
        "memories_kind_idx",
        "scope_id",
        "kind",
        text("pinned DESC"),
        text("importance DESC"),
        postgresql_where=text("retired_at IS NULL"),
    ),
    Index(
        "memories_prominent_idx",
        "scope_id",
        text("importance DESC"),
        text("id DESC"),
        postgresql_where=text("(pinned OR importance >= 9) AND retired_at IS NULL"),
    ),
    Index("memories_id_idx", "id"),
    Index("memories_session_idx", "scope_id", "session_id", postgresql_where=text("session_id IS NOT NULL")),
    Index("memories_run_idx", "run_id", postgresql_where=text("run_id IS NOT NULL")),
    Index("memories_successor_idx", "scope_id", "successor", postgresql_where=text("successor IS NOT NULL")),
    Index(
        "memories_fact_idx",
        "scope_id",
        "subject_key",
        "relation",
        "object_key",
        "valid_from",
        postgresql_where=text("subject_key IS NOT NULL"),
    ),
)


def _memory_reference(column: str, table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["scope_id", column],
        ["memories.scope_id", "memories.id"],
        name=f"{table}_{column}_fkey",
        ondelete="CASCADE",
    )


links = Table(
    "links",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("source_id", Uuid, nullable=False),
    Column("target_id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("weight", REAL, nullable=False),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "source_id", "target_id", "type"),
    _of_scope(),
    _memory_reference("source_id", "links"),
    _memory_reference("target_id", "links"),
    CheckConstraint("source_id <> target_id", name="ends"),
    Index("links_target_idx", "scope_id", "target_id"),
)

mentions = Table(
    "mentions",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("scope_id", "memory_id", "entity_id"),
    _of_scope(),
    _memory_reference("memory_id", "mentions"),
    ForeignKeyConstraint(
        ["scope_id", "entity_id"],
        ["entities.scope_id", "entities.id"],
        name="mentions_entity_id_fkey",
        ondelete="CASCADE",
    ),
    Index("mentions_entity_idx", "scope_id", "entity_id", "memory_id"),
)

evidence = Table(
    "evidence",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("turn_scope_id", BigInteger, nullable=False),
    Column("turn_id", Uuid, nullable=False),
    PrimaryKeyConstraint("scope_id", "memory_id", "turn_scope_id", "turn_id"),
    _of_scope(),
    _memory_reference("memory_id", "evidence"),
    ForeignKeyConstraint(
        ["turn_scope_id", "turn_id"],
        ["turns.scope_id", "turns.id"],
        name="evidence_turn_id_fkey",
        ondelete="CASCADE",
    ),
    Index("evidence_turn_idx", "turn_scope_id", "turn_id"),
)

terms = Table(
    "terms",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("term", Integer, nullable=False),
    Column("row_count", Integer, nullable=False),
    PrimaryKeyConstraint("scope_id", "term"),
    _of_scope(),
    postgresql_with={"fillfactor": "70"},
)

scope_models = Table(
    "scope_models",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("model", Text, nullable=False),
    Column("is_indexed", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("scope_id", "model"),
    _of_scope(),
    Index("scope_models_model_idx", "model", "scope_id"),
)

scope_sizes = Table(
    "scope_sizes",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("row_count", Integer, nullable=False),
    PrimaryKeyConstraint("scope_id"),
    _of_scope(),
    Index("scope_sizes_row_count_idx", "row_count"),
)
"""How many rows a scope holds, about: noted at every 64th. The exact number is a count in `terms`, which is written
with every row; an index on it would have to follow."""

speakers = Table(
    "speakers",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("scope_id", "name"),
    _of_scope(),
)

feedback = Table(
    "feedback",
    metadata,
    _serial(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("turn_id", Uuid),
    Column("memory_id", Uuid),
    Column("label", Text, nullable=False),
    Column("note", Text),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "id"),
    _of_scope(),
    _memory_reference("memory_id", "feedback"),
    ForeignKeyConstraint(
        ["scope_id", "turn_id"],
        ["turns.scope_id", "turns.id"],
        name="feedback_turn_id_fkey",
        ondelete="CASCADE",
    ),
    CheckConstraint("label IN ('up', 'down', 'retry')", name="label"),
    CheckConstraint("(turn_id IS NULL) <> (memory_id IS NULL)", name="target"),
    Index("feedback_turn_idx", "scope_id", "turn_id"),
    Index("feedback_memory_idx", "scope_id", "memory_id"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _time_ordered(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("session_name", Text),
    Column("content", JSONB, nullable=False),
    _instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "id"),
    _of_scope(),
)

images = Table(
    "images",
    metadata,
    _serial(),
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("run_id", Uuid, nullable=False),
    Column("source", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("row_key", JSONB, nullable=False),
    Column("before", JSONB),
    Column("after", JSONB),
    PrimaryKeyConstraint("scope_id", "id"),
    _of_scope(),
    ForeignKeyConstraint(["run_id"], ["runs.id"], name="images_run_id_fkey", ondelete="CASCADE"),
    CheckConstraint("change IN ('insert', 'update', 'delete')", name="change"),
    Index("images_run_idx", "run_id", "id"),
)
"""What a job changed, row by row and without any text: enough to put everything back."""

schedules = Table(
    "schedules",
    metadata,
    _tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("job", Text, nullable=False),
    _instant("due_at"),
    _count("missed"),
    PrimaryKeyConstraint("scope_id", "job"),
    _of_scope(),
    Index("schedules_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)
"""When a periodic job of a scope is next due; without a time it waits until something happens there."""

erasures = Table(
    "erasures",
    metadata,
    _time_ordered(),
    _tenant(),
    Column("subject_digest", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("counts", JSONB, nullable=False, server_default=NO_FIELDS),
    _instant("created_at", now=True),
    _instant("finished_at"),
    PrimaryKeyConstraint("id"),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="state"),
    Index("erasures_tenant_id_idx", "tenant_id"),
)

usage = Table(
    "usage",
    metadata,
    _tenant(),
    Column("day", Date, nullable=False),
    Column("model", Text, nullable=False),
    Column("calls", BigInteger, nullable=False, server_default=text("0")),
    Column("tokens_in", BigInteger, nullable=False, server_default=text("0")),
    Column("tokens_out", BigInteger, nullable=False, server_default=text("0")),
    Column("cost_usd", Numeric(14, 6), nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("tenant_id", "day", "model"),
)
