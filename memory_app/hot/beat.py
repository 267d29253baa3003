"""Beat's sign of life: a key that a worker renews whenever it does what Beat asked for, and that soon expires."""

from __future__ import annotations

from memory_app.hot.client import Hot
from memory_app.hot.keys import BEAT, milliseconds


def note(hot: Hot) -> None:
    """Beat and a worker of its queue are there. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        redis.set(hot.named_key(BEAT, "last"), 1, px=milliseconds(BEAT.life))


def is_heard(hot: Hot) -> bool:
    """Whether they were there within the last minute, as far as Redis remembers. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        return bool(redis.exists(hot.named_key(BEAT, "last")))
