"""Which memories were shown: noted beside the answer, counted in the table by a task. Reading itself never writes.

What is recalled fades later, so the counts matter, but none of them is worth a slower answer or a failed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import structlog

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError
from memory_app.hot import hints, recall_counts
from memory_app.memories.rows import memories
from memory_app.runtime import HINT_LIFE_MS, Runtime, hint_name

log = structlog.get_logger(__name__)

BATCH = 1_000
MOST_BATCHES = 20


def note_shown(runtime: Runtime, tenant_id: int, ids: Iterable[UUID | str]) -> None:
    """Leave the ids of memories that were shown for `note_recalls`. Never fails, never waits for the database."""
    shown = [id for id in ids if isinstance(id, UUID)]
    try:
        is_free = recall_counts.note(
            runtime.hot, tenant_id, shown, hint=hint_name(queue.NOTE_RECALLS), life_ms=HINT_LIFE_MS
        )
    except MemoryAppError as error:
        log.warning("recalls_not_noted", error=error.kind)
        return
    if is_free:
        runtime.sender.send(queue.NOTE_RECALLS)


def note_recalls(runtime: Runtime) -> int:
    """Count what was shown since the last call; how many memories were counted. What is gone meanwhile is left out."""
    try:
        hints.clear(runtime.hot, hint_name(queue.NOTE_RECALLS))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)
    noted = 0
    for _ in range(MOST_BATCHES):
        taken = recall_counts.take(runtime.hot, most=BATCH)
        if not taken:
            break
        for tenant_id, counts in taken.items():
            with transaction(runtime.engine, tenant_id) as connection:
                noted += memories.note_recalls(connection, counts)
    return noted
