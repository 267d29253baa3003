"""Ids of memories that stood in the newest context windows of a scope, so that a rating of a reply can reach them.

A window is made before the reply that is rated later, so the time tells which one it was. Lost with Redis, a rating
reaches what rests on the reply itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from redis.client import Pipeline

from memory_app.hot.client import Hot
from memory_app.hot.keys import SHOWN, digest, milliseconds

WINDOWS_KEPT = 50
"""Windows of a scope, over all its sessions; older ones go first."""


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """The memories ``ids`` that stood in a window of ``session`` for what bears on its query. ``at`` is the database's
    clock."""

    scope_id: int
    session: str
    at: datetime
    ids: tuple[UUID, ...]


def put_to(pipeline: Pipeline, hot: Hot, window: ShownWindow) -> None:
    """Have ``pipeline`` note a window."""
    key = hot.scope_key(SHOWN, window.scope_id)
    ids = ",".join(map(str, window.ids))
    pipeline.lpush(key, f"{digest(window.session)} {window.at.timestamp():.6f} {ids}")
    pipeline.ltrim(key, 0, WINDOWS_KEPT - 1)
    pipeline.pexpire(key, milliseconds(SHOWN.life))


def before(hot: Hot, scope_id: int, *, session: str, at: datetime) -> tuple[UUID, ...]:
    """Return the ids of the last window of ``session`` that was made no later than ``at``. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        lines = redis.lrange(hot.scope_key(SHOWN, scope_id), 0, -1)
    windows = (_window(scope_id, session, line) for line in lines if isinstance(line, bytes))
    earlier = [window for window in windows if window is not None and window.at <= at]
    return max(earlier, key=lambda window: window.at).ids if earlier else ()


def _window(scope_id: int, session: str, line: bytes) -> ShownWindow | None:
    """None for a window of another session, and for what we did not write."""
    try:
        name, seconds, ids = line.decode("ascii").split(" ")
        if name != digest(session):
            return None
        return ShownWindow(
            scope_id, session, datetime.fromtimestamp(float(seconds), UTC), _ids(ids.split(","))
        )
    except (ValueError, OverflowError):
        return None


def _ids(texts: Sequence[str]) -> tuple[UUID, ...]:
    return tuple(UUID(text) for text in texts)
