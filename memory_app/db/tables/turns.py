"""Sessions and their turns."""

from __future__ import annotations

from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
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
    NO_FIELDS,
    NO_TEXTS,
    changes,
    count,
    found_by,
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
from memory_app.records.records import Role

sessions = Table(
    "sessions",
    metadata,
    serial(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    count("next_seq", start=1),
    count("extracted_seq"),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    instant("lease_until"),
    instant("due_at"),
    instant("pending_since"),
    count("starts"),
    count("failures"),
    count("refusals"),
    instant("failing_since"),
    Column("parked_reason", Text),
    Column("replay_seqs", ARRAY(Integer), nullable=False, server_default=text("'{}'::integer[]")),
    instant("created_at", now=True),
    instant("last_activity_at", now=True),
    instant("ended_at"),
    Column("summary", Text),
    Column("summary_id", Uuid),
    count("synthesized_seq"),
    count("asked_seq"),
    Column("waits_for_cap", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "name"),
    of_scope(),
    CheckConstraint("next_seq >= 1", name="next_seq"),
    CheckConstraint("extracted_seq >= 0 AND extracted_seq < next_seq", name="extracted_seq"),
    referenced("sessions"),
    Index("sessions_tenant_due_idx", "tenant_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index("sessions_cap_idx", "tenant_id", postgresql_where=text("waits_for_cap")),
    # Those that a synthesis has to be asked for, the longest silent first; ended ones before all.
    Index(
        "sessions_unasked_idx",
        "tenant_id",
        text("(CASE WHEN ended_at IS NULL THEN last_activity_at ELSE '-infinity'::timestamptz END)"),
        postgresql_where=text(
            "due_at IS NULL AND synthesized_seq < next_seq - 1 AND asked_seq < next_seq - 1"
        ),
    ),
    # Each turn updates its session several times: new versions of the row find room on its page.
    postgresql_with={"fillfactor": "60"},
)

turns = Table(
    "turns",
    metadata,
    time_ordered(),
    tenant_of_scope(),
    Column("scope_id", BigInteger, nullable=False),
    Column("session_id", BigInteger, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("text", Text, nullable=False),
    instant("at", required=True),
    instant("accepted_at", now=True),
    Column("emotional_tone", Text),
    Column("tools_used", ARRAY(Text), nullable=False, server_default=NO_TEXTS),
    Column("metadata", JSON_VALUE, nullable=False, server_default=NO_FIELDS),
    Column("idempotency_key", Text),
    # The same key with another request is a mistake of the caller, not a repetition.
    Column("request_hash", LargeBinary),
    instant("lease_until"),
    Column("starts", SmallInteger, nullable=False, server_default=text("0")),
    Column("failures", SmallInteger, nullable=False, server_default=text("0")),
    instant("indexed_at"),
    instant("extracted_at"),
    Column("reason", Text),
    instant("failed_at"),
    Column("failed_reason", Text),
    Column("embedding", HALFVEC()),
    Column("embedding_model", Text),
    Column("keywords", SPARSEVEC()),
    Column("terms", ARRAY(Integer)),
    Column("traits", SmallInteger, nullable=False, server_default=text("0")),
    # The scope's, for the key below; rows from before it was written have none.
    Column("user_id", BigInteger),
    # That brought it, and the task that indexed it; NULL in rows of earlier releases.
    Column("request_id", Uuid),
    Column("index_task_id", Uuid),
    # Private parts that were taken out before it was stored: numbers by kind. NULL: none.
    Column("redacted", JSON_VALUE),
    xact("accepted_xact", now=True),
    xact("indexed_xact"),
    # Of the extraction or the failure.
    xact("settled_xact"),
    # The number of the turn that it replaced, whose place in listings it has.
    Column("place", Integer),
    # By the agent's retention: what its caller gave is gone, and the key that it was sent under is a digest.
    instant("words_deleted_at"),
    PrimaryKeyConstraint("scope_id", "id"),
    UniqueConstraint("scope_id", "session_id", "seq"),
    of_scope(),
    reference("turns_session_id_fkey", ("scope_id", "session_id"), "sessions"),
    CheckConstraint(f"role IN ({literals(Role)})", name="role"),
    CheckConstraint("(failed_at IS NULL) = (failed_reason IS NULL)", name="failed"),
    CheckConstraint("(idempotency_key IS NULL) = (request_hash IS NULL)", name="idempotency"),
    CheckConstraint("(embedding IS NULL) = (embedding_model IS NULL)", name="embedding"),
    referenced("turns"),
    Index(
        "turns_user_idempotency_key",
        "tenant_id",
        "idempotency_key",
        "user_id",
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
    # What has words that a retention may delete, the oldest of a scope first.
    Index("turns_words_idx", "scope_id", "accepted_at", postgresql_where=text("words_deleted_at IS NULL")),
    changes("turns", "accepted_xact"),
    changes("turns", "indexed_xact"),
    changes("turns", "settled_xact"),
    found_by("turns_request_idx", "request_id"),
    found_by("turns_task_idx", "index_task_id"),
)
