"""What doctor looks at in Redis: hot memory, the broker where it is another, and what was dropped from the queues."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from memory_app.broker import dropped
from memory_app.errors import MemoryAppError
from memory_app.hot.client import Hot
from memory_app.hot.client import connect as connect_hot
from memory_app.services.check import Check, State, clock, version
from memory_app.settings import Settings

OLDEST_VERSION = (7, 0)

DROPPED_WARN_SECONDS = 3600.0
"""A message that was dropped longer ago is told, and no reason to worry."""


def look(settings: Settings) -> list[Check]:
    """The server of hot memory: version, settings and clock."""
    hot = open_hot(settings)
    try:
        with hot.calling() as redis:
            asked = time.time()
            seconds, microseconds = redis.time()
            offset = seconds + microseconds / 1e6 - (asked + time.time()) / 2
            report: Mapping[str, Any] = redis.info()
    except MemoryAppError as error:
        to_do = "start Redis, and check MEMORY_REDIS__URL: address and password. Turns are accepted meanwhile"
        return [Check("redis", State.FAIL, error.message, to_do)]
    finally:
        hot.close()
    return [_version(report), _eviction(report), _persistence(report), clock("redis", offset)]


def open_hot(settings: Settings) -> Hot:
    """Hot memory, with a patience of its own; close it."""
    return connect_hot(
        settings.redis_address,
        prefix=settings.redis.prefix,
        timeout_seconds=3,
        stream_turns=settings.hot.stream_turns,
        stream_life=timedelta(days=settings.hot.stream_days),
        context_life=timedelta(seconds=settings.context.cache_seconds),
    )


def messages(settings: Settings) -> Iterator[Check]:
    """What was dropped from the queues within a day. Nothing is said where Redis is away."""
    drops = dropped.connect(settings.broker_address, prefix=settings.redis.prefix, timeout_seconds=3)
    try:
        report = drops.read()
    except MemoryAppError:
        return
    finally:
        drops.close()
    if report.seconds_ago is None:
        yield Check("messages", State.OK, "none was dropped")
        return
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(report.counts.items()))
    found = f"{report.total} dropped ({reasons}), the last {report.seconds_ago:.0f} s ago"
    if report.seconds_ago > DROPPED_WARN_SECONDS:
        yield Check("messages", State.OK, found)
    else:
        to_do = (
            "another program writes to our queues, or an older release of ours: give each part a Redis user of its own "
            "(deploy/redis/users.acl) and no other program access to keys with this prefix"
        )
        yield Check("messages", State.WARN, found, to_do)


def _version(report: Mapping[str, Any]) -> Check:
    own = report.get("valkey_version")
    name, number = ("Valkey", str(own)) if own else ("Redis", str(report.get("redis_version", "0")))
    if version(number) < OLDEST_VERSION:
        return Check("redis", State.FAIL, f"{name} {number}", "move to Redis 7 or newer, or to Valkey")
    return Check("redis", State.OK, f"{name} {number}")


def _eviction(report: Mapping[str, Any]) -> Check:
    policy = str(report.get("maxmemory_policy", "unknown"))
    if policy != "noeviction":
        to_do = (
            "CONFIG SET maxmemory-policy noeviction, and in its configuration file; others drop queued hints"
        )
        return Check("eviction", State.FAIL, f"maxmemory-policy is {policy}", to_do)
    return Check("eviction", State.OK, "maxmemory-policy is noeviction")


def _persistence(report: Mapping[str, Any]) -> Check:
    if int(report.get("aof_enabled", 0)):
        return Check("persistence", State.OK, "append-only file")
    to_do = "set appendonly yes; without it a restart forgets hints, which finders then send again"
    return Check("persistence", State.WARN, "no append-only file", to_do)
