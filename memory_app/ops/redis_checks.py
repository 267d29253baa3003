"""What doctor looks at in Redis, and what a part refuses to start on: hot memory, and a broker of its own if any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from memory_app.broker import dropped
from memory_app.errors import MemoryAppError
from memory_app.hot.client import Hot
from memory_app.hot.client import connect as connect_hot
from memory_app.hot.faults import HotRefused, HotUnavailable, named
from memory_app.hot.inspection import Server, check_rights, inspect
from memory_app.hot.permissions import Command, Part, broker_commands, hot_commands
from memory_app.ops.check import Check, State, clock
from memory_app.redis_url import Address
from memory_app.settings import Settings

log = structlog.get_logger(__name__)

DROPPED_WARN_SECONDS = 3600.0
"""A message that was dropped longer ago is told, and no reason to worry."""

OUR_USERS = {f"memory-{part}": part for part in Part}
"""Users by the names of ``deploy/redis/users.acl``, each for one part."""


@dataclass(frozen=True, slots=True)
class Place:
    """A Redis that parts connect to. ``is_hot`` and ``is_broker``: what it is used for."""

    name: str
    address: Address
    is_hot: bool
    is_broker: bool

    def commands(self, part: Part, prefix: str) -> Sequence[Command]:
        """What a part does there."""
        db = self.address.db
        hot = hot_commands(part, prefix=prefix, db=db) if self.is_hot else ()
        return (*hot, *(broker_commands(part, prefix=prefix, db=db) if self.is_broker else ()))


def places(settings: Settings) -> tuple[Place, ...]:
    """One or two. Raises `Misconfigured`."""
    if settings.broker.url is None:
        return (Place("redis", settings.redis_address, is_hot=True, is_broker=True),)
    return (
        Place("redis", settings.redis_address, is_hot=True, is_broker=False),
        Place("broker", settings.broker_address, is_hot=False, is_broker=True),
    )


def admit(settings: Settings, part: Part) -> None:
    """Let a part start. Raises `HotRefused` for what waiting cannot mend.

    A Redis that is away or full is only logged: turns are accepted without it, and the others wait for it.
    """
    for place in places(settings):
        commands = place.commands(part, settings.redis.prefix)
        if not commands:
            continue
        try:
            server = inspect(place.address)
            _refuse_eviction(server, place.address)
            if server.is_replica:  # it refuses writes for this reason before any other
                raise named("a replica", place.address)
            check_rights(place.address, commands)
        except HotRefused:
            raise
        except HotUnavailable as error:
            log.warning("redis_not_ready", setting=place.address.setting, reason=error.message)


def look(settings: Settings) -> Iterator[Check]:
    """Each server: kind and version, settings, TLS, our rights and its clock."""
    try:
        found = places(settings)
    except MemoryAppError as error:
        yield _failure("redis", error)
        return
    for place in found:
        yield from _look(place, settings)


def _look(place: Place, settings: Settings) -> Iterator[Check]:
    tls = place.address.tls
    if tls is not None and not tls.is_verified:
        to_do = "name its CA with MEMORY_REDIS__CA_FILE, and take MEMORY_REDIS__VERIFY_TLS away"
        yield Check(f"tls of {place.name}", State.WARN, "any server is trusted", to_do)
    try:
        server = inspect(place.address)
    except MemoryAppError as error:
        yield _failure(place.name, error)
        return
    if server.is_replica:
        yield _failure(place.name, named("a replica", place.address))
    else:
        yield Check(place.name, State.OK, f"{server.name} {server.version}")
        yield _rights(place, settings.redis.prefix)
    if place.is_broker:
        yield _eviction(server)
        yield _persistence(server)
    if server.clock_offset_seconds is not None:
        yield clock(place.name, server.clock_offset_seconds)


def _failure(name: str, error: MemoryAppError) -> Check:
    """Our sentences say what is wrong, and after a semicolon what to do."""
    found, _, to_do = error.message.partition("; ")
    return Check(name, State.FAIL, found, to_do or "see the log of the server")


def _rights(place: Place, prefix: str) -> Check:
    """Of the part whose user this is; of all parts where all use the same."""
    user = place.address.username or "default"
    parts = [OUR_USERS[user]] if user in OUR_USERS else list(Part)
    name = f"rights in {place.name}"
    for part in parts:
        try:
            check_rights(place.address, place.commands(part, prefix))
        except HotRefused as error:
            found, _, to_do = error.message.partition("; ")
            state = State.FAIL if user in (*OUR_USERS, "default") else State.WARN
            return Check(name, state, f"{part}: {found}", to_do)
        except HotUnavailable as error:
            return _failure(name, error)
    need = f"the part {parts[0]} needs" if len(parts) == 1 else "all parts need"
    return Check(name, State.OK, f"user {user} may do what {need}")


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


def _refuse_eviction(server: Server, address: Address) -> None:
    if server.policy is not None and server.policy.startswith("allkeys"):
        raise named("evicts", address)


def _eviction(server: Server) -> Check:
    policy = server.policy
    if policy is None:
        return Check("eviction", State.OK, "not asked: our user may not run INFO")
    if policy == "noeviction":
        return Check("eviction", State.OK, "maxmemory-policy is noeviction")
    to_do = "CONFIG SET maxmemory-policy noeviction, and in its configuration file"
    if policy.startswith("volatile"):
        return Check(
            "eviction", State.WARN, f"maxmemory-policy is {policy}: hot memory is forgotten early", to_do
        )
    return Check(
        "eviction", State.FAIL, f"maxmemory-policy is {policy}", f"{to_do}; others drop queued hints"
    )


def _persistence(server: Server) -> Check:
    if int(server.info.get("aof_enabled", 0)):
        return Check("persistence", State.OK, "append-only file")
    to_do = "set appendonly yes; without it a restart forgets hints, which finders then send again"
    return Check("persistence", State.WARN, "no append-only file", to_do)
