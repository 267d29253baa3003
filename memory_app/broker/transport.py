"""Kombu's Redis transport, made to stand whatever is in a queue, and with sentinels that are all asked.

A message that is none of ours is dropped where it comes in (`memory_app.broker.message`), counted, and never seen by
kombu or Celery, which would end the worker over it or write it into a log.

Kombu takes the sentinels from alternative addresses, and after a failure goes on with the next of them by the plain
transport of its scheme. So ours knows them from its options and has one address only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from kombu.connection import Connection
from kombu.transport import redis as kombu_redis
from redis import ConnectionPool, Redis
from redis.exceptions import RedisError
from redis.sentinel import Sentinel

from memory_app.broker import message
from memory_app.broker.dropped import Counting
from memory_app.broker.message import UNREADABLE, DropReason
from memory_app.broker.sweep import sweep
from memory_app.hot.faults import translate
from memory_app.redis_url import Address

log = structlog.get_logger(__name__)


def name(address: Address) -> str:
    """The transport for an address, as Celery's settings name it."""
    if address.primary:
        return _full_name(SentinelTransport)
    return _full_name(Transport if address.tls is None else TlsTransport)


def options(address: Address) -> dict[str, Any]:
    """What the transport needs to know besides the broker's URL."""
    if address.primary is None:
        return {"address": address}
    tls = {} if address.tls is None else {"ssl": True, **address.tls.options()}
    # Short, since the sentinels are asked one after another and the first of them may be the one that is gone.
    sentinel_options = {"socket_timeout": 3, "socket_connect_timeout": 3, **tls}
    return {
        "address": address,
        "master_name": address.primary,
        "sentinels": address.hosts,
        "sentinel_kwargs": sentinel_options,
    }


OWN_OPTIONS = ("task_queues", "task_names", "address")

Admits = Callable[[str, bytes], bool]
"""Whether a message from a queue or channel may go further."""


class QoS(kombu_redis.QoS):
    """Only who takes tasks puts back what was not acknowledged.

    Flower and doctor read answers only, and their users may not touch the messages of others.
    """

    def restore_visible(self, *arguments: Any, **options: Any) -> None:
        # A channel that reads answers has queues of its own, none of them one of tasks.
        if not set(self.channel.active_queues).isdisjoint(self.channel.task_queues):
            super().restore_visible(*arguments, **options)  # type: ignore[no-untyped-call]

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """What stands among the unacknowledged messages and is none goes away instead of being put back."""
        try:
            super().restore_by_tag(tag, client=client, leftmost=leftmost)  # type: ignore[no-untyped-call]
        except UNREADABLE:
            # Left there, it would come up whenever kombu looks for old messages, and end the worker each time.
            self._remove_from_indices(tag).execute()  # type: ignore[no-untyped-call]
            self.channel.drop(DropReason.NOT_JSON)


class Client(kombu_redis.PrefixedStrictRedis):
    """A client that hands over only messages that ``admits`` lets through."""

    def __init__(self, *arguments: Any, admits: Admits, on_idle: Callable[[], None], **options: Any) -> None:
        self._admits = admits
        self._on_idle = on_idle
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]

    def parse_response(self, connection: Any, command_name: str, **options: Any) -> Any:
        """To kombu a message that is not admitted looks like none at all."""
        reply = super().parse_response(connection, command_name, **options)  # type: ignore[no-untyped-call]
        if command_name != "BRPOP":
            return reply
        # The reply is the queue and the message, or nothing when the time is over.
        if reply and not self._admits(_text(reply[0]), reply[1]):
            reply = None
        if not reply:
            # A queue that runs dry is the moment to write counts that were not due with the last message.
            self._on_idle()
        return reply

    def pubsub(self, **options: Any) -> PubSub:
        return PubSub(
            self.connection_pool,
            global_keyprefix=self.global_keyprefix,
            admits=self._admits,
            **options,
        )


class PubSub(kombu_redis.PrefixedRedisPubSub):
    """The same for what is said to all workers, and for events."""

    def __init__(self, *arguments: Any, admits: Admits, **options: Any) -> None:
        self._admits = admits
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]

    def parse_response(self, *arguments: Any, **options: Any) -> Any:
        reply = super().parse_response(*arguments, **options)  # type: ignore[no-untyped-call]
        if not reply or _text(reply[0]) != "pmessage":
            return reply
        # A message that came by a pattern: its kind, the pattern, the channel and the message.
        _, _, channel, value = reply
        return reply if self._admits(_text(channel), value) else None


class Channel(kombu_redis.Channel):
    """A channel that only messages of ours come through. ``task_names`` may come from ``task_queues``."""

    QoS = QoS
    task_queues: tuple[str, ...] = ()
    task_names: tuple[str, ...] = ()
    address: Address | None = None
    from_transport_options: tuple[str, ...] = (  # type: ignore[assignment]
        *kombu_redis.Channel.from_transport_options,
        *OWN_OPTIONS,
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        try:
            super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]
        except (RedisError, OSError) as error:
            if self.address is not None:
                log.warning("broker_not_reached", reason=translate(error, self.address).message)
            raise
        # Only now, as the parent's constructor sets the prefix.
        self._counting = Counting(self.global_keyprefix)

    def drop(self, fault: DropReason) -> None:
        """Count a message that goes no further."""
        self._count({fault: 1})

    def remove_misplaced(self) -> None:
        """Take away what another program put in the place of a queue, or of what belongs to it.

        Redis refuses every command on such a key, so that nothing would be taken from any queue again.
        """
        # A client of its own: kombu's would put the prefix before a key that has it already.
        plain = Redis(connection_pool=self.pool)
        queues = [
            self._q_for_pri(queue, step)  # type: ignore[no-untyped-call]
            for queue in self.task_queues
            for step in self.priority_steps
        ]
        kinds = {**dict.fromkeys(queues, b"list"), self.unacked_key: b"hash", self.unacked_index_key: b"zset"}
        for name, kind in kinds.items():
            key = self.global_keyprefix + name
            if plain.type(key) not in (kind, b"none"):
                log.warning("misplaced_key_removed", key=key)
                plain.delete(key)

    def get_table(self, exchange: str) -> list[tuple[str, ...]]:
        """Bindings are read from Redis too: what is none is passed over."""
        rows: list[tuple[str, ...]] = super().get_table(exchange)  # type: ignore[no-untyped-call]
        # Routing key, pattern and queue; kombu unpacks each row into these three.
        return [row for row in rows if len(row) == 3]

    def close(self) -> None:
        # Kombu closes a channel more than once, and the pool is gone after the first time.
        if self._counting.waiting and not self.closed:
            self._counting.write(Redis(connection_pool=self.pool))
        super().close()  # type: ignore[no-untyped-call]

    def _get_client(self) -> Callable[..., Client]:
        # Called for what it checks (the version of the library); the class that it returns is kombu's own.
        super()._get_client()  # type: ignore[no-untyped-call]
        return functools.partial(
            Client,
            global_keyprefix=self.global_keyprefix,
            admits=self._admits,
            on_idle=self._write_counts,
        )

    def _admits(self, source: str, value: bytes) -> bool:
        """``source`` is a queue with its priority, or a channel of events or control."""
        queue = source.split(self.sep)[0]
        fault = self._fault_from(queue, value)
        if fault is None:
            return True
        self.drop(fault)
        if queue in self.task_queues:
            # Kombu does so for a message that it gets: no queue of garbage may keep others from their turn.
            self._queue_cycle.rotate(queue)
            plain = Redis(connection_pool=self.pool)
            self._count(sweep(plain, self.global_keyprefix + source, self._task_fault))
        return False

    def _fault_from(self, queue: str, value: bytes) -> DropReason | None:
        if queue in self.task_queues:
            return self._task_fault(value)
        # Kombu's channels of remote control: "/<database>.celery.pidbox".
        if queue.startswith("/") and queue.endswith(".celery.pidbox"):
            return message.command_fault(value)
        return message.report_fault(value)

    def _task_fault(self, value: bytes) -> DropReason | None:
        return message.task_fault(value, self.task_names)

    def _count(self, faults: Mapping[DropReason, int]) -> None:
        self._counting.waiting.update(faults)
        self._write_counts()

    def _write_counts(self) -> None:
        if self._counting.is_due():
            self._counting.write(Redis(connection_pool=self.pool))


class Transport(kombu_redis.Transport):
    Channel = Channel


class TlsTransport(Transport):
    """The same; of its own so that logs and Flower show ``rediss://``."""


class SentinelChannel(Channel, kombu_redis.SentinelChannel):
    """A channel to the primary that the sentinels name, asked for again with each new connection."""

    sentinels: tuple[tuple[str, int], ...] = ()
    sentinel_kwargs: Mapping[str, Any]
    master_name: str
    from_transport_options: tuple[str, ...] = (  # type: ignore[assignment]
        *kombu_redis.SentinelChannel.from_transport_options,
        *OWN_OPTIONS,
        "sentinels",
    )

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> ConnectionPool:
        params: dict[str, Any] = self._connparams(asynchronous)  # type: ignore[no-untyped-call]
        # The sentinels say where the primary is.
        del params["host"], params["port"]
        manager = Sentinel(self.sentinels, sentinel_kwargs=self.sentinel_kwargs, **params)  # type: ignore[no-untyped-call]
        # Kept where kombu looks for what to close.
        if asynchronous:
            self._async_sentinel_manager = manager
        else:
            self._sentinel_manager = manager
        client: Redis = manager.master_for(self.master_name)  # type: ignore[no-untyped-call]
        return client.connection_pool


class SentinelTransport(kombu_redis.SentinelTransport):
    Channel = SentinelChannel


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__name__}"


# For whoever shows an address: logs, and Flower, which chooses by the scheme how to ask for the length of a queue.
Connection.resolve_aliases |= {
    _full_name(Transport): "redis",
    _full_name(TlsTransport): "rediss",
    _full_name(SentinelTransport): "sentinel",
}
