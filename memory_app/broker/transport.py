"""Kombu's Redis transport, with sentinels that are all asked, over TLS if wanted.

Kombu takes the sentinels from alternative addresses, and after a failure goes on with the next of them by the plain
transport of its scheme. So ours knows them from its options and has one address only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kombu.connection import Connection
from kombu.transport import redis as kombu_redis
from redis import ConnectionPool, Redis
from redis.sentinel import Sentinel

from memory_app.redis_url import Address


def name(address: Address) -> str:
    """The transport for an address, as Celery's settings name it."""
    kind = SentinelTransport if address.primary else Transport if address.tls is None else TlsTransport
    return _full_name(kind)


def options(address: Address) -> dict[str, Any]:
    """What the transport needs to know besides the broker's URL."""
    if address.primary is None:
        return {}
    tls = {} if address.tls is None else {"ssl": True, **address.tls.options()}
    return {
        "master_name": address.primary,
        "sentinels": address.hosts,
        "sentinel_kwargs": {"socket_timeout": 3, "socket_connect_timeout": 3, **tls},
    }


class QoS(kombu_redis.QoS):
    """Only who takes tasks puts back what was not acknowledged.

    Flower and doctor read answers only, and their users may not touch the messages of others.
    """

    def restore_visible(self, *arguments: Any, **options: Any) -> None:
        if not set(self.channel.active_queues).isdisjoint(self.channel.task_queues):
            super().restore_visible(*arguments, **options)  # type: ignore[no-untyped-call]


class OurChannel:
    """What our channels have beyond kombu's: they know which queues carry tasks."""

    QoS = QoS
    task_queues: tuple[str, ...] = ()


class Channel(OurChannel, kombu_redis.Channel):
    """A channel to one server."""

    from_transport_options: tuple[str, ...] = (  # type: ignore[assignment]
        *kombu_redis.Channel.from_transport_options,
        "task_queues",
    )


class Transport(kombu_redis.Transport):
    Channel = Channel


class TlsTransport(Transport):
    """The same; of its own so that logs and Flower show ``rediss://``."""


class SentinelChannel(OurChannel, kombu_redis.SentinelChannel):
    """A channel to the primary that the sentinels name, asked for again with each new connection."""

    sentinels: tuple[tuple[str, int], ...] = ()
    sentinel_kwargs: Mapping[str, Any]
    master_name: str
    from_transport_options: tuple[str, ...] = (  # type: ignore[assignment]
        *kombu_redis.SentinelChannel.from_transport_options,
        "sentinels",
        "task_queues",
    )

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> ConnectionPool:
        params: dict[str, Any] = self._connparams(asynchronous)  # type: ignore[no-untyped-call]
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


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__name__}"


# For whoever shows an address: logs, and Flower, which chooses by the scheme how to ask for the length of a queue.
Connection.resolve_aliases |= {
    _full_name(Transport): "redis",
    _full_name(TlsTransport): "rediss",
    _full_name(SentinelTransport): "sentinel",
}
