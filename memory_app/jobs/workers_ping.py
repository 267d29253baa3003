"""Which workers answer, and which queues they take from: asked over the broker, as Celery's remote control does.

An answer says that a worker's main process is there and listens; whether work gets done is told by the age of what is
due.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog
from celery import Celery
from kombu.exceptions import KombuError

from memory_app.errors import Transient
from memory_app.hot.faults import translate
from memory_app.queue import broker_settings
from memory_app.redis_url import Address

log = structlog.get_logger(__name__)


class RosterUnavailable(Transient):
    """The broker did not deliver the question."""

    kind = "roster_unavailable"


def consumers(
    address: Address, *, prefix: str, timeout_seconds: float = 1.0, expected: int | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Queues by worker name. Waits the whole time-out, unless ``expected`` workers answered before.

    Raises `RosterUnavailable`.
    """
    app = Celery("memory_roster", set_as_current=False)
    app.conf.update(broker_settings(address, prefix))
    # Shorter than those of workers, since a person or a probe waits for the answer.
    app.conf.broker_transport_options |= {"socket_timeout": 3, "socket_connect_timeout": 2}
    connection = app.connection_for_read()
    errors = (KombuError, OSError, TimeoutError, *connection.connection_errors, *connection.channel_errors)
    try:
        replies = app.control.broadcast(
            "active_queues",
            reply=True,
            timeout=timeout_seconds,
            limit=expected,
            connection=connection,
        )
    except errors as error:
        reason = translate(error, address).message
        log.warning("roster_not_read", reason=reason)
        raise RosterUnavailable(reason) from error
    finally:
        connection.release()
        app.close()
    return {name: _queue_names(queues) for reply in replies or () for name, queues in reply.items()}


def _queue_names(queues: object) -> tuple[str, ...]:
    # Any program on the broker may answer, in a form of its own.
    if not isinstance(queues, Iterable):
        return ()
    names = (queue["name"] for queue in queues if isinstance(queue, Mapping) and "name" in queue)
    return tuple(sorted(map(str, names)))
