"""A worker's sign of life, from the loop of its main process and only while its pool does what it is given.

The loop stands still when the main process is frozen or its broker is away. When the children are frozen it goes on; so
each sign follows an answer of the pool to a question that does nothing. A pool whose every place is taken by a task may
owe the answer: the task's own time limit ends what hangs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import structlog
from celery import bootsteps
from celery.concurrency.prefork import TaskPool as ProcessPool
from celery.worker import state
from celery.worker.consumer import Consumer

from memory_app.hot.client import connect
from memory_app.hot.life import EVERY_SECONDS
from memory_app.jobs.life import Life, Waiting, worker_of
from memory_app.queue import QUEUES
from memory_app.settings import Settings
from workers.app import app

log = structlog.get_logger(__name__)

FIRST_SECONDS = 0.5
"""Until the pool has answered for the first time."""

POOL_SECONDS = 15.0
"""A pool with a free place that owes an answer for as long does nothing."""

ASK_AGAIN_SECONDS = 60.0
"""A question that was lost with its child is asked again."""


def _do_nothing() -> None:
    """What the pool is asked to do."""


class LifeStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Begins when the consumer takes tasks, and ends with each connection to the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Consumer, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._life: Life | None = None
        self._waiting: Waiting | None = None
        self._timer: Any = None
        self._has_answered = False
        self._asked_at: float | None = None
        self._owing_since: float | None = None

    def start(self, consumer: Consumer) -> None:
        """The worker takes tasks from now on."""
        self._end_waiting()
        self._look_again(consumer)

    def stop(self, consumer: Consumer) -> None:
        """No tasks for now: the broker is away, or the worker is about to end."""
        self._asked_at = self._owing_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._life is not None and self._waiting is None:
            self._life.leave()
            self._waiting = Waiting(self._life.touch)

    def shutdown(self, consumer: Consumer) -> None:
        """The worker ends."""
        self.stop(consumer)
        self._end_waiting()
        if self._life is not None:
            self._life.end()
            self._life = None

    def _look_again(self, consumer: Consumer) -> None:
        """From the event loop, which must run before the pool can be asked."""
        seconds = EVERY_SECONDS if self._has_answered else FIRST_SECONDS
        self._timer = consumer.timer.call_after(seconds, self._look, (consumer,))

    def _look(self, consumer: Consumer) -> None:
        # First, since whatever fails below must not be the last look.
        self._look_again(consumer)
        self._follow_queues(consumer)
        if self._life is not None and self._is_at_work(consumer):
            self._life.note(tasks=len(state.active_requests))
        self._ask(consumer)

    def _follow_queues(self, consumer: Consumer) -> None:
        """A sign for each queue that is taken from at the moment, beginning with the first answer of the pool."""
        queues = consumer.app.amqp.queues.consume_from
        kinds = tuple(worker_of(name) for name in QUEUES if name in queues)
        if not self._has_answered or (self._life is not None and self._life.kinds == kinds):
            return
        if self._life is not None:
            self._life.end()
        self._life = _life_as(kinds)

    def _is_at_work(self, consumer: Consumer) -> bool:
        """Whether the pool answers, or has its hands full."""
        if len(state.active_requests) >= consumer.pool.num_processes:
            return True
        return self._owing_since is None or time.monotonic() - self._owing_since < POOL_SECONDS

    def _ask(self, consumer: Consumer) -> None:
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at < ASK_AGAIN_SECONDS:
            return
        self._asked_at = now
        # A question that is asked again is as old as the first one without an answer.
        self._owing_since = self._owing_since or now
        if isinstance(consumer.pool, ProcessPool):
            # As for every task: the place that an answer gives back must have been taken.
            consumer.controller.semaphore.acquire(self._put, consumer)
        else:
            self._put(consumer)

    def _put(self, consumer: Consumer) -> None:
        consumer.pool.apply_async(_do_nothing, callback=self._hear, error_callback=self._hear)

    def _hear(self, _: Any) -> None:
        self._has_answered = True
        self._asked_at = self._owing_since = None

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.end()
            self._waiting = None


def _life_as(kinds: Sequence[str]) -> Life:
    """With a connection of the main process's own."""
    settings = Settings()
    redis = settings.redis
    hot = connect(settings.redis_address, prefix=redis.prefix, timeout_seconds=redis.timeout_seconds)
    return Life(hot, kinds, settings.life_folder)


app.steps["consumer"].add(LifeStep)
