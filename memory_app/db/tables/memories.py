"""Memories, what connects them, what they mention, which turns they rest on, and what people said of them."""

from __future__ import annotations

from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from memory_app.db.literals import literals
from memory_app.db.tables.schema import (
    JSON_VALUE,
    NO_TEXTS,
    changes,
    count,
    instant,
    metadata,
    of_scope,
    reference,
    referenced,
    serial,
    tenant_of_scope,
    time_ordered,
    xact,
)
from memory_app.records.importance import PROMINENT
from memory_app.records.records import ENTITY_TYPES, Label, Origin, Retirement


def _memory_reference(column: str, table: str) -> ForeignKeyConstraint:
    return reference(f"{table}_{column}_fkey", ("scope_id", column), "memories")


memories = Table(
    "memories",
    metadata,
    time_ordered(),
    tenant_of_scope(),
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
    Column("emotional_state", JSON_VALUE),
    Column("relational_context", JSON_VALUE),
    Column("tags", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("synthesis_type", Text),
    instant("valid_from", required=True),
    instant("valid_until"),
    instant("created_at", now=True),
    instant("stored_at", now=True),
    instant("last_seen", required=True),
    instant("confirmed_at", required=True),
    instant("last_recalled"),
    count("repeat_count", start=1),
    count("recall_count"),
    Column("feedback_score", REAL, nullable=False, server_default=text("0")),
    Column("successor", Uuid),
    instant("retired_at"),
    Column("retired_reason", Text),
    # Without a length: vectors of two models stand side by side while rows are embedded again.
    Column("embedding", HALFVEC()),
    Column("embedding_model", Text),
    Column("keywords", SPARSEVEC()),
    Column("terms", ARRAY(Integer)),
    Column("traits", SmallInteger, nullable=False, server_default=text("0")),
    # NULL: not known beyond the beginning of its interval.
    instant("first_confirmed_at"),
    xact("stored_xact", now=True),
    # Of the last change of a column that stands in an index, so that no update stops being a heap-only one for this.
    xact("altered_xact"),
    PrimaryKeyConstraint("scope_id", "id"),
    of_scope(),
    # With the scope, here and below: no row can refer to one of another scope.
    reference("memories_session_id_fkey", ("scope_id", "session_id"), "sessions"),
    # Tenant and scope are part of this reference and of the row's own keys, so they must stay.
    reference(
        "memories_successor_fkey", ("scope_id", "successor"), "memories", ondelete="SET NULL (successor)"
    ),
    CheckConstraint("valid_until >= valid_from", name="validity"),
    CheckConstraint("(retired_at IS NULL) = (retired_reason IS NULL)", name="retired"),
    CheckConstraint(
        f"retired_reason IN ({literals(Retirement)})",
        name="retired_reason",
    ),
    CheckConstraint("importance BETWEEN 1 AND 10", name="importance"),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
    CheckConstraint("feedback_score BETWEEN -1 AND 1", name="feedback_score"),
    CheckConstraint(f"origin IN ({literals(Origin)})", name="origin"),
    CheckConstraint("(embedding IS NULL) = (embedding_model IS NULL)", name="embedding"),
    CheckConstraint(
        "NOT single_valued OR (subject_key IS NOT NULL AND relation IS NOT NULL)", name="single_valued"
    ),
    # Only among open-ended rows: a fact that becomes true again stands beside its closed row. Most memories belong to
    # no session, hence NULLS NOT DISTINCT.
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
    # Where a relation holds one object at a time, two claims at the same moment cannot both become current.
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
        postgresql_where=text(f"(pinned OR importance >= {PROMINENT}) AND retired_at IS NULL"),
    ),
    # The key begins with the scope, and whoever asks for a memory by its id does not know that.
    referenced("memories"),
    changes("memories", "stored_xact"),
    changes("memories", "altered_xact"),
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

entities = Table(
    "entities",
    metadata,
    serial(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("aliases", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("summary", Text),
    instant("first_seen", required=True),
    instant("last_seen", required=True),
    count("mention_count"),
    Column("merged_into", BigInteger),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "key"),
    of_scope(),
    reference("entities_merged_into_fkey", ("scope_id", "merged_into"), "entities", ondelete=None),
    CheckConstraint(f"type IN ({literals(ENTITY_TYPES)})", name="type"),
    CheckConstraint("merged_into <> id", name="merged_into"),
    Index(
        "entities_merged_into_idx",
        "scope_id",
        "merged_into",
        postgresql_where=text("merged_into IS NOT NULL"),
    ),
    referenced("entities"),
    Index("entities_first_word_idx", "scope_id", text('key COLLATE "C"')),
)

links = Table(
    "links",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("source_id", Uuid, nullable=False),
    Column("target_id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("weight", REAL, nullable=False),
    instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "source_id", "target_id", "type"),
    of_scope(),
    _memory_reference("source_id", "links"),
    _memory_reference("target_id", "links"),
    CheckConstraint("source_id <> target_id", name="ends"),
    Index("links_target_idx", "scope_id", "target_id"),
)

mentions = Table(
    "mentions",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("scope_id", "memory_id", "entity_id"),
    of_scope(),
    _memory_reference("memory_id", "mentions"),
    reference("mentions_entity_id_fkey", ("scope_id", "entity_id"), "entities"),
    Index("mentions_entity_idx", "scope_id", "entity_id", "memory_id"),
)

evidence = Table(
    "evidence",
    metadata,
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("turn_scope_id", BigInteger, nullable=False),
    Column("turn_id", Uuid, nullable=False),
    PrimaryKeyConstraint("scope_id", "memory_id", "turn_scope_id", "turn_id"),
    of_scope(),
    _memory_reference("memory_id", "evidence"),
    reference("evidence_turn_id_fkey", ("turn_scope_id", "turn_id"), "turns"),
    Index("evidence_turn_idx", "turn_scope_id", "turn_id"),
)

feedback = Table(
    "feedback",
    metadata,
    serial(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("turn_id", Uuid),
    Column("memory_id", Uuid),
    Column("label", Text, nullable=False),
    Column("note", Text),
    instant("created_at", now=True),
    PrimaryKeyConstraint("scope_id", "id"),
    of_scope(),
    _memory_reference("memory_id", "feedback"),
    reference("feedback_turn_id_fkey", ("scope_id", "turn_id"), "turns"),
    CheckConstraint(f"label IN ({literals(Label)})", name="label"),
    # Exactly one of the two.
    CheckConstraint("(turn_id IS NULL) <> (memory_id IS NULL)", name="target"),
    Index("feedback_turn_idx", "scope_id", "turn_id"),
    Index("feedback_memory_idx", "scope_id", "memory_id"),
)
