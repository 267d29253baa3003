"""What ``/metrics`` shows besides the requests of this process: the state of the pipe, asked at each read, what this
process counted, and the sums of what the others pushed.

A part that does not answer takes its own metrics along and no others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory_app import queue
from memory_app.broker.message import DropReason
from memory_app.db import clock, lock_waits
from memory_app.db.db import transaction
from memory_app.errors import MemoryAppError
from memory_app.events.rows import webhooks
from memory_app.hot import answer_drops, breaker
from memory_app.hot import metrics as shared
from memory_app.jobs import life
from memory_app.ops.health import due_now, read_pipeline, unusable_shards
from memory_app.runtime import Runtime

GAUGES = {
    "unindexed": "Accepted turns that are not indexed yet, counted up to 1,000.",
    "oldest_unindexed_seconds": "Age of the oldest of them.",
    "due_sessions": "Sessions that are due for extraction, counted up to 1,000.",
    "oldest_due_seconds": "How long the first of them has been due.",
    "failed": "Turns that were set aside and wait for a replay or a discard, counted up to 1,000.",
}

PROVIDERS = ("chat", "embedding")


class PipelineCollector(Collector):
    """Asks the database, Redis and the broker how the pipe is doing whenever the metrics are read."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def describe(self) -> Iterator[Metric]:
        # A registry may call collect() to learn the names, and would ask the database while the API starts.
        return iter(())

    def collect(self) -> Iterator[Metric]:
        pipeline, database = read_pipeline(self.runtime)
        yield _gauge("memory_database_up", "1 when the database answers.", float(database.is_ok))
        if pipeline is not None:
            for name, description in GAUGES.items():
                yield _gauge(f"memory_{name}", description, float(getattr(pipeline, name)))
        yield self._redis()
        parts: tuple[Callable[[], Iterable[Metric]], ...] = (
            self._due_work,
            self._shards,
            self._locks,
            self._webhooks,
            self._clocks,
            self._connections,
            self._parts,
            self._queues,
            self._circuits,
            self._dropped_messages,
            self._dropped_items,
            self._counted,
        )
        for part in parts:
            with suppress(MemoryAppError):
                yield from part()

    def _redis(self) -> Metric:
        try:
            self.runtime.hot.ping()
        except MemoryAppError:
            return _gauge("memory_redis_up", "1 when Redis answers.", 0.0)
        return _gauge("memory_redis_up", "1 when Redis answers.", 1.0)

    def _due_work(self) -> Iterator[Metric]:
        works = due_now(self.runtime)
        yield _labelled(
            "memory_due_seconds",
            "How long the oldest work of a kind has been due that nobody has in hand; 0 without any.",
            "kind",
            {work.kind: work.oldest_seconds for work in works},
        )
        yield _labelled(
            "memory_due_held",
            "1 when somebody has work of the kind in hand.",
            "kind",
            {work.kind: float(work.is_held) for work in works},
        )

    def _shards(self) -> Iterator[Metric]:
        reasons = unusable_shards(self.runtime)
        yield _gauge("memory_shards_unusable", "Shards that cannot be used.", float(len(reasons)))

    def _locks(self) -> Iterator[Metric]:
        with transaction(self.runtime.directory.engine, None) as connection:
            waits = lock_waits.waits(connection)
        yield _gauge(
            "memory_lock_waiting", "Sessions of the database that wait for a lock.", float(waits.count)
        )
        yield _gauge(
            "memory_lock_waiting_seconds", "How long the first of them has waited.", waits.longest_seconds
        )

    def _webhooks(self) -> Iterator[Metric]:
        with transaction(self.runtime.directory.engine, None) as connection:
            state = webhooks.state(connection)
        yield _labelled(
            "memory_webhooks",
            "Webhooks that are active, those of them that fail, and those that were given up.",
            "state",
            {
                "active": float(state.active),
                "failing": float(state.failing),
                "given_up": float(state.given_up),
            },
        )
        yield _gauge(
            "memory_webhook_waiting_seconds",
            "Age of the oldest event that is being delivered to an active webhook; 0 without any.",
            state.oldest_waiting_seconds,
        )

    def _clocks(self) -> Iterator[Metric]:
        """How far the clocks of the servers are from this machine's, the way there and back taken off."""
        offsets = {"database": _offset(lambda: _database_time(self.runtime))}
        with suppress(MemoryAppError):
            offsets["redis"] = _offset(lambda: _redis_time(self.runtime))
        yield _labelled(
            "memory_clock_offset_seconds", "Clock of a server against this machine's.", "of", offsets
        )

    def _connections(self) -> Iterator[Metric]:
        # Asked for by name: other pools than the usual one know no numbers.
        pool = self.runtime.directory.engine.pool
        counts = {"in_use": getattr(pool, "checkedout", None), "idle": getattr(pool, "checkedin", None)}
        yield _labelled(
            "memory_connections",
            "Database connections of this process.",
            "state",
            {state: float(count()) for state, count in counts.items() if count is not None},
        )

    def _parts(self) -> Iterator[Metric]:
        heard = life.listen(self.runtime.hot)
        yield _labelled(
            "memory_part_processes",
            "Processes of a kind of part that gave a sign of life within 30 s.",
            "part",
            {part: float(len(signs.living)) for part, signs in heard.items()},
        )
        # Beside a living one, a silent process is one that was killed and replaced.
        yield _labelled(
            "memory_part_silent_seconds",
            "How long a kind of part has been silent of which no process is heard; 0 otherwise.",
            "part",
            {part: signs.silent[0].age_seconds if signs.is_silent else 0.0 for part, signs in heard.items()},
        )

    def _queues(self) -> Iterator[Metric]:
        yield _labelled(
            "memory_queue_messages",
            "Messages that wait in a queue. They only say where to look: the work itself stands in the database.",
            "queue",
            {name: float(length) for name, length in self.runtime.drops.queue_lengths(queue.QUEUES).items()},
        )

    def _circuits(self) -> Iterator[Metric]:
        yield _labelled(
            "memory_circuit_open_seconds",
            "How long a provider is left alone after failures; 0 while its circuit is closed.",
            "provider",
            {name: breaker.rest_left(self.runtime.hot, name) for name in PROVIDERS},
        )

    def _dropped_messages(self) -> Iterator[Metric]:
        counts = dict.fromkeys((reason.value for reason in DropReason), 0)
        family = CounterMetricFamily(
            "memory_dropped_messages",
            "Messages in the queues that could not be handled; back to none after a day without.",
            labels=["reason"],
        )
        for reason, count in (counts | dict(self.runtime.drops.read().counts)).items():
            family.add_metric([reason], count)
        yield family

    def _counted(self) -> Iterator[Metric]:
        sums = None
        # Its own counts are shown without Redis: a disk that is full, or a network that is cut, may be that of both.
        with suppress(MemoryAppError):
            sums = shared.read(self.runtime.hot)
        yield from shared.families(sums)

    def _dropped_items(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "memory_dropped_items",
            "Items of language models' answers that were not kept; back to none after a day without.",
            labels=["reason"],
        )
        for reason, count in answer_drops.read(self.runtime.hot).items():
            family.add_metric([reason], count)
        yield family


def pipeline_registry(runtime: Runtime) -> CollectorRegistry:
    """A registry of one application, so that several can live in a process."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector(runtime))
    return registry


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=value)


def _labelled(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, description, labels=[label])
    for value_of_label, value in values.items():
        family.add_metric([value_of_label], value)
    return family


def _offset(ask: Callable[[], float]) -> float:
    asked = time.time()
    server = ask()
    return server - (asked + time.time()) / 2


def _database_time(runtime: Runtime) -> float:
    # The instant at which the transaction began: with it the pool's wait is over.
    with transaction(runtime.directory.engine, None) as connection:
        return clock.now(connection).timestamp()


def _redis_time(runtime: Runtime) -> float:
    with runtime.hot.calling() as redis:
        seconds, microseconds = redis.time()
    return float(seconds) + float(microseconds) / 1e6
