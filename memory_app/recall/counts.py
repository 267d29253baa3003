"""Count recalls: an answer notes the ids of its memories in Redis, and a task adds them to the table.

What is recalled fades later, so the counts matter, but none of them is worth a slower answer or a failed one. Reading
never writes to the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from uuid import UUID

import structlog

from memory_app import queue
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError
from memory_app.hot import hints, recall_counts
from memory_app.hot.shown_windows import ShownWindow
from memory_app.memories.rows import memories
from memory_app.recall.records import Hit
from memory_app.records.records import Tier
from memory_app.runtime import HINT_LIFE_MS, Runtime, hint_name
from memory_app.tenancy.shards import in_usable

log = structlog.get_logger(__name__)

BATCH = 1_000
BATCHES_LIMIT = 20
"""Batches in one call: the task must end within its time limit, and the next goes on."""


def note_hits(
    runtime: Runtime, tenant_id: int, hits: Iterable[Hit], *, window: ShownWindow | None = None
) -> None:
    """Note the ids of recalled memories for `note_recalls`, and those of a window for ratings of the reply.

    What is another agent's memory is not counted: who may recall it leaves no mark on it. Never fails, never waits for
    the database.
    """
    ids = [
        hit.id for hit in hits if hit.tier is Tier.FACTS and isinstance(hit.id, UUID) and hit.agent is None
    ]
    hint = hint_name(queue.NOTE_RECALLS)
    try:
        # The periodic task counts them. A message of their own would cost more than the rest of the answer's noting.
        is_due = recall_counts.note(runtime.hot, tenant_id, ids, window=window) and hints.claim(
            runtime.hot, hint, life_ms=HINT_LIFE_MS
        )
    except MemoryAppError as error:
        log.warning("recalls_not_noted", error=error.kind)
        return
    if is_due:
        runtime.sender.send(queue.NOTE_RECALLS)


def note_recalls(runtime: Runtime) -> int:
    """Add the noted recalls to the table; how many memories were counted. Ids of deleted memories are dropped."""
    # Cleared before the counting, so that what is noted meanwhile brings another message.
    try:
        hints.clear(runtime.hot, hint_name(queue.NOTE_RECALLS))
    except MemoryAppError as error:
        log.warning("hint_not_cleared", error=error.kind)
    count = 0
    for _ in range(BATCHES_LIMIT):
        # If the transaction below fails, these counts are lost; they only affect how memories fade.
        batch = recall_counts.take(runtime.hot, most=BATCH)
        if not batch:
            break
        for tenant_id, counts in batch.items():
            count += sum(in_usable(runtime, partial(_add, tenant_id=tenant_id, counts=counts)))
    return count


def _add(runtime: Runtime, *, tenant_id: int, counts: Mapping[UUID, int]) -> int:
    """Those of the memories that the runtime's shard has."""
    with transaction(runtime.engine, tenant_id) as connection:
        return memories.note_recalls(connection, counts)
