"""Beat's scheduler with a sign of life, from the loop that sends what is due."""

from __future__ import annotations

from typing import Any

import structlog
from celery.beat import PersistentScheduler

from memory_app import metrics, tracing
from memory_app.hot.client import connect
from memory_app.hot.life import EVERY_SECONDS
from memory_app.hot.metrics import Pusher
from memory_app.jobs.life import BEAT, Life, Waiting
from memory_app.settings import Settings

log = structlog.get_logger(__name__)


class LivingScheduler(PersistentScheduler):  # type: ignore[misc]
    """Celery's own, except that it says every few seconds that it goes on."""

    _life: Life | None = None
    _pusher: Pusher | None = None

    def setup_schedule(self) -> None:
        """Called once, and only in the process that schedules."""
        super().setup_schedule()
        settings = Settings()
        # First, as it watches what is made afterwards.
        tracing.start("beat", endpoint=settings.tracing.endpoint, ratio=settings.tracing.ratio)
        redis = settings.redis
        hot = connect(settings.redis_address, prefix=redis.prefix, timeout_seconds=redis.timeout_seconds)
        self._life = Life(hot, [BEAT], settings.life_folder)
        self._pusher = Pusher(hot).start()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """One round; the next one comes soon enough for the next sign."""
        if self._life is not None:
            self._life.note()
        seconds: float = super().tick(*args, **kwargs)
        return min(seconds, EVERY_SECONDS)

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """Send one task that is due. Its id is that in the worker's lines."""
        with tracing.sending(entry.task):
            sent = super().apply_async(entry, *args, **kwargs)
            tracing.describe(tasks=[sent.id])
        metrics.tasks_sent.labels(entry.task).inc()
        log.debug("task_sent", task=entry.task, task_id=sent.id)
        return sent

    def _ensure_connected(self) -> Any:
        """The broker's connection. Celery waits here for as long as the broker is away."""
        if self._life is None:
            return super()._ensure_connected()
        # The file alone goes on: the other sign is in a Redis that is mostly away as well.
        waiting = Waiting(self._life.touch)
        try:
            return super()._ensure_connected()
        finally:
            waiting.end()

    def close(self) -> None:
        super().close()
        if self._life is not None:
            self._life.end()
            self._life = None
        if self._pusher is not None:
            self._pusher.stop()
        tracing.stop()
