"""Ids of memories that were shown, on their way to the table: counted there in batches, by a task.

Reading must not write, and a count that is lost with Redis is no loss worth a write per question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from memory_app.hot import shown_windows
from memory_app.hot.client import Hot
from memory_app.hot.keys import RECALLED, milliseconds
from memory_app.hot.shown_windows import ShownWindow

MANY_WAITING = 2_000
"""Ids from which on they are counted at once; fewer wait for the periodic task."""
MOST_WAITING = 20_000
"""Ids kept while no worker takes them; the oldest go first."""


def note(
    hot: Hot,
    tenant_id: int,
    ids: Iterable[UUID],
    *,
    window: ShownWindow | None = None,
) -> bool:
    """Add ids; True when so many wait that they should not wait for the periodic task. One round trip.

    A ``window`` in which some of them stood is noted with them. Raises `HotUnavailable`.
    """
    lines = [f"{tenant_id} {id}" for id in ids]
    if not lines:
        return False
    key = hot.named_key(RECALLED, "all")
    with hot.calling() as redis:
        # No MULTI: each of the commands is right without the others, and a request waits for them.
        pipeline = redis.pipeline(transaction=False)
        if window is not None and window.ids:
            shown_windows.put_to(pipeline, hot, window)
        pipeline.rpush(key, *lines)
        # New ids come in at the end, so the oldest stand at the beginning.
        pipeline.ltrim(key, -MOST_WAITING, -1)
        pipeline.pexpire(key, milliseconds(RECALLED.life))
        *_, waiting, _, _ = pipeline.execute()
    return int(waiting) >= MANY_WAITING


def take(hot: Hot, *, most: int) -> dict[int, Counter[UUID]]:
    """Up to ``most`` ids, each with how often it was shown, by tenant; they are gone here. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        lines = redis.lpop(hot.named_key(RECALLED, "all"), most)
    counts: dict[int, Counter[UUID]] = {}
    # None where the list is empty.
    for line in lines if isinstance(lines, list) else ():
        parsed = _parsed(line) if isinstance(line, bytes) else None
        if parsed is not None:
            tenant_id, memory_id = parsed
            counts.setdefault(tenant_id, Counter())[memory_id] += 1
    return counts


def _parsed(line: bytes) -> tuple[int, UUID] | None:
    """None for what we did not write."""
    try:
        tenant_id, id = line.decode("ascii").split(" ")
        return int(tenant_id), UUID(id)
    except ValueError:
        return None
