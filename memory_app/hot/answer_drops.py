"""How many items of language models' answers were dropped, by reason: counted by workers, read for metrics.

Reasons are names of guards and of lists, never anything that a model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory_app.hot.client import Hot
from memory_app.hot.keys import ANSWERS, milliseconds


def note(hot: Hot, counts: Mapping[str, int]) -> None:
    """Add ``counts``. Raises `HotUnavailable`."""
    key = hot.named_key(ANSWERS, "dropped")
    with hot.calling() as redis:
        # Together, so that no key is left without an expiry.
        pipeline = redis.pipeline()
        for reason, count in counts.items():
            pipeline.hincrby(key, reason, count)
        # Begins anew with each write, so that the counts go a day after the last drop.
        pipeline.pexpire(key, milliseconds(ANSWERS.life))
        pipeline.execute()


def read(hot: Hot) -> dict[str, int]:
    """Return the counts by reason, since there was none for a day. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.hgetall(hot.named_key(ANSWERS, "dropped"))
        (counts,) = pipeline.execute()
    return {reason.decode("utf-8", "replace"): int(count) for reason, count in counts.items()}
