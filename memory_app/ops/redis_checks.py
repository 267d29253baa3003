"""Checks of Redis, for the doctor and before a part starts: hot memory, and a broker of its own if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from memory_app.broker import dropped
from memory_app.errors import MemoryAppError
from memory_app.hot.client import Hot
from memory_app.hot.client import connect as connect_hot
from memory_app.hot.faults import HotRefused, HotUnavailable, named
from memory_app.hot.inspection import Server, check_rights, inspect
from memory_app.hot.permissions import Command, Part, broker_commands, hot_commands
from memory_app.ops.check import Check, clock, fail, failure, ok, warn
from memory_app.redis_url import Address
from memory_app.settings import Settings

log = structlog.get_logger(__name__)

DROPPED_WARN_SECONDS = 3600.0
"""A message that was dropped longer ago is reported without a warning."""

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
        commands: list[Command] = []
        if self.is_hot:
            commands += hot_commands(part, prefix=prefix, db=self.address.db)
        if self.is_broker:
            commands += broker_commands(part, prefix=prefix, db=self.address.db)
        return commands


def places(settings: Settings) -> tuple[Place, ...]:
    """One or two. Raises `Misconfigured`."""
    if settings.broker.url is None:
        return (Place("redis", settings.redis_address, is_hot=True, is_broker=True),)
    return (
        Place("redis", settings.redis_address, is_hot=True, is_broker=False),
        Place("broker", settings.broker_address, is_hot=False, is_broker=True),
    )


def admit(settings: Settings, part: Part) -> None:
    """Let a part start. Raises `HotRefused` for a fault that does not pass by itself."""
    for place in places(settings):
        commands = place.commands(part, settings.redis.prefix)
        if not commands:
            continue
        try:
            server = inspect(place.address)
            _refuse_eviction(server, place.address)
            # Before the rights: a replica refuses every write, whatever the user may do.
            if server.is_replica:
                raise named("a replica", place.address)
            check_rights(place.address, commands)
        except HotRefused:
            raise
        except HotUnavailable as error:
            # Away or full: turns are accepted without Redis, and the other parts wait for it.
            log.warning("redis_not_ready", setting=place.address.setting, reason=error.message)


def look(settings: Settings) -> Iterator[Check]:
    """Each server: kind and version, settings, TLS, our rights and its clock."""
    try:
        servers = places(settings)
    except MemoryAppError as error:
        yield _failure("redis", error)
        return
    for place in servers:
        yield from _look(place, settings)


def _look(place: Place, settings: Settings) -> Iterator[Check]:
    tls = place.address.tls
    if tls is not None and not tls.is_verified:
        to_do = "name its CA with MEMORY_REDIS__CA_FILE, and take MEMORY_REDIS__VERIFY_TLS away"
        yield warn(f"tls of {place.name}", "any server is trusted", to_do=to_do)
    try:
        server = inspect(place.address)
    except MemoryAppError as error:
        yield _failure(place.name, error)
        return
    if server.is_replica:
        yield _failure(place.name, named("a replica", place.address))
    else:
        yield ok(place.name, f"{server.name} {server.version}")
        yield _rights(place, settings.redis.prefix)
    if place.is_broker:
        yield _eviction(server)
        yield _persistence(server)
    if server.clock_offset_seconds is not None:
        yield clock(place.name, server.clock_offset_seconds)


def _failure(name: str, error: MemoryAppError) -> Check:
    """As `check.failure`; an error of the server itself says nothing of what to do."""
    check = failure(name, error)
    return check if check.to_do else replace(check, to_do="see the log of the server")


def _rights(place: Place, prefix: str) -> Check:
    """The rights of the part whose user this is; those of all parts where they share a user."""
    user = place.address.username or "default"
    parts = [OUR_USERS[user]] if user in OUR_USERS else list(Part)
    name = f"rights in {place.name}"
    for part in parts:
        try:
            check_rights(place.address, place.commands(part, prefix))
        except HotRefused as error:
            finding, _, to_do = error.message.partition("; ")
            # Nobody knows which parts a user of another name is for; it may well need less.
            judge = fail if user in (*OUR_USERS, "default") else warn
            return judge(name, f"{part}: {finding}", to_do=to_do)
        except HotUnavailable as error:
            return _failure(name, error)
    need = f"the part {parts[0]} needs" if len(parts) == 1 else "all parts need"
    return ok(name, f"user {user} may do what {need}")


def open_hot(settings: Settings) -> Hot:
    """Hot memory, for a check; close it."""
    return connect_hot(
        settings.redis_address,
        prefix=settings.redis.prefix,
        # Longer than calls wait: a slow server is to be looked at, not taken for one that is away.
        timeout_seconds=3,
        stream_turns=settings.hot.stream_turns,
        stream_life=timedelta(days=settings.hot.stream_days),
        context_life=timedelta(seconds=settings.context.cache_seconds),
    )


def messages(settings: Settings) -> Iterator[Check]:
    """What was dropped from the queues within a day; nothing while Redis is away, which has a check of its own."""
    drops = dropped.connect(settings.broker_address, prefix=settings.redis.prefix, timeout_seconds=3)
    try:
        report = drops.read()
    except MemoryAppError:
        return
    finally:
        drops.close()
    if report.seconds_ago is None:
        yield ok("messages", "none was dropped")
        return
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(report.counts.items()))
    finding = f"{report.total} dropped ({reasons}), the last {report.seconds_ago:.0f} s ago"
    if report.seconds_ago > DROPPED_WARN_SECONDS:
        yield ok("messages", finding)
    else:
        to_do = (
            "another program writes to our queues, or an older release of ours: give each part a Redis user of its own "
            "(deploy/redis/users.acl) and no other program access to keys with this prefix"
        )
        yield warn("messages", finding, to_do=to_do)


def _refuse_eviction(server: Server, address: Address) -> None:
    # A volatile policy takes only keys with an expiry, which are hot memory; queues have none.
    if server.policy is not None and server.policy.startswith("allkeys"):
        raise named("evicts", address)


def _eviction(server: Server) -> Check:
    policy = server.policy
    if policy is None:
        return ok("eviction", "not asked: our user may not run INFO")
    if policy == "noeviction":
        return ok("eviction", "maxmemory-policy is noeviction")
    to_do = "CONFIG SET maxmemory-policy noeviction, and in its configuration file"
    if policy.startswith("volatile"):
        return warn("eviction", f"maxmemory-policy is {policy}: hot memory is forgotten early", to_do=to_do)
    return fail("eviction", f"maxmemory-policy is {policy}", to_do=f"{to_do}; others drop queued hints")


def _persistence(server: Server) -> Check:
    if int(server.info.get("aof_enabled", 0)):
        return ok("persistence", "append-only file")
    to_do = "set appendonly yes; without it a restart forgets hints, which finders then send again"
    return warn("persistence", "no append-only file", to_do=to_do)
