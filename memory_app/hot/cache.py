"""The last narrative context of a scope, as ids; 300 seconds, or until a memory changes.

A context is stored with the epochs it was made under, and served only while they are still the epochs. So one
that was computed before a memory changed and put after it is never served, whatever the order of arrival. A
missing epoch counts as a new one: after a flush or an expiry nothing old fits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from redis.client import Pipeline

from memory_app.hot.client import Commands, Hot
from memory_app.hot.keys import CONTEXT, CONTEXT_EPOCH, digest, milliseconds


@dataclass(frozen=True, slots=True)
class CachedContext:
    """``asked`` is `asked_about` of the request it answers; ``ids`` the memories used, by section."""

    asked: str
    ids: Mapping[str, tuple[UUID, ...]]


@dataclass(frozen=True, slots=True)
class CacheLookup:
    """``context`` None is a miss. ``token`` is for the `put` of what is computed from now on."""

    context: CachedContext | None
    token: str


def asked_about(*parts: object) -> str:
    """A digest of what a context depends on (query, session, preset, …); the words are not kept."""
    return digest(json.dumps([str(part) for part in parts]))


def ask(hot: Hot, scope_ids: Sequence[int]) -> Commands[CacheLookup]:
    """The cached context of ``scope_ids[0]``, if no memory of any of ``scope_ids`` changed since it was made.

    The others are the wider scopes whose memories it shows, such as the agent's own. Ask before reading the
    database: the token marks this moment.
    """
    nonce = uuid4().hex

    def put_to(pipeline: Pipeline) -> None:
        for scope_id in scope_ids:
            epoch = hot.scope_key(CONTEXT_EPOCH, scope_id)
            # Sets a missing epoch and gives one that is there, in one command; Redis takes NX and GET together since 7.
            pipeline.set(epoch, nonce, nx=True, get=True, px=milliseconds(CONTEXT_EPOCH.life))
        pipeline.get(hot.scope_key(CONTEXT, scope_ids[0]))

    def read(replies: Sequence[Any]) -> CacheLookup:
        *epochs, value = replies
        token = " ".join(nonce if epoch is None else epoch.decode("ascii", "replace") for epoch in epochs)
        return CacheLookup(_parsed(value, token), token)

    return Commands(len(scope_ids) + 1, put_to, read)


def put(hot: Hot, scope_ids: Sequence[int], context: CachedContext, *, token: str) -> None:
    """Keep ``context``, computed after `ask` of the same scopes gave ``token``. Raises `HotUnavailable`."""
    ids = {section: [str(id) for id in memory_ids] for section, memory_ids in context.ids.items()}
    # Not compared with the epochs of now: whoever reads compares, so a context that comes too late does no harm.
    value = json.dumps({"token": token, "asked": context.asked, "ids": ids})
    with hot.calling() as redis:
        redis.set(hot.scope_key(CONTEXT, scope_ids[0]), value, px=milliseconds(hot.context_life))


def drop(hot: Hot, scope_id: int) -> None:
    """After the commit of a change to a memory of ``scope_id``: nothing made before is served again.

    If this raises `HotUnavailable`, an old context may be served for the rest of its 300 seconds; it holds
    ids only, and whoever reads them from the database gets no memory that is gone.
    """
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.set(hot.scope_key(CONTEXT_EPOCH, scope_id), uuid4().hex, px=milliseconds(CONTEXT_EPOCH.life))
        # With the new epoch it would not be served any more; this frees its memory.
        pipeline.delete(hot.scope_key(CONTEXT, scope_id))
        pipeline.execute()


def _parsed(value: bytes | None, token: str) -> CachedContext | None:
    """None for what is not ours to serve: made under other epochs, or not written by us."""
    if value is None:
        return None
    try:
        stored: Any = json.loads(value)
        if stored["token"] != token:
            return None
        ids = {str(section): tuple(map(UUID, texts)) for section, texts in stored["ids"].items()}
        return CachedContext(str(stored["asked"]), ids)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
