"""Read from Redis, in one round trip, what a context window starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_app.hot import cache, expression, stream
from memory_app.hot.cache import CacheLookup
from memory_app.hot.client import Hot
from memory_app.hot.expression import Expression
from memory_app.hot.stream import Listed


@dataclass(frozen=True, slots=True)
class HotContext:
    """The cached ids of a scope's standing memories, its expression state, and the ids of its newest turns."""

    cached: CacheLookup
    expression: Expression
    turns: Listed


def read(hot: Hot, scope_ids: Sequence[int]) -> HotContext:
    """What Redis holds for the scope ``scope_ids[0]``. Raises `HotUnavailable`.

    The rest are the scopes around it, as for `cache.ask`.
    """
    cached, state, turns = (
        cache.ask(hot, scope_ids),
        expression.ask(hot, scope_ids[0]),
        stream.ask(hot, scope_ids[0]),
    )
    replies = hot.fetch_all([cached, state, turns])
    # One list of replies, in the order of the questions.
    state_begin, turns_begin = cached.replies, cached.replies + state.replies
    return HotContext(
        cached=cached.read(replies[:state_begin]),
        expression=state.read(replies[state_begin:turns_begin]),
        turns=turns.read(replies[turns_begin:]),
    )
