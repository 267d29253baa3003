"""Forget the hot part of scopes: every key that the table marks as belonging to one."""

from __future__ import annotations

from collections.abc import Sequence

from memory_app.hot.client import Hot
from memory_app.hot.keys import KEYS


def erase(hot: Hot, scope_ids: Sequence[int]) -> int:
    """Delete all keys of ``scope_ids``; how many there were. Raises `HotUnavailable`.

    Epochs go too, which refuses what was read before: a rebuild or a context in flight brings nothing back.
    """
    names = [hot.scope_key(key, scope_id) for scope_id in scope_ids for key in KEYS if key.per_scope]
    # DEL without a key is an error.
    if not names:
        return 0
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.delete(*names)
        return int(pipeline.execute()[0])
