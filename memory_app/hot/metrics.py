"""Metrics of workers and their children, finders and Beat: each adds its own to a hash in Redis every few seconds, and
the API shows the sums.

So one address tells of processes on any machine, and none of them needs a port. What a process counted since its last
push is lost with it; while Redis is away it is kept and pushed later. The API shows its own counts as they are and
pushes nothing: what it tells about a fault must not go through what failed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from threading import Event, Lock, Thread
from typing import Final
from weakref import WeakSet

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from memory_app.errors import MemoryAppError
from memory_app.hot.client import Hot
from memory_app.hot.keys import METRICS, milliseconds
from memory_app.metrics import REGISTRY

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0

UNITS = 1_000_000
"""Redis adds whole numbers exactly: values are stored in millionths."""

Series = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a sample and its labels."""

API: Final = "api"
BACKGROUND: Final = "background"
"""Values of the label `source`: the process that is asked, and all that push, together."""


class Pusher:
    """Adds what this process counted to the sums of all, from a thread of its own. Make it after a fork."""

    def __init__(self, hot: Hot, registry: CollectorRegistry = REGISTRY) -> None:
        self._hot = hot
        self._registry = registry
        # A child has its parent's counts, which the parent pushes itself.
        self._pushed = _values(registry)
        self._over = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._go_on, name="metrics", daemon=True)
        _pushers.add(self)

    def start(self) -> Pusher:
        self._thread.start()
        return self

    def push(self) -> None:
        """Add what is new. While Redis is away it stays for the next time; never raises."""
        with self._lock:
            values = _values(self._registry)
            changes = {
                series: value - self._pushed.get(series, 0)
                for series, value in values.items()
                if value != self._pushed.get(series, 0)
            }
            if not changes:
                return
            try:
                _add(self._hot, changes)
            except MemoryAppError as error:
                log.debug("metrics_not_pushed", error=error.kind)
                return
            self._pushed = values

    def stop(self) -> None:
        """Push once more and end; harmless the second time and in a child of the process that made it."""
        self._over.set()
        self.push()

    def _go_on(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self.push()


_pushers: WeakSet[Pusher] = WeakSet()


def _forget_parent() -> None:
    """In a child: the thread is gone, and what the parent counted is the parent's to push."""
    for pusher in list(_pushers):
        pusher._over.set()
        pusher._pushed = _values(pusher._registry)
        pusher._lock = Lock()


os.register_at_fork(after_in_child=_forget_parent)


def read(hot: Hot) -> dict[Series, float]:
    """The sums over the processes that push. Raises `HotUnavailable`."""
    with hot.calling() as redis:
        pipeline = redis.pipeline()
        pipeline.hgetall(hot.named_key(METRICS, "all"))
        (fields,) = pipeline.execute()
    return {_series(field): int(value) / UNITS for field, value in fields.items()}


def families(sums: Mapping[Series, float] | None, registry: CollectorRegistry = REGISTRY) -> Iterator[Metric]:
    """Each metric with the counts of this process and with ``sums``, told apart by the label `source`.

    None are sums that are not known: they are left out. At 0 a counter would seem to begin anew. Series that this
    release does not know are left out as well: another release may count something else.
    """
    for family in registry.collect():
        own = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in family.samples if _counts(s.name)}
        metric = Metric(family.name, family.documentation, family.type)
        _add_samples(metric, own, API)
        if sums is not None:
            names = {name for name, _ in own} | _names(family)
            # What is declared stands there from the start, and each bucket of a histogram does.
            pushed = dict.fromkeys(own, 0.0) | {key: value for key, value in sums.items() if key[0] in names}
            _add_samples(metric, pushed, BACKGROUND)
        yield metric


def _add_samples(metric: Metric, series: Mapping[Series, float], source: str) -> None:
    for (name, labels), value in sorted(series.items(), key=_order):
        metric.add_sample(name, {**dict(labels), "source": source}, value)


def _order(item: tuple[Series, float]) -> tuple[tuple[tuple[str, str], ...], str, float]:
    """Together by labels, buckets in the order of their bounds."""
    (name, labels), _ = item
    bound = next((float(value) for label, value in labels if label == "le"), 0.0)
    return tuple(pair for pair in labels if pair[0] != "le"), name, bound


def _names(family: Metric) -> set[str]:
    suffixes = ("_bucket", "_sum", "_count") if family.type == "histogram" else ("_total",)
    return {family.name + suffix for suffix in suffixes}


def _counts(name: str) -> bool:
    # The library adds the instant at which a series began, which is no sum.
    return not name.endswith("_created")


def _values(registry: CollectorRegistry) -> dict[Series, int]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): round(sample.value * UNITS)
        for family in registry.collect()
        for sample in family.samples
        if _counts(sample.name)
    }


def _add(hot: Hot, changes: Mapping[Series, int]) -> None:
    key = hot.named_key(METRICS, "all")
    with hot.calling() as redis:
        # Together: added twice they would count twice, and no key is left without an expiry.
        pipeline = redis.pipeline()
        for (name, labels), change in changes.items():
            pipeline.hincrby(key, json.dumps([name, labels], separators=(",", ":")), change)
        pipeline.pexpire(key, milliseconds(METRICS.life))
        pipeline.execute()


def _series(field: bytes) -> Series:
    # Whoever reaches Redis may write there; what is no series of ours has a name that no family has.
    try:
        name, labels = json.loads(field)
        return str(name), tuple(sorted((str(label), str(value)) for label, value in labels))
    except (ValueError, TypeError):
        return "", ()
