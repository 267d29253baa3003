"""Rows of statements that are stored as they are, without the write path: measurements need many of them at once."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

from memory_app import MemoryApp, Scope, Statement
from memory_app.bench.prose import statements
from memory_app.db import db
from memory_app.memories.remember import Prepared, prepare
from memory_app.memories.rows import memories
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.records.records import Memory, MemoryRow, content_of
from memory_app.tenancy.policy import Policy
from memory_app.tenancy.rows import names

BATCH = 500


def fill(memory: MemoryApp, scope: Scope, count: int, *, word: str = "") -> int:
    """Store ``count`` different memories in a scope of the home shard, each with ``word`` at its end; its id."""
    with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
        scope_id = names.ensure_scope(connection, memory.tenant_id, scope).id
    texts = (f"{text} {word}".strip() for text in statements(count, seed=1))
    while batch := list(islice(texts, BATCH)):
        # Embedded outside of the transaction, as the product does it.
        prepared = prepare(memory.runtime, [Statement("fact", text) for text in batch], policy=Policy())
        with db.transaction(memory.runtime.engine, memory.tenant_id) as connection:
            for item in prepared:
                row = unjudged_row(item, model=memory.runtime.embedder.model, now=datetime.now(UTC))
                memories.insert(connection, memory.tenant_id, scope_id, new=row)
            term_store.add(connection, memory.tenant_id, [(scope_id, item.keywords) for item in prepared])
    return scope_id


def unjudged_row(
    prepared: Prepared, *, model: str, now: datetime, last_seen: datetime | None = None
) -> NewMemory:
    """The row of a statement as if nobody had looked for repeats; ``model`` is that of its vector."""
    memory = Memory(
        **content_of(prepared.statement),
        created_at=now,
        valid_from=now,
        importance=prepared.importance,
        last_seen=last_seen,
    )
    return NewMemory(
        MemoryRow(memory, prepared.key),
        embedding=prepared.vector,
        embedding_model=model,
        keywords=prepared.keywords,
    )
