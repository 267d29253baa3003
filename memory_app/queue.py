"""Task names, and `send`: a message that says "look", after the commit. Knows no task code and carries no content.

Losing, doubling, delaying, reordering or forging a message is harmless: a row says what is to be done, and finders look
for due rows. So sending is tried once and a failure is only logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog
from celery import Celery
from kombu.exceptions import KombuError
from kombu.pools import ProducerPool

from memory_app import correlation, metrics, tracing
from memory_app.broker import transport
from memory_app.hot.faults import translate
from memory_app.redis_url import Address

log = structlog.get_logger(__name__)

INGEST: Final = "ingest"
MODEL: Final = "model"
MAINTENANCE: Final = "maintenance"
QUEUES: Final = (INGEST, MODEL, MAINTENANCE)

RECORD_TURN: Final = "memory.record_turn"
INDEX_TURNS: Final = "memory.index_turns"
EXTRACT_SESSION: Final = "memory.extract_session"
FIND_DUE: Final = "memory.find_due"
FIND_IDLE: Final = "memory.find_idle"
FIND_PERIODIC: Final = "memory.find_periodic"
INDEX_SCOPES: Final = "memory.index_scopes"
DELIVER_WEBHOOKS: Final = "memory.deliver_webhooks"
NOTE_RECALLS: Final = "memory.note_recalls"
NARRATE: Final = "memory.narrate"
SYNTHESIZE_SESSION: Final = "memory.synthesize_session"
SYNTHESIZE_DEEP: Final = "memory.synthesize_deep"
DEDUPLICATE: Final = "memory.deduplicate"
SLEEP: Final = "memory.sleep"
DECAY: Final = "memory.decay"
FORGET: Final = "memory.forget"
REEMBED: Final = "memory.reembed"
IMPORT_FILE: Final = "memory.import_file"
TIDY: Final = "memory.tidy"

ROUTES: Final[Mapping[str, str]] = {
    RECORD_TURN: INGEST,
    INDEX_TURNS: INGEST,
    EXTRACT_SESSION: MODEL,
    FIND_DUE: INGEST,
    FIND_IDLE: MAINTENANCE,
    FIND_PERIODIC: MAINTENANCE,
    INDEX_SCOPES: MAINTENANCE,
    NOTE_RECALLS: INGEST,
    # It waits for others, as calls of a model do, and holds one place however many receivers hang.
    DELIVER_WEBHOOKS: MODEL,
    NARRATE: MODEL,
    SYNTHESIZE_SESSION: MODEL,
    SYNTHESIZE_DEEP: MODEL,
    DEDUPLICATE: MODEL,
    SLEEP: MAINTENANCE,
    DECAY: MAINTENANCE,
    FORGET: MAINTENANCE,
    REEMBED: MAINTENANCE,
    IMPORT_FILE: MAINTENANCE,
    TIDY: MAINTENANCE,
}
"""Every public task and its queue: a wire format."""

# Longer than any task: a message that is out for longer is handed to another worker as well.
VISIBILITY_TIMEOUT_SECONDS = 3600


def broker_settings(address: Address, prefix: str) -> dict[str, Any]:
    """What producers and workers must agree on; one client with another time-out or prefix disturbs them all."""
    return {
        "broker_url": address.broker_url(),
        "broker_transport": transport.name(address),
        # Not as options of the URL: broker and hot memory verify a server with the same ones.
        "broker_use_ssl": False if address.tls is None else address.tls.options(),
        "broker_transport_options": {
            **transport.options(address),
            "visibility_timeout": VISIBILITY_TIMEOUT_SECONDS,
            "socket_timeout": 8,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "global_keyprefix": prefix,
            "task_queues": QUEUES,
            "task_names": tuple(ROUTES),
        },
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_routes": {name: {"queue": queue} for name, queue in ROUTES.items()},
        "task_default_queue": INGEST,
        "task_create_missing_queues": True,
        "enable_utc": True,
        "timezone": "UTC",
    }


SENDERS = 8
"""Hints that one process sends at the same moment; further ones wait."""


class Sender:
    """Sends hints by name. Safe to share between threads; make it after a fork."""

    def __init__(self, address: Address, *, prefix: str) -> None:
        self._address = address
        # Not the current application: in a worker that is the one whose tasks run.
        self._app = Celery("memory_sender", set_as_current=False)
        self._app.conf.update(broker_settings(address, prefix))
        self._app.conf.update(
            broker_connection_timeout=1,
            task_publish_retry=False,
        )
        self._app.conf.broker_transport_options |= {
            # Shorter than a worker's: a caller waits for the answer to its turn, which is stored already.
            "socket_timeout": 2,
            "socket_connect_timeout": 1,
            # Kombu waits two seconds before it connects once more; a caller who just got a turn accepted must not.
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0,
        }
        broker = self._app.connection_for_write()
        self._refusals = (
            KombuError,
            OSError,
            TimeoutError,
            *broker.connection_errors,
            *broker.channel_errors,
        )
        # Pools of our own: those of Celery belong to the whole process and are never given back.
        self._connections = broker.Pool(limit=SENDERS)
        # Of the pools only this one has no types.
        self._producers: Any = ProducerPool(self._connections, limit=SENDERS)  # type: ignore[no-untyped-call]  # Kombu has none

    def send(self, name: str, *, to: str | None = None, **ids: Any) -> bool:
        """One message, to the task's own queue if ``to`` names no other.

        False when the broker did not take it, which the finders make up for.
        """
        # Looked up outside: kombu counts a KeyError among the refusals of a channel.
        route = to or ROUTES[name]
        task_id = str(correlation.new_id())
        try:
            with tracing.sending(name), self._producers.acquire(block=True) as producer:
                self._app.send_task(
                    name,
                    kwargs=ids,
                    task_id=task_id,
                    queue=route,
                    producer=producer,
                    argsrepr="()",
                    kwargsrepr=correlation.shown(ids),
                    headers=tracing.carrier(),
                )
        except self._refusals as error:
            metrics.hints.labels("refused").inc()
            log.warning("hint_not_sent", task=name, reason=translate(error, self._address).message)
            return False
        metrics.hints.labels("sent").inc()
        correlation.note(correlation.TASKS, [task_id])
        return True

    def close(self) -> None:
        """Give back every connection."""
        self._producers.force_close_all()
        self._connections.force_close_all()
        self._app.close()
