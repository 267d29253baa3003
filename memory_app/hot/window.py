"""What a context window reads here, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_app.hot import cache, expression, stream
from memory_app.hot.cache import CacheLookup
from memory_app.hot.client import Hot
from memory_app.hot.expression import Expression
from memory_app.hot.stream import Listed


@dataclass(frozen=True, slots=True)
class Warm:
    """The standing memories kept for a scope, its state, and its newest turns."""

    kept: CacheLookup
    felt: Expression
    listed: Listed


def read(hot: Hot, scope_ids: Sequence[int]) -> Warm:
    """What Redis holds for the scope ``scope_ids[0]``. Raises `HotUnavailable`.

    The rest are the scopes around it, as for `cache.ask`.
    """
    kept, felt, listed = (
        cache.ask(hot, scope_ids),
        expression.ask(hot, scope_ids[0]),
        stream.ask(hot, scope_ids[0]),
    )
    replies = hot.fetch_all([kept, felt, listed])
    state, turns = kept.replies, kept.replies + felt.replies
    return Warm(kept.read(replies[:state]), felt.read(replies[state:turns]), listed.read(replies[turns:]))
