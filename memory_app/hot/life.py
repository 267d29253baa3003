"""Signs of life in Redis: each process says every few seconds, from the loop that does its work, that it goes on.

Readiness and doctor read them. A part that ends in order takes its sign away; so one that is there and old belongs to a
process that was killed or hangs. All ages are by the clock of Redis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from memory_app.hot.client import Hot
from memory_app.hot.keys import LIFE, milliseconds

EVERY_SECONDS = 5.0
"""How often a part says it."""

SILENT_AFTER_SECONDS = 30.0
"""A part that says nothing for as long hangs or was killed: named well within a minute."""

FORGOTTEN_AFTER = timedelta(minutes=10)
"""A silent process is dropped after this where another of its kind lives."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What one process said last. ``instance`` is its machine and number; ``tasks`` is what it has in hand."""

    instance: str
    age_seconds: float
    tasks: int

    @property
    def is_silent(self) -> bool:
        return self.age_seconds > SILENT_AFTER_SECONDS


def note(hot: Hot, kinds: Sequence[str], instance: str, *, tasks: int = 0) -> None:
    """``instance`` lives and does the work of each of ``kinds``. Raises `HotUnavailable`."""
    arguments: list[str | int | float] = [
        instance,
        tasks,
        milliseconds(FORGOTTEN_AFTER),
        milliseconds(LIFE.life),
    ]
    hot.run("life_note", _keys(hot, kinds), arguments)


def leave(hot: Hot, kinds: Sequence[str], instance: str) -> None:
    """``instance`` ended in order. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        for key in _keys(hot, kinds):
            pipeline.hdel(key, instance)
        pipeline.execute()


def read(hot: Hot, kinds: Sequence[str]) -> Mapping[str, tuple[Sign, ...]]:
    """All signs of each kind, the latest first, in one round trip. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        # In the same round trip as the signs, so that their ages are those of one moment.
        pipeline.time()
        for key in _keys(hot, kinds):
            pipeline.hgetall(key)
        (seconds, microseconds), *hashes = pipeline.execute()
    now_ms = seconds * 1000 + microseconds // 1000
    return {kind: _signs(fields, now_ms) for kind, fields in zip(kinds, hashes, strict=True)}


def _signs(fields: Mapping[bytes, bytes], now_ms: int) -> tuple[Sign, ...]:
    signs = []
    for instance, value in fields.items():
        noted_at_ms, tasks = value.split()
        # The clock of Redis may be set back.
        age_seconds = max(now_ms - int(noted_at_ms), 0) / 1000
        signs.append(Sign(instance.decode("utf-8", "replace"), age_seconds, int(tasks)))
    return tuple(sorted(signs, key=lambda sign: sign.age_seconds))


def _keys(hot: Hot, kinds: Sequence[str]) -> list[str]:
    return [hot.named_key(LIFE, kind) for kind in kinds]
