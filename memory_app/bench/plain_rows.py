"""Rows of statements that are stored as they are, without the write path: measurements need many of them at once."""

from __future__ import annotations

from datetime import datetime

from memory_app.memories.remember import Prepared
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.records.records import Memory, MemoryRow, content_of


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
