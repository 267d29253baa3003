"""What follows an accepted turn in Redis, in one round trip: the stream, the last interaction, the claim of a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import NoScriptError, RedisError

from memory_app.hot import expression, hints, stream
from memory_app.hot.client import Hot
from memory_app.hot.expression import Interaction
from memory_app.hot.stream import Entry


@dataclass(frozen=True, slots=True)
class Accepted:
    """Turns stored in a scope: their ``entries`` in order of acceptance, and the interaction that they are."""

    scope_id: int
    entries: Sequence[Entry]
    interaction: Interaction


def note(hot: Hot, accepted: Accepted, *, hint: str, hint_life_ms: int) -> bool:
    """Note turns after their commit; True if the caller should send the message ``hint`` (see `hints`).

    Raises `HotUnavailable`; some of it may be noted then, and the name claimed all the same.
    """
    with hot.calling() as redis:
        # No MULTI: each part is right without the others, and a request waits for them.
        pipeline = redis.pipeline(transaction=False)
        stream.put_to(pipeline, hot, accepted.scope_id, accepted.entries)
        expression.put_to(pipeline, hot, accepted.scope_id, accepted.interaction)
        hints.put_to(pipeline, hot, hint, life_ms=hint_life_ms)
        replies = pipeline.execute(raise_on_error=False)
        has_lost_script = any(isinstance(reply, NoScriptError) for reply in replies)
        for reply in replies:
            if isinstance(reply, RedisError) and not isinstance(reply, NoScriptError):
                raise reply
    if has_lost_script:
        # A restart or a flush took it: by itself it is sent with its text.
        expression.note(hot, accepted.scope_id, accepted.interaction)
    return bool(replies[-1])
