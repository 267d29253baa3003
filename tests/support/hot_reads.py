"""Read one thing of the hot store, which the product always reads together with others."""

from __future__ import annotations

from collections.abc import Sequence

from memory_app.hot import cache, expression, stream
from memory_app.hot.cache import CacheLookup
from memory_app.hot.client import Hot
from memory_app.hot.expression import Expression
from memory_app.hot.stream import Newest


def cached_context(hot: Hot, scope_ids: Sequence[int]) -> CacheLookup:
    """The cached context of ``scope_ids[0]`` and a token, see `cache.ask`."""
    return hot.fetch(cache.ask(hot, scope_ids))


def noted_expression(hot: Hot, scope_id: int) -> Expression:
    """What is noted of how an agent speaks with a user."""
    return hot.fetch(expression.ask(hot, scope_id))


def newest_turns(hot: Hot, scope_id: int, *, n: int = 20, session_id: int | None = None) -> Newest:
    """The last ``n`` turns of the scope, or of one session of it."""
    return stream.newest_of(hot, hot.fetch(stream.ask(hot, scope_id)), n=n, session_id=session_id)
