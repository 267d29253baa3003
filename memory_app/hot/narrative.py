"""The narrative of a scope for its latest query, and the wish for one: 300 seconds each, or until a memory changes.

A wish holds ids and no words. Like a cached context, a narrative is served only under the epochs under which it was
made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from redis.client import Pipeline

from memory_app.hot import cache
from memory_app.hot.client import Commands, Hot
from memory_app.hot.keys import NARRATIVE, NARRATIVE_WISH, milliseconds


@dataclass(frozen=True, slots=True)
class StoredNarrative:
    """``rows`` are the ids of the best rows it was made of: by them a later query is known to be about the same."""

    text: str
    rows: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a narrative is made of: ids of memories and turns that a query found, best first, and whose they are."""

    tenant_id: int
    rows: tuple[UUID, ...]


def read(hot: Hot, scope_ids: Sequence[int]) -> StoredNarrative | None:
    """The narrative of ``scope_ids[0]``, if no memory of any of ``scope_ids`` changed since.

    Raises `HotUnavailable`.
    """

    def put_to(pipeline: Pipeline) -> None:
        pipeline.get(hot.scope_key(NARRATIVE, scope_ids[0]))

    lookup = cache.ask(hot, scope_ids)
    replies = hot.fetch_all([lookup, Commands(1, put_to, list)])
    return _parsed(replies[-1], lookup.read(replies[:-1]).token)


def token(hot: Hot, scope_ids: Sequence[int]) -> str:
    """The epochs of this moment; ask before reading what a narrative is made of. Raises `HotUnavailable`."""
    return hot.fetch(cache.ask(hot, scope_ids)).token


def put(hot: Hot, scope_id: int, narrative: StoredNarrative, *, token: str) -> None:
    """Keep ``narrative``, made since `token` was asked for. Raises `HotUnavailable`."""
    value = json.dumps({"token": token, "text": narrative.text, "rows": sorted(narrative.rows)})
    with hot.calling() as redis:
        redis.set(hot.scope_key(NARRATIVE, scope_id), value, px=milliseconds(NARRATIVE.life))


def wish(hot: Hot, scope_id: int, wish: Wish) -> bool:
    """Wish for a narrative; False where one was wished for within the life of a wish. Raises `HotUnavailable`."""
    value = json.dumps({"tenant": wish.tenant_id, "rows": [str(id) for id in wish.rows]})
    with hot.calling() as redis:
        is_new = redis.set(
            hot.scope_key(NARRATIVE_WISH, scope_id), value, px=milliseconds(NARRATIVE_WISH.life), nx=True
        )
    return bool(is_new)


def take_wish(hot: Hot, scope_id: int) -> Wish | None:
    """The latest wish, or None once it is over or was taken: a message that comes twice asks the model once.

    Raises `HotUnavailable`.
    """
    with hot.calling() as redis:
        # The key stays until its end, so that no other wish comes in before.
        value: Any = redis.set(hot.scope_key(NARRATIVE_WISH, scope_id), "", xx=True, keepttl=True, get=True)
    try:
        stored = json.loads(value or b"null")
        return None if stored is None else Wish(int(stored["tenant"]), tuple(map(UUID, stored["rows"])))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _parsed(value: bytes | None, token: str) -> StoredNarrative | None:
    """None for what is not ours to serve: made under other epochs, or not written by us."""
    if value is None:
        return None
    try:
        stored: Any = json.loads(value)
        if stored["token"] != token:
            return None
        return StoredNarrative(str(stored["text"]), frozenset(map(str, stored["rows"])))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
