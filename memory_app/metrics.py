"""What every process counts and times. One registry per process; `memory_app.hot.metrics` adds up those of workers,
finders and Beat.

Labels are words of ours: kinds of work, outcomes, sections, models of the settings. Never a tenant, agent, user, or
anything that a caller sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

P = ParamSpec("P")
Answer = TypeVar("Answer")

REGISTRY = CollectorRegistry()

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds of what a chat waits for."""

SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 90, 300, 660)
"""Seconds of work in the background and of calls of models."""


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(name, text, labels, registry=REGISTRY)


def _histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, text, labels, buckets=buckets, registry=REGISTRY)


turns = _counter("memory_turns", "Turns that reached a stage, or were given back (postponed).", "stage")
memories = _counter("memory_memories", "Statements by what the write path did with them.", "outcome")
fenced = _counter("memory_fenced", "Work that was dropped because another worker had taken it over.", "work")

tasks = _counter("memory_tasks", "Tasks of workers by how they ended.", "task", "outcome")
task_seconds = _histogram("memory_task_seconds", "Time of tasks.", "task", buckets=SLOW)
tasks_sent = _counter("memory_tasks_sent", "Tasks that Beat sent.", "task")
hints = _counter("memory_hints", "Hints to workers, by whether the broker took them.", "outcome")

runs = _counter("memory_runs", "Tries of runs by how they ended.", "job", "outcome")
run_seconds = _histogram("memory_run_seconds", "Time of tries of runs.", "job", buckets=SLOW)

sleep_step_seconds = _histogram(
    "memory_sleep_step_seconds", "Time of the steps of sleep cycles.", "step", buckets=SLOW
)
sleep_cycles = _counter("memory_sleep_cycles", "Sleep cycles by how they ended.", "outcome")
sleep_changes = _counter(
    "memory_sleep_changes", "What sleep cycles changed, by the step that did it.", "step"
)

model_calls = _counter("memory_model_calls", "Calls of providers, chat or embedding.", "provider", "outcome")
model_seconds = _histogram("memory_model_seconds", "Time of calls of providers.", "provider", buckets=SLOW)
model_tokens = _counter("memory_model_tokens", "Tokens of language models.", "model", "direction")
model_dollars = _counter("memory_model_dollars", "What calls of language models cost.", "model")
model_repairs = _counter("memory_model_repairs", "Questions asked again as no answer could be read.")

recall_seconds = _histogram("memory_recall_seconds", "Time of recall by stage.", "stage", buckets=FAST)
context_seconds = _histogram(
    "memory_context_seconds", "Time of context windows by stage.", "stage", buckets=FAST
)
degraded = _counter("memory_degraded", "Answers that lacked a section.", "door", "section")

place_seconds = _histogram(
    "memory_place_seconds", "Time until a request got one of an API's places.", buckets=FAST
)
connection_seconds = _histogram(
    "memory_connection_seconds", "Time until a transaction got its database connection.", buckets=FAST
)
database_failures = _counter(
    "memory_database_failures", "Transactions that the state of the database ended, by SQLSTATE.", "code"
)

lock_seconds = _histogram(
    "memory_lock_seconds", "Time of statements that take a lock, by what it is on.", "lock", buckets=FAST
)
lock_failures = _counter(
    "memory_lock_failures",
    "Waits for locks that ended without one, by what it is on and why.",
    "lock",
    "reason",
)

webhook_deliveries = _counter("memory_webhook_deliveries", "Tries of webhooks by how they ended.", "outcome")
webhook_seconds = _histogram("memory_webhook_seconds", "Time of tries of webhooks.", buckets=SLOW)

erasures = _counter("memory_erasures", "Erasures by what was forgotten.", "of")
erasure_seconds = _histogram("memory_erasure_seconds", "Time of erasures.", buckets=SLOW)
erased_rows = _counter("memory_erased_rows", "Rows that erasures took away.")
retention_rows = _counter(
    "memory_retention_rows", "Turns and memories past their limit of days, by class.", "kind"
)

redactions = _counter(
    "memory_redactions", "Private parts taken out of texts, by kind and by what held them.", "kind", "place"
)

limited = _counter("memory_limited", "Calls refused by a limit, by the limit.", "limit")

# From the start, so that the first failure is a rise and not the beginning of a series.
for _provider in ("chat", "embedding"):
    for _outcome in ("ok", "provider_unavailable", "circuit_open", "rate_limited", "bad_model_output"):
        model_calls.labels(_provider, _outcome)
for _stage in ("accepted", "indexed", "extracted", "failed", "postponed"):
    turns.labels(_stage)
limited.labels("places")
# Disk full, too many connections, shutting down, no answer, the pool.
for _code in ("53100", "53300", "57P01", "connection", "pool"):
    database_failures.labels(_code)


@contextmanager
def timed(histogram: Histogram, *labels: str) -> Iterator[None]:
    """Observe how long the block takes, also where it fails."""
    started = time.perf_counter()
    try:
        yield
    finally:
        child = histogram.labels(*labels) if labels else histogram
        child.observe(time.perf_counter() - started)


def timing(histogram: Histogram, *labels: str) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """The same around a function."""

    def decorate(function: Callable[P, Answer]) -> Callable[P, Answer]:
        @wraps(function)
        def observed(*args: P.args, **kwargs: P.kwargs) -> Answer:
            with timed(histogram, *labels):
                return function(*args, **kwargs)

        return observed

    return decorate
